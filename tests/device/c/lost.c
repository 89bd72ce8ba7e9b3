/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Functions that lose their way: a wrong stack pointer, a null function, a division in the
 * compiler's library, the end of the machine, its restart.
 */
#include <setjmp.h>
#include <stdint.h>

static jmp_buf never_set;
static void (*volatile handler)(void);
volatile int after;

void leap(void)
{
	longjmp(never_set, 1);
}

void call_handler(void)
{
	handler();
	after = 1;
}

/* The compiler's library divides 64 bits. */
uint32_t divisor_of(uint32_t clock, uint32_t baud)
{
	return (uint32_t)(((uint64_t)clock * 256U) / baud) + 1U;
}

/* Ends QEMU: by a fault that can't be handled, or by a register of the machine. */
void end_machine(void)
{
#if defined(__riscv)
	*(volatile uint32_t *)0x100000 = 0x5555;
#elif defined(__i386__) || defined(__x86_64__)
	__asm__ volatile("outb %0, $0xf4" : : "a"((uint8_t)0));
#elif defined(__arm__) && __ARM_ARCH > 6
	__asm__ volatile("cpsid f\n\tudf #0");
#endif
}

_Noreturn void _exit(int status);

#if defined(__i386__) || defined(__x86_64__)
#include "process.h"
#endif

/* Restarts the device without a message; a process ends. */
void restart(void)
{
#if defined(__riscv)
	((void (*)(void))0x80000000U)();
#elif defined(__i386__) || defined(__x86_64__)
	if (is_process()) {
		_exit(0);
	}
	__asm__ volatile("outb %0, $0x64" : : "a"((uint8_t)0xfe));
#elif defined(__arm__)
	*(volatile uint32_t *)0xe000ed0c = 0x05fa0004U;
	for (;;) {
	}
#else
	_exit(0);
#endif
}
