/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * RISC-V's mtime: 64 bits that count up. MACHINE_MTIME: its address.
 */
#include "machine.h"
#include "port.h"

void clock_init(void)
{
}

uint64_t clock_cycles(void)
{
#if __riscv_xlen == 64
	return *(volatile uint64_t *)(uintptr_t)MACHINE_MTIME;
#else
	volatile uint32_t *mtime = (volatile uint32_t *)(uintptr_t)MACHINE_MTIME;
	uint32_t high;
	uint32_t low;

	/* Read again if the low half wrapped in between. */
	do {
		high = mtime[1];
		low = mtime[0];
	} while (high != mtime[1]);
	return (uint64_t)high << 32 | low;
#endif
}

/* Its only register is the count. */
const char *clock_restore(void)
{
	static uint64_t last;
	uint64_t before = last;

	last = clock_cycles();
	return last < before ? "mtime" : NULL;
}
