/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Copies to the device that exceed the receive buffer. Once the buffer is full, the payload goes on
 * straight to its destination.
 */
#include <string.h>

#include "rpc.h"

#if MINRPC_STREAMING

/*
 * Returns the destination of the copy whose front is in `packet`; NULL when the frame is no such
 * copy.
 */
static uint8_t *find_destination(struct minrpc_server *server, struct minrpc_cursor *packet)
{
	const uint8_t *message = server->config->receive_buffer;
	uint32_t beyond = server->oversize - server->config->receive_size;
	bool checked = message[2] == MINRPC_MESSAGE_CHECKED;
	uint32_t check = 0U;
	uint8_t *destination;
	const uint8_t *head;
	uint32_t size;

	/* Lower types change the session, which must wait for a good CRC. */
	if (message[2] < MINRPC_MESSAGE_NORMAL ||
	    minrpc_session_take(&server->session, message, server->config->receive_size) !=
		    MINRPC_SESSION_DELIVER) {
		return NULL;
	}
	if (checked) {
		check = minrpc_take_u32(packet);
	}
	head = packet->at;
	size = minrpc_take_size(packet);
	if (size != minrpc_cursor_left(packet) + beyond ||
	    minrpc_take_u32(packet) != MINRPC_RPC_COPY_TO_REMOTE) {
		return NULL;
	}
	/* Without its own check the address may be damaged. Only v0.7's clients need this form. */
	if (!checked && server->dialect != MINRPC_DIALECT_0_7) {
		return NULL;
	}
	destination = minrpc_copy_stream(server, packet, beyond);
	if (destination != NULL && checked &&
	    minrpc_crc32(0U, head, (uint32_t)(packet->at - head)) != check) {
		return NULL;
	}
	return destination;
}

void minrpc_stream(struct minrpc_server *server)
{
	struct minrpc_cursor packet = minrpc_packet_in(server, server->config->receive_size);
	uint8_t *destination = find_destination(server, &packet);

	if (destination == NULL) {
		server->counters[MINRPC_OVERSIZE_FRAMES]++;
	} else {
		uint32_t here = minrpc_cursor_left(&packet);

		destination = (uint8_t *)memcpy(destination, packet.at, here) + here;
		server->streaming = true;
	}
	minrpc_reader_sink(&server->reader, destination, UINT32_MAX);
}

void minrpc_stream_refusal(struct minrpc_server *server)
{
	struct minrpc_cursor packet = minrpc_packet_in(server, server->config->receive_size);

	server->error[0] = '\0';
	(void)find_destination(server, &packet);
}

#endif
