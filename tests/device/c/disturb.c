/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that change what a firmware's clock and link need. */
#include <stdint.h>

static volatile uint32_t turns;

int ask(int x);

int asked(int x)
{
	return ask(x);
}

__attribute__((noinline)) void spin(int count)
{
	for (int i = 0; i < count; i++) {
		turns = (uint32_t)i;
	}
}

#if defined(__arm__)

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define SYST_CTRL         REGISTER(0xe000e010U)
#define SYST_LOAD         REGISTER(0xe000e014U)
#define SYST_VALUE        REGISTER(0xe000e018U)
#define NVIC_OFF          ((volatile uint32_t *)0xe000e180U)

void off(void)
{
	__asm__ volatile("cpsid i" ::: "memory");
}

void on(void)
{
	__asm__ volatile("cpsie i" ::: "memory");
}

/* CMSIS's SysTick_Config. */
void config(int cycles)
{
	SYST_LOAD = (uint32_t)cycles - 1U;
	SYST_VALUE = 0U;
	SYST_CTRL = 7U;
}

void stop(void)
{
	SYST_CTRL = 0U;
}

void zero(int count)
{
	spin(count);
	SYST_VALUE = 0U;
	spin(count);
}

void lines_off(void)
{
	for (int i = 0; i < 8; i++) {
		NVIC_OFF[i] = 0xffffffffU;
	}
}

void vectors(void)
{
	REGISTER(0xe000ed08U) = 0x20000400U;
}

void supervisor(void)
{
	__asm__ volatile("svc 0");
}

void pend(void)
{
	REGISTER(0xe000ed04U) = 1U << 28;
	__asm__ volatile("dsb\n\tisb");
}

void interrupt(void)
{
	*(volatile uint32_t *)0xe000e100U = 1U << 30;
	*(volatile uint32_t *)0xe000e200U = 1U << 30;
	__asm__ volatile("dsb\n\tisb");
}

#if __ARM_ARCH >= 7
void unprivileged(void)
{
	__asm__ volatile("msr control, %0\n\tisb" ::"r"(3));
}

void levels(void)
{
	__asm__ volatile("msr basepri, %0" ::"r"(0x20));
}

void faults_off(void)
{
	__asm__ volatile("cpsid f" ::: "memory");
}

void unaligned_off(void)
{
	REGISTER(0xe000ed14U) |= 1U << 3;
}

int unaligned_off_ask(int x)
{
	unaligned_off();
	return ask(x);
}
#endif

void unguarded(void)
{
	REGISTER(0xe000ed94U) = 0U;
}

#if defined(__ARM_FP)
void mode(void)
{
	__asm__ volatile("vmsr fpscr, %0" ::"r"(3U << 22 | 1U << 24)); /* towards 0, flush to 0 */
}

void floats_off(void)
{
	REGISTER(0xe000ed88U) &= ~(15U << 20);
	__asm__ volatile("dsb\n\tisb");
}

float floats_off_result(float x)
{
	floats_off();
	return x;
}
#endif

#elif defined(__riscv)

void off(void)
{
	__asm__ volatile("csrci mstatus, 8" ::: "memory");
}

void on(void)
{
	__asm__ volatile("csrsi mstatus, 8" ::: "memory");
}

void lines_off(void)
{
	__asm__ volatile("csrw mie, zero");
}

void vectors(void)
{
	__asm__ volatile("csrw mtvec, zero");
}

void supervisor(void)
{
	__asm__ volatile("ecall");
}

#if defined(__riscv_flen)
void floats_off(void)
{
	__asm__ volatile("csrc mstatus, %0" ::"r"(3UL << 13));
}

float floats_off_result(float x)
{
	floats_off();
	return x;
}
#endif

#elif defined(__aarch64__)

void off(void)
{
	__asm__ volatile("msr daifset, #2" ::: "memory");
}

void on(void)
{
	__asm__ volatile("msr daifclr, #2" ::: "memory");
}

#else

#include "process.h"

#if defined(__x86_64__)
#include <signal.h>

/* Linux's rt_sigprocmask. */
static void block_signals(void)
{
	uint64_t all = UINT64_MAX;
	int64_t number = 14;
	register uint64_t size __asm__("r10") = sizeof(all);

	__asm__ volatile("syscall"
			 : "+a"(number)
			 : "D"(SIG_BLOCK), "S"(&all), "d"(0), "r"(size)
			 : "rcx", "r11", "memory");
}

void mode(void)
{
	unsigned int control = 0xff80U; /* towards 0, flush to 0, no exceptions */

	__asm__ volatile("ldmxcsr %0" ::"m"(control));
}

void vectors(void)
{
	signal(SIGSEGV, SIG_DFL);
}
#else
static void block_signals(void)
{
}
#endif

void off(void)
{
	if (is_process()) {
		block_signals();
	} else {
		__asm__ volatile("cli" ::: "memory");
	}
}

void on(void)
{
	if (!is_process()) {
		__asm__ volatile("sti" ::: "memory");
	}
}

#endif

/* Interrupts are off for all turns. */
void masked(int count)
{
	off();
	spin(count);
	on();
}

float third(float x)
{
	return x / 3.0f;
}

int write_null(void)
{
	volatile int *volatile nothing = 0;

	*nothing = 1;
	return 7;
}
