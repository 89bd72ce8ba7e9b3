/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Whether a client still waits for what is being measured: one that opens a new session does not.
 */
#include "rpc.h"

/* Looks for the frame that starts a session among bytes that wait; they stay where they are. */
static bool holds_session_start(const uint8_t *data, uint32_t size)
{
	struct minrpc_reader reader = {0};
	uint8_t message[MINRPC_SESSION_HEADER + 1U];

	for (;;) {
		switch (minrpc_reader_feed(&reader, &data, &size)) {
		case MINRPC_READER_MORE:
			return false;
		case MINRPC_READER_LENGTH:
			minrpc_reader_sink(&reader, message, sizeof(message));
			break;
		case MINRPC_READER_FULL:
			minrpc_reader_sink(&reader, NULL, UINT32_MAX);
			break;
		case MINRPC_READER_FRAME:
			if (reader.length == sizeof(message) && message[0] != 0U &&
			    message[2] == MINRPC_MESSAGE_START_INIT) {
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
	const uint8_t *data;
	uint32_t size;

	if (config->platform->pending == NULL) {
		return false;
	}
	size = config->platform->pending(config->context, &data);
	if (size == 0U || !holds_session_start(data, size)) {
		return false;
	}
	server->abandoned = true;
	(void)minrpc_fail(server, "ended: a new session begins");
	return true;
}
