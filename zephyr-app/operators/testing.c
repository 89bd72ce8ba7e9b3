/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Functions that tests of a harness need of a device: one with a side effect, one that faults, one that hangs.
 */
#include "testing.h"

#include <minrpc/server.h>

#if MINRPC_TESTING

/* () -> int: how often it has been called since the device started. */
bool minrpc_testing_count(struct minrpc_call *call)
{
	static int64_t calls;

	return minrpc_return_int(call, ++calls);
}

/*
 * Writes where there is no memory on any port. The device reports that as it reports every fault. A machine that lets
 * such a write pass (QEMU's LM3S6965) gets an instruction that no core has.
 */
bool minrpc_testing_crash(struct minrpc_call *call)
{
	(void)call;
	*(volatile uint32_t *)(uintptr_t)0xfffffff0U = 0U;
	__builtin_trap();
}

/* Never returns. */
bool minrpc_testing_hang(struct minrpc_call *call)
{
	(void)call;
	for (;;) {
		__asm__ volatile("");
	}
}

#endif
