/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numbered messages: on a link that loses bytes a request may arrive again, and a reply may have to be sent again.
 * A request runs once; what it was answered is kept until the next.
 */
#include <string.h>

#include "rpc.h"

#if MINRPC_NUMBERED

/* A text or bytes in the receive buffer move out of the way of whatever arrives before the next request. */
bool minrpc_resend_keep(struct minrpc_server *server)
{
	struct minrpc_reply *reply = &server->reply;
	const char *data = reply->value.v_str;

	if (reply->kind != MINRPC_REPLY_CALL ||
	    (reply->wire_code != kTVMStr && reply->wire_code != kTVMBytes) ||
	    (uintptr_t)data - (uintptr_t)server->config->receive_buffer >=
		    server->config->receive_size) {
		return true;
	}
	server->result = minrpc_server_alloc(server, reply->size, 1U, MINRPC_ARENA_RESULT);
	if (server->result == NULL) {
		return false;
	}
	reply->value.v_handle = memcpy(server->result, data, reply->size);
	return true;
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

/* True when it is whole: the frame's own CRC lets one broken message in 65,536 through. */
static bool check_numbered(const struct minrpc_server *server, uint32_t length)
{
	uint8_t *message = server->config->receive_buffer;
	uint32_t body = length - (uint32_t)sizeof(uint32_t);
	struct minrpc_cursor check;

	if (length < MINRPC_SESSION_HEADER + MINRPC_NUMBERED_EXTRA || server->oversize != 0U) {
		return false;
	}
	check = (struct minrpc_cursor){.at = message + body, .end = message + length};
	return minrpc_take_u32(&check) == minrpc_crc32(0U, message, body);
}

/* Runs a request once, however often it arrives. */
void minrpc_resend_deliver(struct minrpc_server *server, uint32_t length)
{
	struct minrpc_cursor packet = minrpc_packet_in(server, length);
	uint8_t sequence;

	server->numbered = true;
	if (!check_numbered(server, length)) {
		server->counters[MINRPC_CRC_ERRORS]++;
		minrpc_resend_ask(server);
		return;
	}
	packet.end -= sizeof(uint32_t);
	sequence = *packet.at++;
	if (sequence == server->sequence) {
		minrpc_reply_send(server);
	} else if (sequence == (uint8_t)(server->sequence + 1U)) {
		server->sequence = sequence;
		minrpc_answer(server, &packet);
	}
}

/* The client waits for a reply: it gets it, or learns that the request never came. */
void minrpc_resend_probed(struct minrpc_server *server, uint32_t length)
{
	const uint8_t *message = server->config->receive_buffer;

	server->numbered = true;
	if (length > MINRPC_SESSION_HEADER && message[MINRPC_SESSION_HEADER] == server->sequence) {
		minrpc_reply_send(server);
	} else {
		minrpc_resend_ask(server);
	}
}

#endif
