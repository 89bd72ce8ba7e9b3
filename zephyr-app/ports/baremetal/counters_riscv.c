/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Counters of a RISC-V processor in machine mode: cycles and retired instructions.
 */
#include <minrpc/counter.h>
#include <minrpc/minrpc_config.h>

#include "port.h"

#if MINRPC_COUNTERS

#define CSR(name, value) __asm__ volatile("csrr %0, " name : "=r"(value))

static uint64_t read_cycles(void *context)
{
	unsigned long low;
#if __riscv_xlen == 32
	unsigned long high;
	unsigned long again;

	/* The upper half may change between the two reads. */
	do {
		CSR("mcycleh", high);
		CSR("mcycle", low);
		CSR("mcycleh", again);
	} while (high != again);
	(void)context;
	return (uint64_t)high << 32 | low;
#else
	CSR("mcycle", low);
	(void)context;
	return low;
#endif
}

static uint64_t read_instructions(void *context)
{
	unsigned long low;
#if __riscv_xlen == 32
	unsigned long high;
	unsigned long again;

	do {
		CSR("minstreth", high);
		CSR("minstret", low);
		CSR("minstreth", again);
	} while (high != again);
	(void)context;
	return (uint64_t)high << 32 | low;
#else
	CSR("minstret", low);
	(void)context;
	return low;
#endif
}

const struct minrpc_counter processor_counters[] = {
	{.name = "mcycle", .unit = "cycles", .bits = 64U, .read = read_cycles},
	{.name = "minstret", .unit = "", .bits = 64U, .read = read_instructions},
	{.name = NULL},
};

#endif
