/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Functions for tests: one with a side effect, one that faults, one that hangs, one that writes
 * beside its tensor, one that takes workspace.
 */
#include "testing.h"

#include <minrpc/server.h>

#if MINRPC_TESTING
#if MINRPC_TESTING_PAUSE
#include <unistd.h>
#endif

/* () -> int: the number of calls since the device started. */
bool minrpc_testing_count(struct minrpc_call *call)
{
	static int64_t calls;

	return minrpc_return_int(call, ++calls);
}

/*
 * Writes to an address that is no memory on any port, which the device reports as a fault. A
 * machine that ignores such writes (QEMU's LM3S6965) gets an invalid instruction instead.
 */
bool minrpc_testing_crash(struct minrpc_call *call)
{
	(void)call;
	*(volatile uint32_t *)(uintptr_t)0xfffffff0U = 0U;
	__builtin_trap();
}

/* int -> nothing: allocates and frees this number of bytes of workspace. */
bool minrpc_testing_workspace(struct minrpc_call *call)
{
	struct minrpc_arena *arena = &call->server->arena;
	uint32_t size = minrpc_size((uint64_t)call->args.values[0].v_int64);
	void *block = minrpc_workspace_alloc(arena, size, MINRPC_TENSOR_ALIGNMENT);

	if (block == NULL) {
		return minrpc_fail_memory(call->server, arena, size);
	}
	return minrpc_workspace_free(arena, block) == MINRPC_DAMAGE_NONE;
}

/* (tensor, int) -> nothing: changes the byte at this offset from the tensor's first byte. */
bool minrpc_testing_overrun(struct minrpc_call *call)
{
	const DLTensor *tensor = call->args.values[0].v_handle;
	volatile uint8_t *byte = (volatile uint8_t *)tensor->data + call->args.values[1].v_int64;

	*byte ^= 0x10U;
	return true;
}

/* Never returns. With MINRPC_TESTING_PAUSE it sleeps, and takes no processor time. */
bool minrpc_testing_hang(struct minrpc_call *call)
{
	(void)call;
	for (;;) {
#if MINRPC_TESTING_PAUSE
		(void)pause();
#else
		__asm__ volatile("");
#endif
	}
}

#endif
