/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The MinRPC server. A port owns one of these, feeds it the bytes that arrive, and it answers
 * through the port's write callback. Nothing here blocks, allocates outside the arena, or keeps
 * state anywhere else.
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

#ifdef __cplusplus
extern "C" {
#endif

/** What TVM's clients are told at the most: their own buffer. */
#define MINRPC_MAX_PACKET    8192U
/**
 * What clients from TVM v0.12 on can take in one reply, session header included; earlier ones take
 * more.
 */
#define MINRPC_CLIENT_PACKET 2048U
#define MINRPC_ERROR_TEXT    160U

/** The least that a receive buffer and a send buffer may have. */
#define MINRPC_RECEIVE_MIN  512U
#define MINRPC_SEND_MIN     1U
#define MINRPC_BUILD_ID_MAX 32U

/**
 * What a port hands in. It stays the port's, unchanged, as long as the server is used;
 * minrpc_server_init checks every field. Sizes are in bytes.
 */
struct minrpc_config {
	/** The port's callbacks; see there which may be NULL. */
	const struct minrpc_platform *platform;
	/** Handed to each callback. */
	void *context;

	/**
	 * One whole session message; the decoded arguments of a call share it. 8-byte aligned,
	 * MINRPC_RECEIVE_MIN to MINRPC_MAX_PACKET.
	 */
	void *receive_buffer;
	uint32_t receive_size;

	/** Gathers bytes for the write callback. MINRPC_SEND_MIN up; larger means fewer calls. */
	void *send_buffer;
	uint32_t send_size;

	/** Arrays, objects, workspace, results. Any size; what is below 32 holds nothing. */
	void *arena;
	uint32_t arena_size;

#if MINRPC_LAYOUT
	/**
	 * More memory that a client may have arrays lie in; executable where the arena is. Size 0:
	 * none.
	 */
	void *more_memory;
	uint32_t more_memory_size;
#endif

	/** The system library. Its modules may be none. */
	struct minrpc_library library;

	/**
	 * Memory of the image that a client may name but not write, such as constants in flash.
	 * Size 0: none.
	 */
	const void *read_only;
	uint32_t read_only_size;

#if MINRPC_CODE_LOADING
	/**
	 * Executable memory for code that is loaded. NULL: the arena is executable, blocks come
	 * from there.
	 */
	void *code;
	uint32_t code_size;
#endif

#if MINRPC_COUNTERS
	/** The port's, ended by one without a name. NULL: none. */
	const struct minrpc_counter *counters;
#endif

	/**
	 * What tells this image from any other, such as the linker's build id. At most
	 * MINRPC_BUILD_ID_MAX; 0: none.
	 */
	const void *build_id;
	uint8_t build_id_size;

	/**
	 * Where the session nonces start. Any value; a different one after each reset keeps old
	 * messages out.
	 */
	uint8_t nonce_seed;
};

struct minrpc_object;

/** The low bits are the packet's RPC code. */
#define MINRPC_REPLY_CODE 0x0fU

enum minrpc_reply_kind {
	MINRPC_REPLY_NONE = 0,
	MINRPC_REPLY_VALUE = 0x04,     /**< of a system call: null or a handle */
	MINRPC_REPLY_CALL = 0x14,      /**< what a function returned */
	MINRPC_REPLY_EXCEPTION = 0x05, /**< the error text */
	MINRPC_REPLY_DATA = 0x08,      /**< the device's memory */
};

/** The last reply, kept until the next request so that it can be sent again. */
struct minrpc_reply {
	TVMValue value;
	/**
	 * of data, bytes or a text, which value.v_handle points to, or of an array's shape; else 0
	 */
	uint32_t size;
	uint8_t wire_code; /**< type code of the value as it travels */
	uint8_t kind;
	uint8_t type_code; /**< and as a function returned it */
};

/** What went wrong on the link since boot. */
enum minrpc_link_count {
	MINRPC_CRC_ERRORS,
	MINRPC_SHORT_PACKETS,
	MINRPC_INVALID_ESCAPES,
	MINRPC_OVERSIZE_FRAMES,
	MINRPC_STALE_MESSAGES,
	MINRPC_LINK_COUNTS,
};

/** What is used most comes first: the shortest instructions reach only so far. */
struct minrpc_server {
	const struct minrpc_config *config;
	struct minrpc_session session;
	bool numbered;     /**< the request being answered was numbered */
	bool own_client;   /**< the session's client asked for what only this runtime has */
	uint8_t sequence;  /**< of the last numbered request */
	bool abandoned;    /**< nobody waits for an answer to the request being carried out */
	bool damaged;      /**< the arena's headers are: the device can't go on as it is */
	bool streaming;    /**< an oversize frame's payload goes straight to its destination */
	uint8_t dialect;   /**< enum minrpc_dialect */
	uint32_t oversize; /**< length of the frame being received, when it is over the buffer */
	struct minrpc_reply reply;
	void *spare; /**< where a numbered reply's text or bytes are kept */
	uint32_t spare_size;
	void *result; /**< what the reply points to, when that is in the arena */
	struct minrpc_object *objects;
	uint32_t object_serial; /**< of the next one's handle */
	uint32_t random_state;
#if MINRPC_ABANDON
	const volatile uint32_t *received; /**< changes when bytes come in */
	/** What came behind the message that is carried out, in the same piece. */
	const uint8_t *rest;
	uint32_t rest_size;
	uint32_t seen; /**< what `received` was at the last look for bytes */
	uint32_t left; /**< calls that the last batch did not make, as bytes came in */
#endif
	struct minrpc_arena arena;
#if MINRPC_CODE_LOADING || MINRPC_LAYOUT
	struct minrpc_arena code;
#endif
#if MINRPC_LAYOUT
	struct minrpc_arena next_arena; /**< where they will lie once the call is over */
	struct minrpc_arena next_code;
	bool laid_out;
#endif
	uint32_t counters[MINRPC_LINK_COUNTS];
#if MINRPC_COUNTERS
	uint32_t link_received; /**< bytes */
	uint32_t link_sent;
#endif
	struct minrpc_reader reader;
	struct minrpc_writer writer;
	struct minrpc_timer timer;
	char error[MINRPC_ERROR_TEXT];
};

/**
 * Checks the configuration and announces the device (a terminate message).
 *
 * @param server  the caller's, of any content
 * @param config  see there; must outlive the server
 * @return false when a field is wrong: server->error says which; the server can't be used, but for
 *         minrpc_server_log, which then does nothing
 */
bool minrpc_server_init(struct minrpc_server *server, const struct minrpc_config *config);

/**
 * Takes received bytes, whatever they are; runs and answers the requests among them. Not to be
 * called from an interrupt, nor by a function that it runs.
 *
 * @param data  valid until it returns; may be any part of a message, or several
 * @param size  bytes
 */
void minrpc_server_receive(struct minrpc_server *server, const uint8_t *data, uint32_t size);

/**
 * Sends text to the client's log, in pieces of MINRPC_LOG_MAX bytes; empty text is not sent. Call
 * from where minrpc_server_receive runs (functions do).
 *
 * @return 0, or -1 when a frame is under way, the link is gone, or the server has not been
 * initialised
 */
int minrpc_server_log(struct minrpc_server *server, const char *text, uint32_t size);

/**
 * The same for the last words of a device, from anywhere: a frame that is under way is given up.
 * For a fault handler that restarts the device next.
 */
void minrpc_server_last_words(struct minrpc_server *server, const char *text, uint32_t size);

/**
 * Makes `text` that of the exception that the running request ends with. Copied, cut at
 * MINRPC_ERROR_TEXT.
 *
 * @return false, for `return minrpc_set_error(...)`
 */
bool minrpc_set_error(struct minrpc_server *server, const char *text);

/**
 * The one way to fail: `return minrpc_fail(server, "expected %u bytes", size)`. `format` is
 * minrpc_text's. Where MINRPC_ERROR_TEXTS is off the text is the source file and line instead, and
 * the arguments are not evaluated.
 *
 * @return false
 */
#if MINRPC_ERROR_TEXTS
__attribute__((format(printf, 2, 3))) bool minrpc_fail(struct minrpc_server *server,
						       const char *format, ...);
#else
#define minrpc_fail(server, ...)                                                                   \
	((void)sizeof(minrpc_no_text(__VA_ARGS__)),                                                \
	 minrpc_set_error(server, __FILE_NAME__ ":" MINRPC_STRING(__LINE__)))
#define MINRPC_STRING(x)  MINRPC_STRING_(x)
#define MINRPC_STRING_(x) #x
/** Never called: it has the compiler see the arguments. */
__attribute__((format(printf, 1, 2))) int minrpc_no_text(const char *format, ...);
#endif

/**
 * Allocates for a function: see minrpc_arena_alloc.
 *
 * @return NULL when there is no room, and that is then the exception's text
 */
void *minrpc_server_alloc(struct minrpc_server *server, uint32_t size, uint32_t alignment,
			  enum minrpc_arena_kind kind);

/** Fails with what was asked for and what is free in the arena. */
bool minrpc_fail_memory(struct minrpc_server *server, const struct minrpc_arena *arena,
			uint32_t size);

#ifdef __cplusplus
}
#endif

#endif /* MINRPC_SERVER_H_ */
