/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * RISC-V, 32 and 64 bits, in machine mode, with a PLIC.
 *
 * MACHINE_PLIC: its base; the link's interrupt comes through it. MACHINE_RESET: address of the
 * register that restarts the machine by MACHINE_RESET_VALUE. MACHINE_VECTORS: 1 if it has vectors.
 * MACHINE_NO_TRAPS: 1 if it has no machine mode: no traps, no interrupts, and counters only as
 * rdcycle and rdinstret.
 * MACHINE_PMP: 1 if it has physical memory protection, which forbids writes to the image and to
 * MACHINE_NOTHING.
 */
#ifndef CPU_RISCV_H_
#define CPU_RISCV_H_

#include <stdbool.h>
#include <stdint.h>

#define PLIC_PRIORITY(irq) (*(volatile uint32_t *)(uintptr_t)(MACHINE_PLIC + 4U * (irq)))
/* Registers of the first hart's machine mode. */
#define PLIC_ENABLE(irq)                                                                           \
	(*(volatile uint32_t *)(uintptr_t)(MACHINE_PLIC + 0x2000U + (irq) / 32U * 4U))
#define PLIC_THRESHOLD (*(volatile uint32_t *)(uintptr_t)(MACHINE_PLIC + 0x200000U))
#define PLIC_CLAIM     (*(volatile uint32_t *)(uintptr_t)(MACHINE_PLIC + 0x200004U))

#define MSTATUS_MIE "8"

/* An interrupt saves each register that it changes, also the FPU's registers. */
#define CPU_INTERRUPT __attribute__((interrupt("machine"), aligned(4)))

#ifdef MACHINE_LINK_IRQ
static inline void cpu_interrupt_begin(void)
{
	(void)PLIC_CLAIM;
}

static inline void cpu_interrupt_end(void)
{
	PLIC_CLAIM = MACHINE_LINK_IRQ;
}
#endif

/* Returns the mask before, for `interrupts_as`. */
static inline uintptr_t interrupts_off(void)
{
	uintptr_t before = 0U;

#ifndef MACHINE_NO_TRAPS
	__asm__ volatile("csrrci %0, mstatus, " MSTATUS_MIE : "=r"(before)::"memory");
#endif
	return before;
}

static inline bool interrupts_were_on(uintptr_t before)
{
	return (before & 8U) != 0U; /* MSTATUS_MIE */
}

static inline void interrupts_on(void)
{
#ifndef MACHINE_NO_TRAPS
	__asm__ volatile("csrsi mstatus, " MSTATUS_MIE ::: "memory");
#endif
}

static inline void interrupts_as(uintptr_t before)
{
	if (interrupts_were_on(before)) {
		interrupts_on();
	}
}

/* Called with interrupts off; returns when an interrupt is pending. */
static inline void wait_for_interrupt(void)
{
	__asm__ volatile("fence\n\twfi" ::: "memory");
}

/* The debugger sees earlier writes before later ones. */
static inline void memory_barrier(void)
{
	__asm__ volatile("fence" ::: "memory");
}

/*
 * Asks the debugger's host; without a debugger it is a fault. Returns the operation's result.
 * The debugger knows the ebreak by its neighbours, which lie in the same page.
 * @param block the operation's arguments
 */
static inline uintptr_t cpu_semihosting(uintptr_t operation, const uintptr_t *block)
{
	register uintptr_t a0 __asm__("a0") = operation;
	register const uintptr_t *a1 __asm__("a1") = block;

	__asm__ volatile(".option push\n\t"
			 ".option norvc\n\t"
			 ".balign 16\n\t"
			 "slli zero, zero, 0x1f\n\t"
			 "ebreak\n\t"
			 "srai zero, zero, 7\n\t"
			 ".option pop"
			 : "+r"(a0)
			 : "r"(a1)
			 : "memory");
	return a0;
}

#endif /* CPU_RISCV_H_ */
