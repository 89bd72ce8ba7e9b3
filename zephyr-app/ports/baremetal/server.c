/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The server of this image, and its buffer for requests.
 */
#include <minrpc/baremetal.h>

#include "machine.h"
#include "port.h"

static struct minrpc_server server;

_Alignas(8) uint8_t receive_buffer[MACHINE_PACKET_BYTES];

struct minrpc_server *minrpc_device(void)
{
	return &server;
}
