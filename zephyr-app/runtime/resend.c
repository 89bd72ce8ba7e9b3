/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numbered messages, for links that lose bytes: a request may arrive twice, and a reply may have to
 * be sent again. Each request runs once. Its reply is kept until the next request.
 */
#include <string.h>

#include "rpc.h"

#if MINRPC_NUMBERED

void minrpc_free_spare(struct minrpc_server *server)
{
	if (server->spare != NULL) {
		(void)minrpc_arena_free(&server->arena, (uintptr_t)server->spare,
					MINRPC_ARENA_RESULT);
	}
	server->spare = NULL;
	server->spare_size = 0U;
}

/*
 * Allocates memory for the answer before the request runs, so that no request runs whose answer
 * can't be kept. A result in the receive buffer is never longer than the request was, but for a
 * part of an answer to a question.
 */
bool minrpc_resend_reserve(struct minrpc_server *server, const struct minrpc_cursor *packet)
{
	struct minrpc_cursor head = *packet;
	uint32_t size = minrpc_take_size(&head);

	if (minrpc_take_u32(&head) != MINRPC_RPC_CALL_FUNC || size < MINRPC_SPARE_MIN) {
		size = MINRPC_SPARE_MIN;
	}
	if (size <= server->spare_size) {
		return true;
	}
	minrpc_free_spare(server);
	server->spare = minrpc_server_alloc(server, size, 1U, MINRPC_ARENA_RESULT);
	server->spare_size = server->spare == NULL ? 0U : size;
	return server->spare != NULL;
}

/*
 * Moves a string or bytes out of the receive buffer, where the next message would overwrite them.
 */
void minrpc_resend_keep(struct minrpc_server *server)
{
	struct minrpc_reply *reply = &server->reply;
	uintptr_t within =
		(uintptr_t)reply->value.v_str - (uintptr_t)server->config->receive_buffer;

	if (reply->kind != MINRPC_REPLY_CALL ||
	    (reply->wire_code != kTVMStr && reply->wire_code != kTVMBytes) ||
	    within >= server->config->receive_size) {
		return;
	}
	if (reply->size > server->spare_size) { /* A part of the answer to a question. */
		(void)minrpc_fail(server,
				  "the result is a part of an answer, and too long to keep");
		minrpc_reply_exception(server);
	} else {
		reply->value.v_handle = memcpy(server->spare, reply->value.v_str, reply->size);
	}
}

bool minrpc_resend_version(struct minrpc_call *call)
{
	return minrpc_return_int(call, 1);
}

void minrpc_resend_ask(struct minrpc_server *server)
{
	minrpc_send_message(server, MINRPC_MESSAGE_RESEND, &server->sequence,
			    sizeof(server->sequence));
}

/* True when the message is intact: the frame's own CRC misses one damaged message in 65,536. */
static bool check_numbered(const struct minrpc_server *server, const struct minrpc_cursor *packet)
{
	uint8_t *message = minrpc_inbox(server);
	uint32_t length = (uint32_t)(packet->end - message);
	uint32_t body = length - (uint32_t)sizeof(uint32_t);
	struct minrpc_cursor check = {.at = message + body, .end = message + length};

	return length >= MINRPC_SESSION_HEADER + MINRPC_NUMBERED_EXTRA && server->oversize == 0U &&
	       minrpc_take_u32(&check) == minrpc_crc32(0U, message, body);
}

bool minrpc_resend_accept(struct minrpc_server *server, struct minrpc_cursor *packet)
{
	uint8_t sequence;

	server->numbered = true;
	if (!check_numbered(server, packet)) {
		server->counters[MINRPC_CRC_ERRORS]++;
		minrpc_resend_ask(server);
		return false;
	}
	packet->end -= sizeof(uint32_t);
	sequence = *packet->at++;
	if (sequence == (uint8_t)(server->sequence + 1U)) {
		server->sequence = sequence;
		return true;
	}
	if (sequence == server->sequence) {
		minrpc_reply_send(server);
	} else {
		minrpc_resend_ask(server);
	}
	return false;
}

/* The client waits for a reply: sends it again, or reports that the request never came. */
void minrpc_resend_probed(struct minrpc_server *server, uint32_t length)
{
	const uint8_t *message = minrpc_inbox(server);

	server->numbered = true;
	if (length > MINRPC_SESSION_HEADER && message[MINRPC_SESSION_HEADER] == server->sequence &&
	    server->reply.kind != MINRPC_REPLY_NONE) {
		minrpc_reply_send(server);
	} else {
		minrpc_resend_ask(server);
	}
}

#endif
