/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Counters of a RISC-V processor in machine mode: cycles and retired instructions.
 */
#include <minrpc/counter.h>
#include <minrpc/minrpc_config.h>

#include "machine.h"
#include "port.h"

#if MINRPC_COUNTERS

#define CSR(name, value) __asm__ volatile("csrr %0, " name : "=r"(value))

#ifdef MACHINE_NO_TRAPS
#define CYCLE   "cycle"
#define INSTRET "instret"
#else
#define CYCLE   "mcycle"
#define INSTRET "minstret"
#endif

static uint64_t read_cycles(void *context)
{
	unsigned long low;
#if __riscv_xlen == 32
	unsigned long high;
	unsigned long again;

	/* The upper half may change between the two reads. */
	do {
		CSR(CYCLE "h", high);
		CSR(CYCLE, low);
		CSR(CYCLE "h", again);
	} while (high != again);
	(void)context;
	return (uint64_t)high << 32 | low;
#else
	CSR(CYCLE, low);
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
		CSR(INSTRET "h", high);
		CSR(INSTRET, low);
		CSR(INSTRET "h", again);
	} while (high != again);
	(void)context;
	return (uint64_t)high << 32 | low;
#else
	CSR(INSTRET, low);
	(void)context;
	return low;
#endif
}

const struct minrpc_counter processor_counters[] = {
	{.name = CYCLE, .unit = "cycles", .bits = 64U, .read = read_cycles},
	{.name = INSTRET, .unit = "", .bits = 64U, .read = read_instructions},
	{.name = NULL},
};

#endif
