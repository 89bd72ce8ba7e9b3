/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Between the files of the server; not for ports.
 */
#ifndef MINRPC_RPC_H_
#define MINRPC_RPC_H_

#include <minrpc/server.h>

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

/* A call under way: what it was given and what it gave. */
struct minrpc_call {
	struct minrpc_args args;
	TVMValue value;
	int type_code;
};

/* Handles have TVM's shape; all are looked up, none is a pointer but data addresses. */
#define MINRPC_HANDLE_MODULE    0x8000U
#define MINRPC_HANDLE_FUNCTION  0x80008000U /* + index in the system library */
#define MINRPC_HANDLE_GLOBAL    0x80028000U /* + index in the global functions */
#define MINRPC_HANDLE_EVALUATOR 0xc0000000U /* + serial, 30 bits */

/*
 * What carries out a request, or a part of it, returns true; or false when server->error says why it can't be done.
 */

/* ------------------------------------------------------------------ reply.c */

/* Each describes the reply and returns true; minrpc_reply_send sends it, as often as it is called. */
bool minrpc_reply_void(struct minrpc_server *server);
bool minrpc_reply_handle(struct minrpc_server *server, uintptr_t handle);
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

/* Carries out the packet (code and rest) and describes the reply; on failure server->error has the text. */
bool minrpc_request(struct minrpc_server *server, struct minrpc_cursor *packet);

/* ------------------------------------------------------------------- copy.c */

bool minrpc_copy_from_remote(struct minrpc_server *server, struct minrpc_cursor *body);
bool minrpc_copy_to_remote(struct minrpc_server *server, struct minrpc_cursor *body);

/* How many arguments v0.7's form has, which tells it from v0.8's. */
#define MINRPC_COPY_AMONG_0_7 9
bool minrpc_copy_among_remote(struct minrpc_server *server, const struct minrpc_args *args);

/*
 * For a packet that is not all there yet: the destination of a CopyToRemote whose body's first part is in
 * `body`, and of which `beyond` bytes are to come. NULL, or body->at is at the first data byte.
 */
uint8_t *minrpc_copy_stream(struct minrpc_server *server, struct minrpc_cursor *body,
			    uint32_t beyond);

/*
 * Fails unless the tensor's elements lie within a live allocation. Folds the byte offset into `data`: generated
 * code does not look at it. `constants`: it may be a constant of the image too.
 */
bool minrpc_bind_tensor(struct minrpc_server *server, DLTensor *tensor, bool constants);

/* ------------------------------------------------------------------- call.c */

/* Runs what `handle` names. On failure server->error has the text. */
bool minrpc_call_handle(struct minrpc_server *server, uintptr_t handle,
				   struct minrpc_call *call);

/*
 * Calls the function `number` times, or until it fails: then the text is its own, or one that says so. The loop is
 * what the time evaluator times: nothing else belongs in it.
 */
bool minrpc_run(struct minrpc_server *server, TVMBackendPackedCFunc function, uint32_t number,
		struct minrpc_call *call);

/* What an argument may be: a type code in each half of a byte. As strings, so that they can be joined. */
#define MINRPC_ARG_INT "\x0f"    /* or bool */
#define MINRPC_ARG_HANDLE "\x34" /* or null */
#define MINRPC_ARG_DTYPE "\x55"
#define MINRPC_ARG_DEVICE "\x66"
#define MINRPC_ARG_TENSOR "\x77"
#define MINRPC_ARG_MODULE "\x93" /* or handle */
#define MINRPC_ARG_STRING "\xbb"
#define MINRPC_ARG_STRING_OR_NULL "\xb4"

/* Fails with what was expected and what came, unless the arguments are those of `form`. */
bool minrpc_check_args(struct minrpc_server *server, const char *function,
		       const struct minrpc_args *args, const char *form);

/* ---------------------------------------------------------------- globals.c */

/*
 * The handle of the function of that name; 0 when there is none. After a colon it is one of the library's: our
 * client then has its first result after one question, not four, on links that move a byte in tens of microseconds.
 */
uintptr_t minrpc_global_find(const struct minrpc_library *library, const char *name);
/* The function of the index in such a handle, or NULL. */
typedef bool (*minrpc_global)(struct minrpc_server *server, struct minrpc_call *call);
minrpc_global minrpc_global_at(uint32_t index);

/* Fails unless it is the system library, the only module. */
bool minrpc_check_module(struct minrpc_server *server, const TVMValue *value);

/* -------------------------------------------------------- info.c, random.c */

bool minrpc_device_info(struct minrpc_server *server, struct minrpc_call *call);
bool minrpc_random_fill(struct minrpc_server *server, struct minrpc_call *call);

/* ----------------------------------------------------------------- server.c */

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

/* Carries out a message's packet, and replies. */
void minrpc_answer(struct minrpc_server *server, struct minrpc_cursor *packet);

/* ----------------------------------------------------------------- stream.c */

/* The buffer is full, the frame is not over: a copy to the device can go on to where it belongs. */
void minrpc_stream(struct minrpc_server *server);

/* ----------------------------------------------------------------- resend.c */

/* A numbered message of `length` bytes is in the receive buffer. */
void minrpc_resend_deliver(struct minrpc_server *server, uint32_t length);
/* So is a question for the reply: the client gets it, or learns that the request never came. */
void minrpc_resend_probed(struct minrpc_server *server, uint32_t length);
/* A global function: being there says that numbered messages are understood. */
bool minrpc_resend_version(struct minrpc_server *server, struct minrpc_call *call);
/* Asks the client for what follows the last numbered request. */
void minrpc_resend_ask(struct minrpc_server *server);
/* Keeps what the reply points to from being overwritten by what arrives before the next request. */
bool minrpc_resend_keep(struct minrpc_server *server);

/* -------------------------------------------------------------- evaluator.c */

bool minrpc_evaluator_create(struct minrpc_server *server, struct minrpc_call *call);
/* The same arguments; the evaluator's result is in cycles, with the number of calls and batches of each repeat. */
bool minrpc_evaluator_create_counting(struct minrpc_server *server,
						 struct minrpc_call *call);
bool minrpc_evaluator_call(struct minrpc_server *server, uintptr_t handle,
				      struct minrpc_call *call);
bool minrpc_evaluator_free(struct minrpc_server *server, uintptr_t handle);

#endif /* MINRPC_RPC_H_ */
