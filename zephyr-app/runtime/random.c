/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * tvm.contrib.random.random_fill, which AutoTVM calls.
 */
#include "rpc.h"

#if MINRPC_RANDOM_FILL

/* xorshift32; each session gets the same bytes. */
static uint32_t next_random(struct minrpc_server *server)
{
	uint32_t x = server->random_state;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	server->random_state = x;
	return x;
}

bool minrpc_random_fill(struct minrpc_call *call)
{
	const DLTensor *tensor = call->args.values[0].v_handle;
	uint32_t size = minrpc_tensor_size(tensor, tensor->shape);
	uint32_t element = tensor->dtype.bits / 8U;

	for (uint32_t i = 0U; i < size; i++) {
		uint8_t byte = (uint8_t)(next_random(call->server) >> 24);

		/*
		 * Limits the exponent of a float, in its top byte, to a little below the exponent
		 * of 2: so there is no infinity, NaN or denormal.
		 */
		if (tensor->dtype.code >= kDLFloat && element > 1U && i % element == element - 1U) {
			byte = (byte & 0x83U) | 0x3cU;
		}
		((uint8_t *)tensor->data)[i] = byte;
	}
	return true;
}

#endif
