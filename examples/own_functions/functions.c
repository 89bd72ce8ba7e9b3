/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * An application: a filter and a checksum of its own; it uses only the library of this project.
 */
#include "functions.h"

/* y[i] = the mean of x up to i, over at most `width` elements; both int16. */
static bool smooth(struct minrpc_call *call)
{
	const DLTensor *from = call->args.values[0].v_handle;
	const DLTensor *to = call->args.values[1].v_handle;
	int64_t width = call->args.values[2].v_int64;
	const int16_t *x = from->data;
	int16_t *y = to->data;
	int32_t sum = 0;

	if (from->ndim != 1 || to->ndim != 1 || from->shape[0] != to->shape[0] ||
	    from->dtype.bits != 16U || to->dtype.bits != 16U) {
		return minrpc_fail(call->server, "smooth: expected two int16 arrays of one length");
	}
	if (width < 1 || width > 1000) {
		return minrpc_fail(call->server, "smooth: expected a width of 1 to 1000");
	}
	for (int64_t i = 0; i < from->shape[0]; i++) {
		sum += x[i] - (i < width ? 0 : x[i - width]);
		y[i] = (int16_t)(sum / (int32_t)(i < width ? i + 1 : width));
	}
	return true;
}

/* Adler-32 of an array's bytes. */
static bool adler32(struct minrpc_call *call)
{
	const DLTensor *data = call->args.values[0].v_handle;
	const uint8_t *bytes = data->data;
	uint32_t size = minrpc_tensor_size(data, data->shape);
	uint32_t a = 1U;
	uint32_t b = 0U;

	for (uint32_t i = 0U; i < size; i++) {
		a = (a + bytes[i]) % 65521U;
		b = (b + a) % 65521U;
	}
	return minrpc_return_int(call, (int64_t)(b << 16 | a));
}

static const struct minrpc_function functions[] = {
	{"smooth", "twi", smooth},
	{"adler32", "t", adler32},
};

const struct minrpc_module own_functions = {.functions = functions, .count = 2U};
