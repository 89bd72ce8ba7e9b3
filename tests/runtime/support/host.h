/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The server on the host: a port whose link is memory and whose clock is scripted, and a client's
 * requests. Every buffer has its exact size, so that the sanitizer sees one byte too many.
 */
#ifndef HOST_H_
#define HOST_H_

#include <minrpc/server.h>

#include "packed_args.h"
#include "wire.h"

/* RPC codes, by their numbers in the protocol. */
enum {
	RPC_SHUTDOWN = 1,
	RPC_INIT_SERVER = 2,
	RPC_CALL_FUNC = 3,
	RPC_RETURN = 4,
	RPC_EXCEPTION = 5,
	RPC_COPY_FROM = 6,
	RPC_COPY_TO = 7,
	RPC_COPY_ACK = 8,
	RPC_GET_GLOBAL = 9,
	RPC_FREE_HANDLE = 10,
	RPC_SET_DEVICE = 11,
	RPC_GET_ATTR = 12,
	RPC_ALLOC = 13,
	RPC_FREE_DATA = 14,
	RPC_STREAM_SYNC = 15,
	RPC_COPY_AMONG = 16,
	RPC_ALLOC_SCOPE = 17,
	RPC_CREATE_STREAM = 18,
	RPC_FREE_STREAM = 19,
	RPC_SET_STREAM = 20,
	RPC_CURRENT_STREAM = 21,
	RPC_ASK = 64,
	RPC_ANSWER = 65,
};

/* Types of session messages. */
enum {
	TYPE_INIT = 0x00,
	TYPE_REPLY = 0x01,
	TYPE_TERMINATE = 0x02,
	TYPE_LOG = 0x03,
	TYPE_NORMAL = 0x10,
	TYPE_NUMBERED = 0x11,
	TYPE_RESEND = 0x12,
	TYPE_PROBE = 0x13,
	TYPE_CHECKED = 0x14,
};

struct message {
	uint16_t session;
	uint8_t type;
	struct bytes body;
};

/* The answer to a request, without the u64 in front. */
struct answer {
	uint32_t code;
	const uint8_t *body;
	uint32_t size;
	char text[1024]; /* of an exception, terminated */
};

/* A clock that moves only by additions to `now`. */
struct scripted_clock {
	struct minrpc_clock info;
	uint64_t now;
	uint64_t per_sample; /* added by each reading */
	uint64_t granule;    /* readings are multiples of this; 0 means 1 */
	uint64_t coarse;     /* of the second clock, if `info` has a second clock */
	uint64_t coarse_per_sample;
	uint32_t begun;
	uint32_t ended;
	int begin_result; /* the result of clock_begin */
};

struct host {
	struct minrpc_server server;
	struct minrpc_config config;
	struct minrpc_platform platform;
	struct scripted_clock clock;
	struct bytes sent; /* by the device, not taken yet */
	uint32_t writes;   /* calls of the port's write */
	bool link_gone;    /* write fails */
	uint32_t resets;
	uint32_t sleeps;
	uint64_t slept_ms;
	/* Appends the client's messages for a waiting function, turn by turn from 0; or NULL. */
	void (*waiting)(struct host *host, uint32_t turn, struct bytes *wire);
	uint32_t turns;
	struct bytes arrived; /* for the waiting function */
	uint16_t session;
	struct message message;
	struct answer answer;
};

struct host_sizes {
	uint32_t receive;
	uint32_t send;
	uint32_t arena;
};

/*
 * A device that has booted; its messages so far wait to be taken. The library has host_registry and
 * the operators.
 */
struct host *host_boot(struct host_sizes sizes);
/* The same device after a reset, in the same memory. */
void host_reboot(struct host *host);
void host_stop(struct host *host);
/* The running device, for functions of the library. */
struct host *host_current(void);

/* Bytes over the link to the device. */
void host_receive(struct host *host, const struct bytes *wire);
/* The same, and frees `wire`. */
void host_give(struct host *host, struct bytes *wire);

/*
 * The next message that the device sent; false when there is none. Its messages must be
 * well-formed.
 */
bool host_take(struct host *host);
/* The next message after any logs; fails if there is none. */
void host_take_next(struct host *host);

/* Opens a session and takes the answer. */
void host_open(struct host *host, uint8_t nonce);

/* Appends the frame of a request in a normal message: `code` and `body` (freed). */
void put_request(struct bytes *wire, uint16_t session, uint32_t code, struct bytes *body);
/* The same for a call without arguments. */
void put_call(struct bytes *wire, uint16_t session, uint64_t function);

/* Appends the frame of a numbered message; `body` (freed) is the sequence and the packet. */
void put_numbered(struct bytes *wire, uint16_t session, struct bytes *body);
/* The same for a request: `code` and `body` (freed). */
void put_numbered_request(struct bytes *wire, uint16_t session, uint8_t sequence, uint32_t code,
			  struct bytes *body);
/*
 * Leaves of a numbered message's body only the packet; returns the sequence. Fails unless its check
 * is right.
 */
uint8_t open_numbered(struct message *message);

/* Sends `body` (freed) under that RPC code; fails unless exactly one answer comes. */
const struct answer *host_request(struct host *host, uint32_t code, struct bytes *body);
/* The same with `args` for a body. */
const struct answer *host_syscall(struct host *host, uint32_t code, struct args *args);
const struct answer *host_call(struct host *host, uint64_t function, struct args *args);
const struct answer *host_try_alloc(struct host *host, uint64_t size, uint64_t alignment);
const struct answer *host_try_free(struct host *host, uint64_t data);
/* Requests in v0.7's form: addresses and offsets. */
const struct answer *host_copy_among(struct host *host, uint64_t from, uint64_t from_offset,
				     uint64_t to, uint64_t to_offset, uint64_t size);

/* Fail unless the answer is the expected answer. */
void expect_void(const struct answer *answer);
uint64_t expect_handle(const struct answer *answer);
/* The value of a call's answer: its type code must be `type`; returns the value's place. */
const uint8_t *expect_returned(const struct answer *answer, uint32_t type);

/* Requests of every client, each expected to succeed. */
uint64_t host_global(struct host *host, const char *name);
void host_free_data(struct host *host, uint64_t data);
void host_write(struct host *host, uint64_t data, const void *from, uint32_t size);
void host_read(struct host *host, uint64_t data, void *to, uint32_t size);

/* Bodies of copies: header only; the data follows for RPC_COPY_TO. */
void put_copy(struct bytes *body, enum dialect dialect, const struct tensor *tensor,
	      uint64_t nbytes);

/*
 * Walks the arena's blocks: they must tile it, and its counts must be right. Returns the number of
 * blocks that are not free.
 */
uint32_t arena_check(const struct minrpc_arena *arena);

#endif /* HOST_H_ */
