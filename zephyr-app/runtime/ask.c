/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Questions of a running function to the client. The question is the reply to the running request,
 * and the next request is the answer. Both are therefore numbered, and sent again, like all other
 * messages.
 */
#include <minrpc/ask.h>

#include "rpc.h"

#if MINRPC_ASK

bool minrpc_ask_is_ended(const struct minrpc_server *server, uint32_t length)
{
	const uint8_t *message = server->inbox;

	return length >= MINRPC_SESSION_HEADER &&
	       ((message[2] == MINRPC_MESSAGE_START_INIT && message[0] != 0U) ||
		message[2] == MINRPC_MESSAGE_TERMINATE);
}

void minrpc_ask_deliver(struct minrpc_server *server, struct minrpc_cursor *packet)
{
	uint32_t size = minrpc_take_size(packet);

	if (server->oversize == 0U && size == minrpc_cursor_left(packet) &&
	    minrpc_take_u32(packet) == MINRPC_RPC_ANSWER && !minrpc_cursor_bad(packet)) {
		server->answer = *packet;
		return;
	}
	(void)minrpc_fail(server, "no answer: a function waits for an answer");
	minrpc_reply_exception(server);
	minrpc_reply_send(server);
}

/* Puts the next message behind the decoded arguments. Returns false when there is no room. */
static bool make_room(struct minrpc_server *server)
{
	const uint8_t *buffer = server->config->receive_buffer;
	uint32_t used = (uint32_t)(server->scratch - buffer);

	if (used + MINRPC_ANSWER_EXTRA + MINRPC_ANSWER_MIN > server->config->receive_size) {
		return minrpc_fail(server, "the arguments leave no room for an answer");
	}
	server->inbox = server->config->receive_buffer;
	server->inbox += used;
	return true;
}

/* Waits for the answer. Returns false if the function must end. */
static bool wait_for_answer(struct minrpc_server *server)
{
	const struct minrpc_config *config = server->config;

	server->answer.at = NULL;
	server->asking = true;
	while (server->answer.at == NULL && !server->abandoned) {
		if (server->rest_size != 0U) {
			minrpc_server_step(server);
		} else {
			server->rest_size =
				config->platform->receive(config->context, &server->rest);
#if MINRPC_COUNTERS
			server->link_received += server->rest_size;
#endif
		}
	}
	server->asking = false;
	if (server->abandoned) {
		return minrpc_fail(server, "ended: a new session begins");
	}
	server->inbox = config->receive_buffer;
	server->error[0] = '\0';
	return minrpc_cursor_left(&server->answer) != 0U ||
	       minrpc_fail(server, "the client ended the function");
}

static bool may_ask(struct minrpc_server *server)
{
	if (server->abandoned) { /* a caller of the ended function went on */
		return minrpc_fail(server, "ended: a new session begins");
	}
	if (!server->own_client) {
		return minrpc_fail(server, "the client can't answer a running function");
	}
	return server->config->platform->receive != NULL ||
	       minrpc_fail(server, "the port can't wait for an answer");
}

static bool send_question(struct minrpc_server *server, const void *question, uint32_t size)
{
	(void)minrpc_reply_data(server, (void *)(uintptr_t)question, size);
	server->reply.kind = MINRPC_REPLY_ASK;
	minrpc_reply_send(server);
	return true;
}

const void *minrpc_ask(struct minrpc_server *server, const void *question, uint32_t size,
		       uint32_t *answer_size)
{
	if (server->escape == NULL || server->asking) {
		return NULL;
	}
	if (!may_ask(server) || !make_room(server) || !send_question(server, question, size) ||
	    !wait_for_answer(server)) {
		__builtin_longjmp(server->escape, 1);
	}
	*answer_size = minrpc_cursor_left(&server->answer);
	return server->answer.at;
}

#endif
