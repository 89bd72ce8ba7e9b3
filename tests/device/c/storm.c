/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Calls of all kinds, while a timer interrupts them every `period` ticks of its clock; 0: it does
 * not. Names hold irq, isr, trap and exc: none of the functions is an interrupt.
 */
#include <stdint.h>

static volatile uint32_t sink;

__attribute__((noinline)) uint32_t trapezoid(uint32_t n)
{
	return n * 3U + 1U;
}

__attribute__((noinline)) uint32_t misread_count(uint32_t n)
{
	return n < 2U ? trapezoid(n) : misread_count(n - 1U) + 1U;
}

__attribute__((noinline)) uint32_t exchange_all(uint32_t n)
{
	switch (n % 7U) {
	case 0U:
		return trapezoid(n);
	case 1U:
		sink = n;
		return 3U;
	case 2U:
		return misread_count(n % 5U);
	case 3U:
		sink++;
		return 1U;
	case 4U:
		return 9U;
	default:
		return n;
	}
}

static uint32_t (*volatile const table[])(uint32_t) = {trapezoid, misread_count, exchange_all};

static uint32_t calls(uint32_t rounds)
{
	uint32_t sum = 0U;

	for (uint32_t i = 0U; i < rounds; i++) {
		sum += table[i % 3U](i & 15U);
	}
	return sum;
}

#if defined(__ARM_ARCH_7M__) || defined(__ARM_ARCH_7EM__)
/* Timer 0 of CMSDK, on MPS2 boards: SysTick is the clock of measurements. */
#define TIMER    ((volatile uint32_t *)0x40000000U)
#define VTOR     (*(volatile uint32_t *)0xe000ed08U)
#define MPU_CTRL (*(volatile uint32_t *)0xe000ed94U)
#define NVIC     ((volatile uint32_t *)0xe000e100U)
#define IRQ      8U

static volatile uint32_t vectors[64] __attribute__((aligned(256)));

static void tick(void)
{
	TIMER[3] = 1U;
}

uint32_t storm(uint32_t rounds, uint32_t period)
{
	const volatile uint32_t *table = (const volatile uint32_t *)VTOR;
	uint32_t guards = MPU_CTRL;
	uint32_t sum;

	if (period == 0U) {
		return calls(rounds);
	}
	MPU_CTRL = 0U; /* it refuses reads at 0 */
	for (uint32_t i = 0U; i < 64U; i++) {
		vectors[i] = table[i];
	}
	MPU_CTRL = guards;
	vectors[16U + IRQ] = (uint32_t)tick;
	VTOR = (uint32_t)vectors;
	TIMER[2] = period;
	TIMER[1] = period;
	TIMER[0] = 9U;
	NVIC[0] = 1U << IRQ;
	sum = calls(rounds);
	NVIC[32] = 1U << IRQ;
	TIMER[0] = 0U;
	TIMER[3] = 1U;
	NVIC[96] = 1U << IRQ;
	VTOR = (uint32_t)table;
	return sum;
}
#elif defined(__riscv)
/* The timer of QEMU's virt machine, with a separate handler. */
#define TIME          (*(volatile uint32_t *)0x0200bff8U)
#define NEXT          ((volatile uint32_t *)0x02004000U)
#define TIMER_ENABLED 0x80U

static uint32_t step;

__attribute__((interrupt, aligned(4))) void tick(void)
{
	NEXT[0] = TIME + step;
}

uint32_t storm(uint32_t rounds, uint32_t period)
{
	uintptr_t vector;
	uintptr_t enabled;
	uint32_t sum;

	if (period == 0U) {
		return calls(rounds);
	}
	step = period;
	__asm__ volatile("csrrw %0, mtvec, %1" : "=r"(vector) : "r"(tick));
	__asm__ volatile("csrrw %0, mie, %1" : "=r"(enabled) : "r"(TIMER_ENABLED));
	NEXT[1] = 0U;
	NEXT[0] = TIME + step;
	__asm__ volatile("csrsi mstatus, 8");
	sum = calls(rounds);
	__asm__ volatile("csrw mie, %0" : : "r"(enabled));
	__asm__ volatile("csrw mtvec, %0" : : "r"(vector));
	return sum;
}
#else
/* This machine has no timer that C may set. */
uint32_t storm(uint32_t rounds, uint32_t period)
{
	return period == 0U ? calls(rounds) : 0U;
}
#endif
