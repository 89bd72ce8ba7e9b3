/* SPDX-License-Identifier: Apache-2.0 */
#include <minrpc/counter.h>

static uint64_t read_own(void *context)
{
	(void)context;
	static uint64_t reads = 0xfffffffffffffff0U;

	return ++reads;
}

static uint64_t read_narrow(void *context)
{
	(void)context;
	static uint8_t reads;

	return ++reads;
}

const struct minrpc_counter minrpc_own_counters[] = {
	{"own_reads", "reads", 64, read_own},
	{"own_narrow", "reads", 8, read_narrow},
	{0},
};
