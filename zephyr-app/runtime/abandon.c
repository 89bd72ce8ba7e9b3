/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Looks for the start of a new session among the bytes that have arrived behind the running
 * request. Such a start means that the client of this request has gone.
 */
#include "rpc.h"

#if MINRPC_ABANDON

/* The state of a look through waiting bytes. The bytes stay where they are. */
struct look {
	struct minrpc_reader reader;
	uint8_t message[MINRPC_SESSION_HEADER + 1U];
};

/* True when a frame that starts a session ends in this piece. */
static bool finds_session_start(struct look *look, const uint8_t *data, uint32_t size)
{
	struct minrpc_reader *reader = &look->reader;

	for (;;) {
		switch (minrpc_reader_feed(reader, &data, &size)) {
		case MINRPC_READER_MORE:
			return false;
		case MINRPC_READER_LENGTH:
			minrpc_reader_sink(reader, look->message, sizeof(look->message));
			break;
		case MINRPC_READER_FULL:
			minrpc_reader_sink(reader, NULL, UINT32_MAX);
			break;
		case MINRPC_READER_FRAME:
			if (reader->length == sizeof(look->message) && look->message[0] != 0U &&
			    look->message[2] == MINRPC_MESSAGE_START_INIT) {
				return true;
			}
			break;
		default:
			break;
		}
	}
}

bool minrpc_is_abandoned(struct minrpc_server *server)
{
	const struct minrpc_config *config = server->config;
	struct look look = {{0}, {0}};
	const uint8_t *data = server->rest;
	uint32_t size = server->rest_size;
	uint32_t from = 0U;

	/*
	 * Read before the look: bytes that arrive during the look cause another look after the next
	 * call.
	 */
	server->seen = *server->received;
	if (config->platform->pending == NULL) {
		return false;
	}
	while (!finds_session_start(&look, data, size)) {
		size = config->platform->pending(config->context, from, &data);
		from += size;
		if (size == 0U) {
			return false;
		}
	}
	server->abandoned = true;
	return !minrpc_fail(server, "ended: a new session begins");
}

#endif
