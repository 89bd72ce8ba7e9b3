/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The functions that can be called from Python: one line each in the table, and a few that unpack
 * their arguments.
 */
#include "rpc.h"

#include <zephyr/sys/util.h>

#include <minrpc/zephyr.h>

#include "filter.h"

static const DLTensor *tensor(const struct minrpc_call *call, int index)
{
	return call->args.values[index].v_handle;
}

static bool is_int16_row(const DLTensor *one)
{
	return one->ndim == 1 && one->dtype.code == kDLInt && one->dtype.bits == 16 &&
	       one->dtype.lanes == 1;
}

static const int16_t *samples_of(const DLTensor *one)
{
	return (const int16_t *)((const char *)one->data + one->byte_offset);
}

/* (samples: int16[n], taps: int16[n]) -> int */
static bool dot(struct minrpc_call *call)
{
	const DLTensor *samples = tensor(call, 0);
	const DLTensor *taps = tensor(call, 1);

	if (!is_int16_row(samples) || !is_int16_row(taps) || samples->shape[0] != taps->shape[0]) {
		return minrpc_fail(call->server, "dot: expected two int16 rows of one length");
	}
	return minrpc_return_int(
		call, filter_dot(samples_of(samples), samples_of(taps), samples->shape[0]));
}

/* (value: int, low: int, high: int) -> int */
static bool clamp_int(struct minrpc_call *call)
{
	const TVMValue *values = call->args.values;

	return minrpc_return_int(
		call, filter_clamp(values[0].v_int64, values[1].v_int64, values[2].v_int64));
}

static const struct minrpc_function functions[] = {
	{"dot", "tt", dot},
	{"clamp", "iii", clamp_int},
};

static const struct minrpc_module module = {.functions = functions, .count = ARRAY_SIZE(functions)};

int rpc_start(void)
{
	return minrpc_start((struct minrpc_library){.modules = &module, .count = 1});
}
