/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The MinRPC server. A port owns a server and feeds it the received bytes; the server answers
 * through the port's write callback. It never blocks, allocates only from the arena, and keeps no
 * state elsewhere.
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

/** The largest packet that TVM's clients can send: the size of their own buffer. */
#define MINRPC_MAX_PACKET    8192U
/**
 * The largest reply that clients from TVM v0.12 on can receive, including the session header.
 * Earlier clients can receive more.
 */
#define MINRPC_CLIENT_PACKET 2048U
#define MINRPC_ERROR_TEXT    160U

/** The smallest receive buffer and send buffer. */
#define MINRPC_RECEIVE_MIN  512U
#define MINRPC_SEND_MIN     1U
#define MINRPC_BUILD_ID_MAX 32U

/**
 * The configuration. It stays the port's, unchanged, as long as the server is used.
 * minrpc_server_init checks each field. Sizes are in bytes.
 */
struct minrpc_config {
	/** The port's callbacks; some of them may be NULL, see struct minrpc_platform. */
	const struct minrpc_platform *platform;
	/** Passed to each callback. */
	void *context;

	/**
	 * Holds one session message and the decoded arguments of a call. 8-byte aligned,
	 * MINRPC_RECEIVE_MIN to MINRPC_MAX_PACKET bytes.
	 */
	void *receive_buffer;
	uint32_t receive_size;

	/**
	 * Gathers bytes for the write callback. At least MINRPC_SEND_MIN bytes; a larger buffer
	 * means fewer calls.
	 */
	void *send_buffer;
	uint32_t send_size;

	/**
	 * Memory for arrays, objects, workspace and results. Any size; with less than 32 bytes all
	 * allocations fail.
	 */
	void *arena;
	uint32_t arena_size;

#if MINRPC_LAYOUT
	/**
	 * Further memory that a client may use for arrays; executable if the arena is. Size 0:
	 * none.
	 */
	void *more_memory;
	uint32_t more_memory_size;
#endif

	/** The system library. It may have no modules. */
	struct minrpc_library library;

	/**
	 * Memory of the image that clients may read but not write, such as constants in flash. Size
	 * 0: none.
	 */
	const void *read_only;
	uint32_t read_only_size;

#if MINRPC_CODE_LOADING
	/**
	 * Executable memory for loaded code. NULL: the arena is executable and is used for code,
	 * too.
	 */
	void *code;
	uint32_t code_size;

	/**
	 * An emulator's page, in bytes: in memory of 32 pages or more, loaded code begins a page,
	 * so that stores to data beside it take no longer than others. A power of two; 0: none. A
	 * program that sets it has a symbol minrpc_code_page of this value; clients then keep code
	 * that begins a page apart from its variables.
	 */
	uint32_t code_page;
#endif

#if MINRPC_COUNTERS
	/** The port's counters; a counter without a name ends the list. NULL: none. */
	const struct minrpc_counter *counters;
#endif

	/**
	 * Identifies the image, for example the linker's build id. At most MINRPC_BUILD_ID_MAX
	 * bytes; 0: none.
	 */
	const void *build_id;
	uint8_t build_id_size;

	/**
	 * Start of the session nonces. Any value; a different value after each reset makes the
	 * server ignore old messages.
	 */
	uint8_t nonce_seed;
};

struct minrpc_object;

/** The low bits of a kind are the packet's RPC code. */
#define MINRPC_REPLY_CODE 0x4fU

enum minrpc_reply_kind {
	MINRPC_REPLY_NONE = 0,
	MINRPC_REPLY_VALUE = 0x04,     /**< result of a request that is no call: null or a handle */
	MINRPC_REPLY_CALL = 0x14,      /**< result of a function */
	MINRPC_REPLY_EXCEPTION = 0x05, /**< an error text */
	MINRPC_REPLY_DATA = 0x08,      /**< bytes of the device's memory */
	MINRPC_REPLY_ASK = 0x40,       /**< a question, whose answer is the next request */
};

/** The last reply, kept until the next request so that it can be sent again. */
struct minrpc_reply {
	TVMValue value;
	/** bytes of the data, string, bytes or shape that `value` points to; otherwise 0 */
	uint32_t size;
	uint8_t wire_code; /**< type code of the value on the wire */
	uint8_t kind;
	uint8_t type_code; /**< type code that the function returned */
};

/** Errors on the link since boot. */
enum minrpc_link_count {
	MINRPC_CRC_ERRORS,
	MINRPC_SHORT_PACKETS,
	MINRPC_INVALID_ESCAPES,
	MINRPC_OVERSIZE_FRAMES,
	MINRPC_STALE_MESSAGES,
	MINRPC_LINK_COUNTS,
};

/** The fields that are used most come first, where the shortest instructions reach them. */
struct minrpc_server {
	const struct minrpc_config *config;
	struct minrpc_session session;
	bool numbered; /**< the current request is numbered */
	/** the session's client has asked for a function that only this runtime has */
	bool own_client;
	uint8_t sequence; /**< of the last numbered request */
	bool abandoned;   /**< the client of the current request has gone */
	bool damaged;     /**< headers in the arena are damaged: the device can't continue */
	bool streaming;   /**< the payload of an oversize frame goes straight to its destination */
	uint8_t dialect;  /**< enum minrpc_dialect */
	/** length of the current frame, if it exceeds the receive buffer; otherwise 0 */
	uint32_t oversize;
	struct minrpc_reply reply;
	void *spare; /**< memory for the string or bytes of a numbered reply */
	uint32_t spare_size;
	void *result; /**< the reply's data, if it is in the arena */
	struct minrpc_object *objects;
	uint32_t object_serial; /**< for the handle of the next object */
	uint32_t random_state;
	/** Bytes behind the current message that arrived together with it. */
	const uint8_t *rest;
	uint32_t rest_size;
#if MINRPC_ASK
	uint8_t *inbox;              /**< the next message's place in the receive buffer */
	uint8_t *scratch;            /**< end of the running request's decoded arguments */
	void **escape;               /**< return point to end the running function; or NULL */
	struct minrpc_cursor answer; /**< of the last question; its `at` is NULL until it arrives */
	bool asking;                 /**< a function waits for an answer */
#endif
#if MINRPC_ABANDON
	const volatile uint32_t *received; /**< changes when bytes arrive */
	uint32_t seen;                     /**< value of `received` at the last look for bytes */
	uint32_t left; /**< calls of the last batch that were not made, since bytes arrived */
#endif
	struct minrpc_arena arena;
#if MINRPC_CODE_LOADING || MINRPC_LAYOUT
	struct minrpc_arena code;
#endif
#if MINRPC_LAYOUT
	struct minrpc_arena next_arena; /**< the layout that takes effect after the call */
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
 * Checks the configuration and announces the device with a terminate message.
 *
 * @param server  the caller's, of any content
 * @param config  must outlive the server
 * @return false when a field is wrong, which server->error names. Then only minrpc_server_log may
 *         be called, and it does nothing.
 */
bool minrpc_server_init(struct minrpc_server *server, const struct minrpc_config *config);

/**
 * Takes received bytes of any content; runs and answers the requests among them. Must not be called
 * from an interrupt or from a function that the server runs.
 *
 * @param data  any part of a message, or several messages; valid until the function returns
 * @param size  bytes
 */
void minrpc_server_receive(struct minrpc_server *server, const uint8_t *data, uint32_t size);

/**
 * Sends text to the client's log, in pieces of MINRPC_LOG_MAX bytes. Empty text is not sent. Must
 * be called in the context of minrpc_server_receive, for example by a function.
 *
 * @return 0; -1 when a frame is in progress, the link refused a piece, or the server is not
 * initialized
 */
int minrpc_server_log(struct minrpc_server *server, const char *text, uint32_t size);

/**
 * Sends the last words of a device to the log, from anywhere: it gives up a frame in progress. It
 * is for a fault handler that restarts the device afterwards.
 */
void minrpc_server_last_words(struct minrpc_server *server, const char *text, uint32_t size);

/** Ends the session, from anywhere. It is for a device that halts after its last words. */
void minrpc_server_last_message(struct minrpc_server *server);

/**
 * Sets the text of the exception that ends the running request. The text is copied and cut at
 * MINRPC_ERROR_TEXT.
 *
 * @return false, for `return minrpc_set_error(...)`
 */
bool minrpc_set_error(struct minrpc_server *server, const char *text);

/**
 * Fails: `return minrpc_fail(server, "expected %u bytes", size)`. The format is minrpc_text's.
 * Without MINRPC_ERROR_TEXTS the text is the source file and line, and the arguments are not
 * evaluated.
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
/** Never called: lets the compiler check the arguments. */
__attribute__((format(printf, 1, 2))) int minrpc_no_text(const char *format, ...);
#endif

/**
 * Allocates like minrpc_arena_alloc.
 *
 * @return NULL when there is no memory, after it has set the failure's text
 */
void *minrpc_server_alloc(struct minrpc_server *server, uint32_t size, uint32_t alignment,
			  enum minrpc_arena_kind kind);

/** Fails with the size that was asked for and the largest free size of the arena. */
bool minrpc_fail_memory(struct minrpc_server *server, const struct minrpc_arena *arena,
			uint32_t size);

#ifdef __cplusplus
}
#endif

#endif /* MINRPC_SERVER_H_ */
