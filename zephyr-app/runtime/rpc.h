/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Between the files of the server; not for ports.
 */
#ifndef MINRPC_RPC_H_
#define MINRPC_RPC_H_

#include <minrpc/counter.h>
#include <minrpc/object.h>
#include <minrpc/server.h>
#include <minrpc/text.h>

enum minrpc_rpc_code {
	MINRPC_RPC_SHUTDOWN = 1,
	MINRPC_RPC_INIT_SERVER = 2,
	MINRPC_RPC_CALL_FUNC = 3,
	MINRPC_RPC_RETURN = 4,
	MINRPC_RPC_EXCEPTION = 5,
	MINRPC_RPC_COPY_FROM_REMOTE = 6,
	MINRPC_RPC_COPY_TO_REMOTE = 7,
	MINRPC_RPC_COPY_ACK = 8,
	MINRPC_RPC_GET_GLOBAL_FUNC = 9,
	MINRPC_RPC_FREE_HANDLE = 10,
	MINRPC_RPC_DEV_SET_DEVICE = 11,
	MINRPC_RPC_DEV_GET_ATTR = 12,
	MINRPC_RPC_DEV_ALLOC_DATA = 13,
	MINRPC_RPC_DEV_FREE_DATA = 14,
	MINRPC_RPC_DEV_STREAM_SYNC = 15,
	MINRPC_RPC_COPY_AMONG_REMOTE = 16,
	MINRPC_RPC_DEV_ALLOC_DATA_WITH_SCOPE = 17,
	MINRPC_RPC_DEV_CREATE_STREAM = 18,
	MINRPC_RPC_DEV_FREE_STREAM = 19,
	MINRPC_RPC_DEV_SET_STREAM = 20,
	MINRPC_RPC_DEV_GET_CURRENT_STREAM = 21,
};

/* u64 n before the packet, i32 code in it. */
#define MINRPC_PACKET_LENGTH 8U
#define MINRPC_PACKET_CODE   4U

/* Handles have TVM's shape; all are looked up, none is a pointer but data addresses. */
#define MINRPC_HANDLE_MODULE   0x8000U
#define MINRPC_HANDLE_FUNCTION 0x80008000U /* + index in the system library */
#define MINRPC_HANDLE_GLOBAL   0x80028000U /* + index in the global functions */
#define MINRPC_HANDLE_OBJECT                                                                       \
	0xc0000000U /* + serial of 18 bits << 12 + 1 + index of a function in it */

/*
 * What carries out a request, or a part of it, returns true; or false when server->error says why
 * it can't be done.
 */

/* ------------------------------------------------------------------ reply.c */

/*
 * Each describes the reply and returns true; minrpc_reply_send sends it, as often as it is called.
 */
bool minrpc_reply_void(struct minrpc_server *server);
/* Of a request: nothing, or a handle. */
bool minrpc_reply_value(struct minrpc_server *server, const struct minrpc_call *call);
bool minrpc_reply_data(struct minrpc_server *server, void *data, uint32_t size);
/* Fails when the function returned what can't travel. */
bool minrpc_reply_call(struct minrpc_server *server, const struct minrpc_call *call);
/* server->error is the text. */
void minrpc_reply_exception(struct minrpc_server *server);
void minrpc_reply_send(struct minrpc_server *server);

/* ---------------------------------------------------------------- request.c */

/* What a request named is not there: "no live <type> 0x...". */
bool minrpc_fail_handle(struct minrpc_server *server, int type_code, uintptr_t handle);
bool minrpc_fail_shape(struct minrpc_server *server);
bool minrpc_fail_type(struct minrpc_server *server, uint32_t type_code);

/*
 * Carries out the packet (code and rest) and describes the reply; on failure server->error has the
 * text.
 */
bool minrpc_request(struct minrpc_server *server, struct minrpc_cursor *packet);

/* ------------------------------------------------------------------- copy.c */

bool minrpc_copy_from_remote(struct minrpc_server *server, struct minrpc_cursor *body);
bool minrpc_copy_to_remote(struct minrpc_server *server, struct minrpc_cursor *body);

bool minrpc_copy_among_remote(struct minrpc_call *call);

/*
 * For a packet that is not all there yet: the destination of a CopyToRemote whose body's first part
 * is in `body`, and of which `beyond` bytes are to come. NULL, or body->at is at the first data
 * byte.
 */
uint8_t *minrpc_copy_stream(struct minrpc_server *server, struct minrpc_cursor *body,
			    uint32_t beyond);

/*
 * Fails unless the tensor's elements lie within memory that the client may name, and, for one to be
 * `writable`, not in what is read-only. Folds the byte offset into `data`: generated code does not
 * look at it.
 */
bool minrpc_bind_tensor(struct minrpc_server *server, DLTensor *tensor, bool writable);

/* ------------------------------------------------------------------- call.c */

/* Checks the arguments of call->callee and binds its tensors. Once a call: it changes them. */
bool minrpc_bind_arguments(struct minrpc_call *call);

/* Binds, and runs what `handle` names. */
bool minrpc_call_handle(uintptr_t handle, struct minrpc_call *call);

/*
 * The functions of the module that `handle` names, and the handle of its first; fails when there is
 * none.
 */
bool minrpc_find_module(struct minrpc_server *server, uintptr_t handle,
			struct minrpc_library *library, uint32_t *first);

/* --------------------------------------------------------------- library.c */

/*
 * The first name of a registry; the others follow, each behind the NUL of the one before. `*count`
 * is their number: 0 for no registry.
 */
const char *minrpc_packed_names(const TVMFuncRegistry *registry, uint32_t *count);

/* Fails unless the handle is a function's. */
bool minrpc_check_function(struct minrpc_server *server, uintptr_t handle);

/* ------------------------------------------------------------------ guard.c */

/* Fails when what was called wrote beside an array. */
#if MINRPC_GUARDS
bool minrpc_inspect_memory(struct minrpc_call *call);
#else
#define minrpc_inspect_memory(call) true
#endif

/* The result is that. */
bool minrpc_return_handle(struct minrpc_call *call, int type_code, uintptr_t handle);

/* ---------------------------------------------------------------- globals.c */

extern const struct minrpc_module minrpc_globals;

/*
 * The handle of the function of that name; 0 when there is none. After a colon it is one of the
 * library's: our client then has its first result after one question, not four, on links that move
 * a byte in tens of microseconds.
 */
uintptr_t minrpc_global_find(const struct minrpc_server *server, const char *name);

/* -------------------------------------- info.c, random.c, fill.c, code.c, layout.c: globals */

bool minrpc_device_info(struct minrpc_call *call);
bool minrpc_random_fill(struct minrpc_call *call);
bool minrpc_random(struct minrpc_call *call);
bool minrpc_fill(struct minrpc_call *call);
bool minrpc_checksum(struct minrpc_call *call);
bool minrpc_code_alloc(struct minrpc_call *call);
bool minrpc_code_load(struct minrpc_call *call);
bool minrpc_layout(struct minrpc_call *call);

#if MINRPC_LAYOUT
/* Makes the layout that a call has asked for the one in use, if any has. */
void minrpc_layout_take(struct minrpc_server *server);
/* Goes back to that of the configuration, where no block is in the way. */
void minrpc_layout_restore(struct minrpc_server *server);
#else
#define minrpc_layout_take(server)    ((void)0)
#define minrpc_layout_restore(server) ((void)0)
#endif

/* Memory for code alone, as the port gives it: none, where the arena is executable. */
void minrpc_code_memory(const struct minrpc_config *config, struct minrpc_arena *code);

/* Where blocks for code come from. */
struct minrpc_arena *minrpc_code_arena(struct minrpc_server *server);

/* ----------------------------------------------------------------- server.c */

/* Whether the request being answered was numbered. */
#define minrpc_is_numbered(server) (MINRPC_NUMBERED && (server)->numbered)

/* With the session's id; a log's is none. */
void minrpc_send_message(struct minrpc_server *server, enum minrpc_message_type type,
			 const void *body, uint32_t size);

/* The RPC packet of the message in the receive buffer, of which `held` bytes are there. */
static inline struct minrpc_cursor minrpc_packet_in(const struct minrpc_server *server,
						    uint32_t held)
{
	uint8_t *message = server->config->receive_buffer;

	return (struct minrpc_cursor){.at = message + MINRPC_SESSION_HEADER, .end = message + held};
}

/* Everything of the session goes. */
void minrpc_forget_session(struct minrpc_server *server);

/* Carries out a message's packet, and replies. */
void minrpc_serve_packet(struct minrpc_server *server, struct minrpc_cursor *packet);

/* ---------------------------------------------------------------- abandon.c */

/*
 * Whether the start of a new session waits on the link; then it is noted that nobody wants an
 * answer.
 */
#if MINRPC_ABANDON
bool minrpc_is_abandoned(struct minrpc_server *server);
#else
#define minrpc_is_abandoned(server) false
#endif

/* ----------------------------------------------------------------- config.c */

#if MINRPC_CONFIG_CHECKS
bool minrpc_check_config(struct minrpc_server *server, const struct minrpc_config *config);
#else
#define minrpc_check_config(server, config) true
#endif

/* ----------------------------------------------------------------- stream.c */

/* The buffer is full, the frame is not over: a copy to the device can go on to where it belongs. */
void minrpc_stream(struct minrpc_server *server);
/* Why one could not, as the text of the answer; no text when it is no copy at all. */
void minrpc_stream_refusal(struct minrpc_server *server);

/* ----------------------------------------------------------------- resend.c */

/* The least memory that is kept for a numbered reply: device_info and all short texts fit in. */
#define MINRPC_SPARE_MIN 512U

/* The memory for a numbered reply; the next request takes it anew. */
#if MINRPC_NUMBERED
void minrpc_free_spare(struct minrpc_server *server);
#else
#define minrpc_free_spare(server) ((void)0)
#endif
/* A numbered message of `length` bytes is in the receive buffer. */
void minrpc_resend_deliver(struct minrpc_server *server, uint32_t length);
/* So is a question for the reply: the client gets it, or learns that the request never came. */
void minrpc_resend_probed(struct minrpc_server *server, uint32_t length);
/* A global function: being there says that numbered messages are understood. */
bool minrpc_resend_version(struct minrpc_call *call);
/* Asks the client for what follows the last numbered request. */
void minrpc_resend_ask(struct minrpc_server *server);
/* Before a numbered request runs: memory for its answer. */
bool minrpc_resend_reserve(struct minrpc_server *server, const struct minrpc_cursor *packet);
/* Keeps what the reply points to from being overwritten by what arrives before the next request. */
void minrpc_resend_keep(struct minrpc_server *server);

/* -------------------------------------------------------------- evaluator.c */

bool minrpc_evaluator_create(struct minrpc_call *call);
/*
 * The same arguments; the evaluator's result is in cycles, with the number of calls and batches of
 * each repeat.
 */
bool minrpc_evaluator_create_counting(struct minrpc_call *call);
#if MINRPC_COUNTERS
/* --------------------------------------------------------------- counters.c */

/* A set of counters has a bit for each number; the last one says that interrupts are masked. */
#define MINRPC_COUNTERS_MAX 31U
#define MINRPC_MASKED       (1U << MINRPC_COUNTERS_MAX)

/*
 * The set of those that `names` has, with commas between; fails with the first that is not there.
 * The name interrupts_masked is no counter's: no interrupt comes in a timed batch.
 */
bool minrpc_counters_choose(struct minrpc_server *server, const char *names, uint32_t *chosen);
uint32_t minrpc_counters_count(uint32_t chosen);
/*
 * Writes their names, a NUL behind each, unless `to` is NULL. Returns the bytes that it takes, a
 * multiple of 8.
 */
uint32_t minrpc_counters_names(const struct minrpc_server *server, uint32_t chosen, char *to);
/* Sets them going, or stops them. */
bool minrpc_counters_enable(struct minrpc_server *server, uint32_t chosen, bool on);
/*
 * One value for each: at the beginning as it is, at the end what came since. Peaks are left as
 * they are.
 */
void minrpc_counters_read(const struct minrpc_server *server, uint32_t chosen, uint64_t *values,
			  bool begins);
/* Calls once and fills in the peaks, where some are chosen. */
bool minrpc_counters_peaks(struct minrpc_server *server, uint32_t chosen,
			   const struct minrpc_callee *callee, struct minrpc_call *call,
			   uint64_t *values);
bool minrpc_counters_list(struct minrpc_call *call);
bool minrpc_memory(struct minrpc_call *call);
#endif

/* What calling an evaluator does. */
extern const struct minrpc_function minrpc_evaluator_function;

#endif /* MINRPC_RPC_H_ */
