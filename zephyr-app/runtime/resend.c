/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numbered messages: on a link that loses bytes a request may arrive again, and a reply may have to be sent again.
 * A request runs once; what it was answered is kept until the next.
 */
#include <string.h>

#include "rpc.h"

/* What the reply points to outlives a second copy of the request. */
tvm_crt_error_t minrpc_resend_keep(struct minrpc_server *server, uint32_t length)
{
	const uint8_t *message = server->config->receive_buffer;
	TVMByteArray *bytes = server->reply.value.v_handle;
	bool string = server->reply.type_code == kTVMStr;
	const char *data;
	uint32_t size;

	if (server->reply.kind != MINRPC_REPLY_CALL ||
	    (!string && server->reply.type_code != kTVMBytes)) {
		return kTvmErrorNoError;
	}
	data = string ? server->reply.value.v_str : bytes->data;
	size = string ? (uint32_t)strlen(data) + 1U : (uint32_t)bytes->size;
	if ((uintptr_t)data - (uintptr_t)message >= length) {
		return kTvmErrorNoError;
	}
	if (minrpc_arena_alloc(&server->arena, size, 1U, MINRPC_ARENA_RESULT, &server->result) !=
	    kTvmErrorNoError) {
		return minrpc_server_fail_memory(server, size);
	}
	memcpy(server->result, data, size);
	if (string) {
		server->reply.value.v_str = server->result;
	} else {
		bytes->data = server->result;
	}
	return kTvmErrorNoError;
}

void minrpc_resend_ask(struct minrpc_server *server)
{
	minrpc_send_message(server, MINRPC_MESSAGE_RESEND, server->session.id, &server->sequence,
		     sizeof(server->sequence));
}

/* True when it is whole: the frame's own CRC lets one broken message in 65,536 through. */
static bool check_numbered(const struct minrpc_server *server, uint32_t length)
{
	uint32_t body = length - (uint32_t)sizeof(uint32_t);
	uint8_t *message = server->config->receive_buffer;
	struct minrpc_cursor check = {.at = message + body, .end = message + length};

	return length >= MINRPC_SESSION_HEADER + MINRPC_NUMBERED_EXTRA && server->oversize == 0U &&
	       minrpc_take_u32(&check) == minrpc_crc32(0U, message, body);
}

/* Runs a request once, however often it arrives. */
void minrpc_resend_deliver(struct minrpc_server *server, uint32_t length)
{
	struct minrpc_cursor packet = minrpc_packet_in(server, length);
	uint8_t sequence;

	server->numbered = true;
	if (!check_numbered(server, length)) {
		server->counters.crc_errors++;
		minrpc_resend_ask(server);
		return;
	}
	packet.end -= sizeof(uint32_t);
	sequence = *packet.at++;
	if (sequence == server->sequence) {
		minrpc_reply_send(server);
	} else if (sequence == (uint8_t)(server->sequence + 1U)) {
		server->sequence = sequence;
		minrpc_answer(server, &packet, length);
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
