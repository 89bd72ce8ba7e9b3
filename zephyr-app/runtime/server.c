/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The server: received bytes become messages, messages are handled, sessions begin and end.
 */
#include <minrpc/server.h>

#include <string.h>

#include <minrpc/text.h>

#include "rpc.h"

#if MINRPC_COUNTERS
static int counted_write(void *context, const uint8_t *data, uint32_t size)
{
	struct minrpc_server *server = context;

	server->link_sent += size;
	return server->config->platform->write(server->config->context, data, size);
}
#endif

/* Only MINRPC_ABANDON needs the counter of arrivals. */
static void watch_arrivals(struct minrpc_server *server)
{
#if MINRPC_ABANDON
	static const uint32_t unnoticed;

	server->received = server->config->platform->received;
	if (server->received == NULL) {
		server->received = &unnoticed;
	}
#else
	(void)server;
#endif
}

bool minrpc_server_init(struct minrpc_server *server, const struct minrpc_config *config)
{
	memset(server, 0, sizeof(*server));
	if (!minrpc_check_config(server, config)) {
		return false;
	}
	server->config = config;
	server->session.nonce = config->nonce_seed;
#if MINRPC_COUNTERS
	minrpc_writer_init(&server->writer, config->send_buffer, config->send_size, counted_write,
			   server);
#else
	minrpc_writer_init(&server->writer, config->send_buffer, config->send_size,
			   config->platform->write, config->context);
#endif
	watch_arrivals(server);
	minrpc_start_memory(server);
#if MINRPC_ASK
	server->inbox = config->receive_buffer;
#endif
	minrpc_forget_session(server);
	minrpc_send_message(server, MINRPC_MESSAGE_TERMINATE, NULL, 0U);
	return true;
}

void minrpc_server_last_message(struct minrpc_server *server)
{
	minrpc_writer_abandon(&server->writer);
	minrpc_send_message(server, MINRPC_MESSAGE_TERMINATE, NULL, 0U);
}

int minrpc_server_log(struct minrpc_server *server, const char *text, uint32_t size)
{
	if (server->config == NULL || server->writer.open) {
		return -1;
	}
	while (size != 0U) {
		uint32_t piece = size < MINRPC_LOG_MAX ? size : MINRPC_LOG_MAX;

		minrpc_send_message(server, MINRPC_MESSAGE_LOG, text, piece);
		if (server->writer.failed) {
			return -1;
		}
		text += piece;
		size -= piece;
	}
	return 0;
}

void minrpc_server_last_words(struct minrpc_server *server, const char *text, uint32_t size)
{
	minrpc_writer_abandon(&server->writer);
	(void)minrpc_server_log(server, text, size);
}

/* Arguments: the frame's length, the receive buffer's size. */
static const char oversize_text[] = "skipped %u bytes: the receive buffer holds %u";

static void free_result(struct minrpc_server *server)
{
	if (server->result != NULL) {
		(void)minrpc_arena_free(&server->arena, (uintptr_t)server->result,
					MINRPC_ARENA_RESULT);
		server->result = NULL;
	}
}

/* Carries out the packet and describes the reply. */
static bool process(struct minrpc_server *server, struct minrpc_cursor *packet)
{
	uint32_t size = minrpc_take_size(packet);

	if (server->streaming) {
		return minrpc_reply_void(server);
	}
	if (server->oversize != 0U) {
#if MINRPC_STREAMING
		minrpc_stream_refusal(server);
#endif
		return server->error[0] == '\0' &&
		       minrpc_fail(server, oversize_text, (unsigned int)server->oversize,
				   (unsigned int)server->config->receive_size);
	}
	if (minrpc_cursor_bad(packet) || size != minrpc_cursor_left(packet)) {
		return minrpc_fail(server, "packet of %u bytes in a message of %u",
				   (unsigned int)size, (unsigned int)minrpc_cursor_left(packet));
	}
	return size == 0U || minrpc_request(server, packet);
}

#if MINRPC_GUARDS
/*
 * The blocks are lost, and with them all objects. Resets the device, or empties the memory if the
 * port can't reset.
 */
static void recover(struct minrpc_server *server)
{
	const struct minrpc_config *config = server->config;

	if (config->platform->reset != NULL) {
		config->platform->reset(config->context);
	}
	server->objects = NULL;
	minrpc_start_memory(server);
	minrpc_forget_session(server);
	server->session.established = false;
	minrpc_send_message(server, MINRPC_MESSAGE_TERMINATE, NULL, 0U);
}
#else
#define recover(server) ((void)0)
#endif

/* Carries out a message's packet, and replies. */
static void serve_packet(struct minrpc_server *server, struct minrpc_cursor *packet)
{
	if (minrpc_is_asking(server)) {
		minrpc_ask_deliver(server, packet);
		return;
	}
	free_result(server);
	server->error[0] = '\0';
	server->reply.kind = MINRPC_REPLY_NONE;
	if ((minrpc_is_numbered(server) && !minrpc_resend_reserve(server, packet)) ||
	    !process(server, packet)) {
		minrpc_reply_exception(server);
	}
	minrpc_layout_take(server);
	if (minrpc_is_numbered(server)) {
		minrpc_resend_keep(server);
	}
	if (server->abandoned) {
		server->abandoned = false;
		server->reply.kind = MINRPC_REPLY_NONE;
	}
	minrpc_reply_send(server);
	if (MINRPC_GUARDS && server->damaged) {
		recover(server);
	} else if (!minrpc_is_numbered(server)) {
		server->reply.kind = MINRPC_REPLY_NONE;
		free_result(server);
	}
}

static void handle_message(struct minrpc_server *server)
{
	static const uint8_t version = MINRPC_SESSION_VERSION;
	uint32_t length = server->reader.length;
	struct minrpc_cursor packet;

	if (length > minrpc_inbox_size(server)) {
		length = minrpc_inbox_size(server);
	}
	if (minrpc_is_asking(server) && minrpc_ask_is_ended(server, length)) {
		server->abandoned = true;
		return;
	}
	packet = minrpc_packet_in(server, length);
	switch (minrpc_session_take(&server->session, minrpc_inbox(server), length)) {
	case MINRPC_SESSION_STARTED:
		minrpc_forget_session(server);
		minrpc_send_message(server, MINRPC_MESSAGE_START_REPLY, &version, sizeof(version));
		break;
	case MINRPC_SESSION_ENDED:
		minrpc_forget_session(server);
		break;
	case MINRPC_SESSION_DELIVER:
		server->numbered = false;
		serve_packet(server, &packet);
		break;
#if MINRPC_NUMBERED
	case MINRPC_SESSION_NUMBERED:
		if (minrpc_resend_accept(server, &packet)) {
			serve_packet(server, &packet);
		}
		break;
	case MINRPC_SESSION_PROBE:
		minrpc_resend_probed(server, length);
		break;
#endif
	case MINRPC_SESSION_STALE:
		server->counters[MINRPC_STALE_MESSAGES]++;
#if MINRPC_NUMBERED
		/* A client that waits learns of a restart, also if the first message was lost. */
		if (minrpc_inbox(server)[2] == MINRPC_MESSAGE_PROBE &&
		    !server->session.established) {
			minrpc_send_message(server, MINRPC_MESSAGE_TERMINATE, NULL, 0U);
		}
#endif
		break;
	default:
		break;
	}
}

static void begin_frame(struct minrpc_server *server)
{
	uint32_t length = server->reader.length;
	uint32_t room = minrpc_inbox_size(server);

	server->streaming = false;
	server->oversize = length > room ? length : 0U;
	minrpc_reader_sink(&server->reader, minrpc_inbox(server), room);
}

/* Logs that an oversize frame was dropped, since no answer will report it. */
static void tell_oversize(struct minrpc_server *server)
{
#if MINRPC_ERROR_TEXTS
	char text[MINRPC_ERROR_TEXT]; /* not server->error, which may have to be sent again */

	if (server->oversize != 0U) {
		minrpc_text(text, sizeof(text),
			    server->streaming ? "a damaged copy of %u bytes was written as it came"
					      : oversize_text,
			    (unsigned int)server->oversize,
			    (unsigned int)server->config->receive_size);
		(void)minrpc_server_log(server, text, (uint32_t)strlen(text));
	}
#endif
	server->oversize = 0U;
}

static void drop_frame(struct minrpc_server *server, enum minrpc_link_count counter)
{
	server->counters[counter]++;
	tell_oversize(server);
	/* A frame is cut short by the next frame, which gets an answer: no resend is needed. */
	if (minrpc_is_numbered(server) && counter != MINRPC_SHORT_PACKETS) {
		minrpc_resend_ask(server);
	}
}

/* A message that does not fit the receive buffer, and is no long copy, is dropped. */
static void overflow(struct minrpc_server *server)
{
#if MINRPC_STREAMING
	if (!minrpc_is_asking(server)) {
		minrpc_stream(server);
		return;
	}
#endif
	server->counters[MINRPC_OVERSIZE_FRAMES]++;
	minrpc_reader_sink(&server->reader, NULL, UINT32_MAX);
}

static void end_frame(struct minrpc_server *server)
{
	handle_message(server);
#if MINRPC_ASK
	/* Now the message that ended a waiting function takes effect. */
	if (!server->asking && server->inbox != server->config->receive_buffer) {
		handle_message(server);
		server->inbox = server->config->receive_buffer;
	}
#endif
	server->oversize = 0U;
}

void minrpc_server_step(struct minrpc_server *server)
{
	switch (minrpc_reader_feed(&server->reader, &server->rest, &server->rest_size)) {
	case MINRPC_READER_MORE:
		break;
	case MINRPC_READER_LENGTH:
		begin_frame(server);
		break;
	case MINRPC_READER_FULL:
		overflow(server);
		break;
	case MINRPC_READER_FRAME:
		end_frame(server);
		break;
	case MINRPC_READER_BAD_CRC:
		drop_frame(server, MINRPC_CRC_ERRORS);
		break;
	case MINRPC_READER_SHORT:
		drop_frame(server, MINRPC_SHORT_PACKETS);
		break;
	case MINRPC_READER_ESCAPE:
		drop_frame(server, MINRPC_INVALID_ESCAPES);
		break;
	}
}

void minrpc_server_receive(struct minrpc_server *server, const uint8_t *data, uint32_t size)
{
#if MINRPC_COUNTERS
	server->link_received += size;
#endif
	server->rest = data;
	server->rest_size = size;
	while (server->rest_size != 0U) {
		minrpc_server_step(server);
	}
}
