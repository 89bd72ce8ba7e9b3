/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The MinRPC server. A port owns one of these, feeds it the bytes that arrive, and it answers through the
 * port's write callback. Nothing here blocks, allocates outside the arena, or keeps state anywhere else.
 */
#ifndef MINRPC_SERVER_H_
#define MINRPC_SERVER_H_

#include <minrpc/arena.h>
#include <minrpc/frame.h>
#include <minrpc/function.h>
#include <minrpc/packed.h>
#include <minrpc/platform.h>
#include <minrpc/session.h>
#include <minrpc/timer.h>

/* What TVM's clients are told at the most: their own buffer. */
#define MINRPC_MAX_PACKET 8192U
/* What clients from TVM v0.12 on can take in one reply, session header included; earlier ones take more. */
#define MINRPC_CLIENT_PACKET 2048U
#define MINRPC_ERROR_TEXT 160U

struct minrpc_config {
	const struct minrpc_platform *platform;
	void *context; /* handed to each callback */

	/* One whole session message; the decoded arguments of a call share it. 8-byte aligned, 512 bytes to 8192. */
	void *receive_buffer;
	uint32_t receive_size;

	/* Gathers bytes for the write callback. 1 byte up; larger means fewer calls. */
	void *send_buffer;
	uint32_t send_size;

	/* Tensors, evaluators, workspace, results. */
	void *arena;
	uint32_t arena_size;

	/* The system library. */
	struct minrpc_library library;

	/* Memory of the image that a client may name but not write, such as constants in flash. Size 0: none. */
	const void *read_only;
	uint32_t read_only_size;

#if MINRPC_CODE_LOADING
	/* Executable memory for code that is loaded. NULL: the arena is executable, blocks come from there. */
	void *code;
	uint32_t code_size;
#endif

	/* Where the session nonces start. Any value; a different one after each reset keeps old messages out. */
	uint8_t nonce_seed;
};

struct minrpc_object;

/* The low bits are the packet's RPC code. */
#define MINRPC_REPLY_CODE 0x0fU

enum minrpc_reply_kind {
	MINRPC_REPLY_NONE = 0,
	MINRPC_REPLY_VALUE = 0x04,     /* of a system call: null or a handle */
	MINRPC_REPLY_CALL = 0x14,      /* what a function returned */
	MINRPC_REPLY_EXCEPTION = 0x05, /* the error text */
	MINRPC_REPLY_DATA = 0x08,      /* the device's memory */
};

/* The last reply, kept until the next request so that it can be sent again. */
struct minrpc_reply {
	TVMValue value;
	uint32_t size; /* of data, bytes or a text, which value.v_handle points to, or of an array's shape; else 0 */
	uint8_t wire_code; /* type code of the value as it travels */
	uint8_t kind;
	uint8_t type_code; /* and as a function returned it */
};

/* What went wrong on the link since boot. */
enum minrpc_counter {
	MINRPC_CRC_ERRORS,
	MINRPC_SHORT_PACKETS,
	MINRPC_INVALID_ESCAPES,
	MINRPC_OVERSIZE_FRAMES,
	MINRPC_STALE_MESSAGES,
	MINRPC_COUNTERS,
};

/* What is used most comes first: the shortest instructions reach only so far. */
struct minrpc_server {
	const struct minrpc_config *config;
	struct minrpc_session session;
	bool numbered;    /* the request being answered was numbered */
	uint8_t sequence; /* of the last numbered request */
	bool streaming;   /* an oversize frame's payload goes straight to its destination */
	uint8_t dialect;  /* enum minrpc_dialect */
	uint32_t oversize; /* length of the frame being received, when it is over the buffer */
	struct minrpc_reply reply;
	void *result;      /* what the reply points to, when that is in the arena */
	struct minrpc_object *objects;
	uint32_t object_serial; /* of the next one's handle */
	uint32_t random_state;
	struct minrpc_arena arena;
#if MINRPC_CODE_LOADING
	struct minrpc_arena code;
#endif
	uint32_t counters[MINRPC_COUNTERS];
	struct minrpc_reader reader;
	struct minrpc_writer writer;
	struct minrpc_timer timer;
	char error[MINRPC_ERROR_TEXT];
};

/* Announces the device (a terminate message). `config` stays the caller's and must outlive the server. */
void minrpc_server_init(struct minrpc_server *server, const struct minrpc_config *config);

/* Takes received bytes, whatever they are; runs and answers the requests among them. */
void minrpc_server_receive(struct minrpc_server *server, const uint8_t *data, uint32_t size);

/*
 * Sends text to the client's log, cut at MINRPC_LOG_MAX bytes; empty text is not sent. Call from where
 * receive runs (functions do). Returns 0, or -1 when a frame is under way or the link is gone.
 */
int minrpc_server_log(struct minrpc_server *server, const char *text, uint32_t size);

/* Makes `format` (see minrpc_text) the text of the exception that the running request ends with. Returns false. */
__attribute__((format(printf, 2, 3))) bool minrpc_fail(struct minrpc_server *server,
						       const char *format, ...);

/* A block of the arena; NULL when there is no room, and that is then the exception's text. */
void *minrpc_server_alloc(struct minrpc_server *server, uint32_t size, uint32_t alignment,
			  enum minrpc_arena_kind kind);

#endif /* MINRPC_SERVER_H_ */
