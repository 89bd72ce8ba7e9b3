/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Arm Cortex-M: v6-M, v7-M and v8-M. MACHINE_CACHES: it has caches, which are turned on.
 */
#ifndef CPU_CORTEX_M_H_
#define CPU_CORTEX_M_H_

#include <stdbool.h>
#include <stdint.h>

#define SYSTICK_CTRL   (*(volatile uint32_t *)0xe000e010U)
#define SYSTICK_RELOAD (*(volatile uint32_t *)0xe000e014U)
#define SYSTICK_VALUE  (*(volatile uint32_t *)0xe000e018U)
#define SCB_ICSR       (*(volatile uint32_t *)0xe000ed04U)

#define CLOCK_ROUND          0x1000000U /* of SysTick's 24 bits */
#define SYSTICK_CTRL_RUN     0x7U       /* processor clock, interrupt, enabled */
#define ICSR_SYSTICK_PENDING (1U << 26)

/*
 * An interrupt is a plain function: the processor saves the registers that a call may change, FPU
 * and vectors too.
 */
#define CPU_INTERRUPT

static inline void cpu_interrupt_begin(void)
{
}

static inline void cpu_interrupt_end(void)
{
}

/* Returns the mask before, for `interrupts_as`. */
static inline uint32_t interrupts_off(void)
{
	uint32_t before;

	__asm__ volatile("mrs %0, primask\n\tcpsid i" : "=r"(before)::"memory");
	return before;
}

static inline bool interrupts_were_on(uint32_t before)
{
	return (before & 1U) == 0U;
}

static inline void interrupts_as(uint32_t before)
{
	__asm__ volatile("msr primask, %0" ::"r"(before) : "memory");
}

/* With the barrier a pending interrupt is taken at once, also if the next instruction masks it. */
static inline void interrupts_on(void)
{
	__asm__ volatile("cpsie i\n\tisb" ::: "memory");
}

/* Called with interrupts off; returns when an interrupt is pending. */
static inline void wait_for_interrupt(void)
{
	__asm__ volatile("dsb\n\twfi" ::: "memory");
}

/* The debugger sees earlier writes before later ones. */
static inline void memory_barrier(void)
{
	__asm__ volatile("dmb" ::: "memory");
}

/*
 * Asks the debugger's host; without a debugger it is a fault. Returns the operation's result.
 * @param block the operation's arguments
 */
static inline uintptr_t cpu_semihosting(uintptr_t operation, const uintptr_t *block)
{
	register uintptr_t r0 __asm__("r0") = operation;
	register const uintptr_t *r1 __asm__("r1") = block;

	__asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
	return r0;
}

/* clock_systick.c */
void systick_isr(void);

#endif /* CPU_CORTEX_M_H_ */
