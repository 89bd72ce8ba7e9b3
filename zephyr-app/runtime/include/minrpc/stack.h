/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The stack pointer, for ports that paint the free stack.
 */
#ifndef MINRPC_STACK_H_
#define MINRPC_STACK_H_

/**
 * Returns the stack pointer of the function that this is inlined into. The memory below it is free,
 * except under the System V ABI for x86-64, where that function must be compiled with
 * -mno-red-zone.
 */
static inline __attribute__((always_inline)) void *minrpc_stack_pointer(void)
{
	void *pointer;

#if defined(__arm__) || defined(__aarch64__)
	__asm__ volatile("mov %0, sp" : "=r"(pointer));
#elif defined(__riscv)
	__asm__ volatile("mv %0, sp" : "=r"(pointer));
#elif defined(__x86_64__)
	__asm__ volatile("mov %%rsp, %0" : "=r"(pointer));
#elif defined(__i386__)
	__asm__ volatile("mov %%esp, %0" : "=r"(pointer));
#else
	/* Far enough below the frame of any function that only paints. */
	pointer = (char *)__builtin_frame_address(0) - 256;
#endif
	return pointer;
}

#endif /* MINRPC_STACK_H_ */
