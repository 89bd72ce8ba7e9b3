/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that the files of the server share. Ports and applications do not include it.
 */
#ifndef MINRPC_RPC_H_
#define MINRPC_RPC_H_

#include <minrpc/ask.h>
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

	/**
	 * Our extension, between this runtime and its own client: a reply with a question, with a
	 * u32 for the largest answer in bytes; and the request with the answer.
	 */
	MINRPC_RPC_ASK = 64,
	MINRPC_RPC_ANSWER = 65,
};

/* Bytes of a packet's u64 length, and of the i32 code behind it. */
#define MINRPC_PACKET_LENGTH 8U
#define MINRPC_PACKET_CODE   4U

/*
 * Handles look like TVM's. The server looks each one up; only an array's handle is an address.
 */
#define MINRPC_HANDLE_MODULE   0x8000U
#define MINRPC_HANDLE_FUNCTION 0x80008000U /* + index in the system library */
#define MINRPC_HANDLE_GLOBAL   0x80028000U /* + index in the global functions */
#define MINRPC_HANDLE_OBJECT                                                                       \
	0xc0000000U /* + serial number of 18 bits << 12; a function's: + 1 + its index */

/*
 * A function that carries out a request, or a part of it, returns true on success. It returns false
 * after it has set server->error to the reason.
 */

/* ---------------------------------------------------------------- failure.c */

/* Fails with "no live <type> 0x<handle>". */
bool minrpc_fail_handle(struct minrpc_server *server, int type_code, uintptr_t handle);
bool minrpc_fail_shape(struct minrpc_server *server);
bool minrpc_fail_type(struct minrpc_server *server, uint32_t type_code);

/* ------------------------------------------------------------------ reply.c */

/*
 * Each of these describes the reply in server->reply and returns true. minrpc_reply_send sends the
 * reply, once or several times.
 */

/* The reply to a request that is no call: no value, */
bool minrpc_reply_void(struct minrpc_server *server);
/* or the value of `call`, which is null or a handle, */
bool minrpc_reply_value(struct minrpc_server *server, const struct minrpc_call *call);
/* or bytes of the device's memory. */
bool minrpc_reply_data(struct minrpc_server *server, void *data, uint32_t size);
/* The reply to a call. Fails when the function returned a value that has no form on the wire. */
bool minrpc_reply_call(struct minrpc_server *server, const struct minrpc_call *call);
/* An exception with server->error as its text. */
void minrpc_reply_exception(struct minrpc_server *server);
void minrpc_reply_send(struct minrpc_server *server);

/* Sends a message with the session's id. A log has the id 0. */
void minrpc_send_message(struct minrpc_server *server, enum minrpc_message_type type,
			 const void *body, uint32_t size);

/* ---------------------------------------------------------------- request.c */

/* Carries out the packet, of which the code comes first, and describes the reply. */
bool minrpc_request(struct minrpc_server *server, struct minrpc_cursor *packet);

/* ------------------------------------------------------------------- copy.c */

bool minrpc_copy_from_remote(struct minrpc_server *server, struct minrpc_cursor *body);
bool minrpc_copy_to_remote(struct minrpc_server *server, struct minrpc_cursor *body);
bool minrpc_copy_among_remote(struct minrpc_call *call);

/*
 * Returns the destination of a CopyToRemote, and moves body->at to the first byte of its data.
 * Returns NULL when the copy is refused.
 *
 * body    the part of the body that has been received
 * beyond  number of bytes that are still to come
 */
uint8_t *minrpc_copy_stream(struct minrpc_server *server, struct minrpc_cursor *body,
			    uint32_t beyond);

/*
 * Fails unless the tensor's elements lie in memory that the client may name and, for a `writable`
 * tensor, may write. Adds the byte offset to `data`, since generated code ignores it.
 */
bool minrpc_bind_tensor(struct minrpc_server *server, DLTensor *tensor, bool writable);

/* ------------------------------------------------------------------- call.c */

/*
 * Checks the arguments of call->callee and binds its tensors. Only once for each call, since it
 * changes the tensors.
 */
bool minrpc_bind_arguments(struct minrpc_call *call);

/* The port's restore, if it has one. */
const char *minrpc_restore(struct minrpc_server *server, bool all);

/*
 * minrpc_invoke for a measurement: it takes only the time of the calls. Its caller runs under
 * minrpc_escapable.
 */
bool minrpc_invoke_timed(const struct minrpc_callee *callee, uint32_t number,
			 struct minrpc_call *call);

#if !MINRPC_ASK
static inline bool minrpc_escapable(struct minrpc_server *server, void (*run)(void *context),
				    void *context)
{
	run(context);
	(void)minrpc_restore(server, false);
	return true;
}
#endif

/* Looks the function up, binds its arguments, calls it. */
bool minrpc_call_handle(uintptr_t handle, struct minrpc_call *call);

/*
 * Finds the functions of the module with this handle. Sets `*first` to the handle of the first
 * function. Fails when there is no such module.
 */
bool minrpc_find_module(struct minrpc_server *server, uintptr_t handle,
			struct minrpc_library *library, uint32_t *first);

/* Fails unless the handle is a function's. */
bool minrpc_check_function(struct minrpc_server *server, uintptr_t handle);

/* Sets the call's result to this handle; returns true. */
static inline bool minrpc_return_handle(struct minrpc_call *call, int type_code, uintptr_t handle)
{
	call->value.v_int64 = (int64_t)handle;
	call->type_code = type_code;
	return true;
}

/* ---------------------------------------------------------------- library.c */

/*
 * Returns the first name of a registry. Each further name follows the NUL of the previous name.
 * `*count` is the number of names, 0 for no registry.
 */
const char *minrpc_packed_names(const TVMFuncRegistry *registry, uint32_t *count);

/* ------------------------------------------------------------------ guard.c */

/* Fails when the called function wrote beside an array. */
#if MINRPC_GUARDS
bool minrpc_inspect_memory(struct minrpc_call *call);
#else
#define minrpc_inspect_memory(call) true
#endif

/* ---------------------------------------------------------------- globals.c */

extern const struct minrpc_module minrpc_globals;

/*
 * Returns the handle of the function with this name; 0 when there is none. A name after a colon is
 * in the library: so our client needs one question instead of four, on links where a byte takes
 * tens of microseconds.
 */
uintptr_t minrpc_global_find(const struct minrpc_server *server, const char *name);

/* ------------------------------------------------------------------- info.c */

bool minrpc_device_info(struct minrpc_call *call);

/* ----------------------------------------------------------------- random.c */

bool minrpc_random_fill(struct minrpc_call *call);

/* ------------------------------------------------------------------- fill.c */

bool minrpc_threefry(struct minrpc_call *call);
bool minrpc_fill(struct minrpc_call *call);
bool minrpc_checksum(struct minrpc_call *call);

/* ------------------------------------------------------------------- code.c */

bool minrpc_code_alloc(struct minrpc_call *call);
bool minrpc_code_load(struct minrpc_call *call);

/* Describes the port's memory for code alone; empty if the arena is executable. */
void minrpc_code_memory(const struct minrpc_config *config, struct minrpc_arena *code);

/* The arena that blocks for code come from. */
struct minrpc_arena *minrpc_code_arena(struct minrpc_server *server);

/* ----------------------------------------------------------------- layout.c */

bool minrpc_layout(struct minrpc_call *call);

#if MINRPC_LAYOUT
/* Applies the layout that the last call asked for, if any. */
void minrpc_layout_take(struct minrpc_server *server);
/* Returns to the configuration's layout, unless live blocks prevent it. */
void minrpc_layout_restore(struct minrpc_server *server);
#else
#define minrpc_layout_take(server)    ((void)0)
#define minrpc_layout_restore(server) ((void)0)
#endif

/* ----------------------------------------------------------------- memory.c */

/* Makes the arenas of the configuration's memory, without a block. */
void minrpc_start_memory(struct minrpc_server *server);
/* Frees the session's objects. */
void minrpc_forget_session(struct minrpc_server *server);

/* ----------------------------------------------------------------- server.c */

/* True while a numbered request is answered. */
#define minrpc_is_numbered(server) (MINRPC_NUMBERED && (server)->numbered)

/* The place of the next message: the receive buffer, or its part behind the running request. */
static inline uint8_t *minrpc_inbox(const struct minrpc_server *server)
{
#if MINRPC_ASK
	return server->inbox;
#else
	return server->config->receive_buffer;
#endif
}

/* The size of that place in bytes. */
static inline uint32_t minrpc_inbox_size(const struct minrpc_server *server)
{
#if MINRPC_ASK
	return (uint32_t)((uint8_t *)server->config->receive_buffer + server->config->receive_size -
			  server->inbox);
#else
	return server->config->receive_size;
#endif
}

/* The RPC packet of the message in the inbox, of which `held` bytes have been received. */
static inline struct minrpc_cursor minrpc_packet_in(const struct minrpc_server *server,
						    uint32_t held)
{
	uint8_t *message = minrpc_inbox(server);

	return (struct minrpc_cursor){.at = message + MINRPC_SESSION_HEADER, .end = message + held};
}

/* Handles bytes of server->rest up to the next event of the frame reader. */
void minrpc_server_step(struct minrpc_server *server);

/* -------------------------------------------------------------------- ask.c */

/* Bytes of an answer's message around the answer itself. */
#define MINRPC_ANSWER_EXTRA                                                                        \
	(MINRPC_SESSION_HEADER + MINRPC_NUMBERED_EXTRA + MINRPC_PACKET_LENGTH + MINRPC_PACKET_CODE)

#if MINRPC_ASK
#define minrpc_is_asking(server) ((server)->asking)
/* Takes the packet of the answer; refuses any other packet. */
void minrpc_ask_deliver(struct minrpc_server *server, struct minrpc_cursor *packet);
/* True if the message in the inbox ends the session, and so the function that waits. */
bool minrpc_ask_is_ended(const struct minrpc_server *server, uint32_t length);
#else
#define minrpc_is_asking(server)            false
#define minrpc_ask_deliver(server, packet)  ((void)0)
#define minrpc_ask_is_ended(server, length) false
#endif

/* ---------------------------------------------------------------- abandon.c */

/*
 * True when the start of a new session waits on the link. The running request then gets no answer,
 * since its client has gone.
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

/*
 * Called when the buffer is full before the frame has ended. The payload of a copy to the device
 * then goes on straight to its destination.
 */
void minrpc_stream(struct minrpc_server *server);
/* Sets server->error to the reason why a copy was refused; to "" when the frame was no copy. */
void minrpc_stream_refusal(struct minrpc_server *server);

/* ----------------------------------------------------------------- resend.c */

/* Bytes that are kept for a numbered reply, at least: device_info and every short text fit. */
#define MINRPC_SPARE_MIN 512U

/* Frees the memory for a numbered reply. The next numbered request allocates it again. */
#if MINRPC_NUMBERED
void minrpc_free_spare(struct minrpc_server *server);
#else
#define minrpc_free_spare(server) ((void)0)
#endif
/*
 * Takes the packet of a numbered message. True when its request has to run: `packet` is then the
 * request's. Otherwise it has replied, since each request runs once, however often it arrives.
 */
bool minrpc_resend_accept(struct minrpc_server *server, struct minrpc_cursor *packet);
/*
 * Handles a probe of `length` bytes: sends the reply again, or reports that the request never came.
 */
void minrpc_resend_probed(struct minrpc_server *server, uint32_t length);
/* The global function "minrpc.resend". A client that finds it may send numbered messages. */
bool minrpc_resend_version(struct minrpc_call *call);
/* Asks the client for the request that follows the last numbered request. */
void minrpc_resend_ask(struct minrpc_server *server);
/* Allocates memory for the answer, before a numbered request runs. */
bool minrpc_resend_reserve(struct minrpc_server *server, const struct minrpc_cursor *packet);
/* Moves the reply's data out of the receive buffer, where the next bytes would overwrite it. */
void minrpc_resend_keep(struct minrpc_server *server);

/* -------------------------------------------------------------- evaluator.c */

/* A call of an evaluator runs this function. */
extern const struct minrpc_function minrpc_evaluator_function;

bool minrpc_evaluator_create(struct minrpc_call *call);
/*
 * Takes the same arguments. The evaluator's result is in cycles, with the number of calls and
 * batches of each repeat.
 */
bool minrpc_evaluator_create_counting(struct minrpc_call *call);

#if MINRPC_COUNTERS
/* --------------------------------------------------------------- counters.c */

/* A set of counters has a bit for each counter's number. The top bit means: mask interrupts. */
#define MINRPC_COUNTERS_MAX 31U
#define MINRPC_MASKED       (1U << MINRPC_COUNTERS_MAX)

/*
 * Sets `*chosen` to the set of the counters in `names`, which commas separate. The name
 * interrupts_masked means that no interrupt runs during a timed batch. Fails at the first name that
 * is unknown.
 */
bool minrpc_counters_choose(struct minrpc_server *server, const char *names, uint32_t *chosen);
uint32_t minrpc_counters_count(uint32_t chosen);
/*
 * Writes the names of the set, a NUL behind each, unless `to` is NULL. Returns their size, rounded
 * up to a multiple of 8.
 */
uint32_t minrpc_counters_names(const struct minrpc_server *server, uint32_t chosen, char *to);
/* Starts or stops the counters of the set. */
bool minrpc_counters_enable(struct minrpc_server *server, uint32_t chosen, bool on);
/*
 * Reads the counters of the set, one value for each. With `begins` it stores the reading, without
 * it the difference to the stored reading. Values of peaks stay as they are.
 */
void minrpc_counters_read(const struct minrpc_server *server, uint32_t chosen, uint64_t *values,
			  bool begins);
/* Stores the peaks of the set, if it has any, after a call that only measures them. */
bool minrpc_counters_peaks(struct minrpc_server *server, uint32_t chosen,
			   const struct minrpc_callee *callee, struct minrpc_call *call,
			   uint64_t *values);
bool minrpc_counters_list(struct minrpc_call *call);
bool minrpc_memory(struct minrpc_call *call);
#endif

#endif /* MINRPC_RPC_H_ */
