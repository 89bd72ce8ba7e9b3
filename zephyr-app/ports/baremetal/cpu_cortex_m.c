/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Arm Cortex-M: the vector table that picolibc's start-up code installs, what is turned on before
 * main, and what becomes of a fault.
 */
#include <stdbool.h>

#include <minrpc/text.h>

#include "machine.h"
#include "port.h"

#define NVIC_ENABLE ((volatile uint32_t *)0xe000e100U)
#define SCB_AIRCR   (*(volatile uint32_t *)0xe000ed0cU)
#define SCB_CCR     (*(volatile uint32_t *)0xe000ed14U)
#define SCB_SHCSR   (*(volatile uint32_t *)0xe000ed24U)
#define SCB_CFSR    (*(volatile uint32_t *)0xe000ed28U)
#define SCB_HFSR    (*(volatile uint32_t *)0xe000ed2cU)
#define SCB_BFAR    (*(volatile uint32_t *)0xe000ed38U)
#define SCB_CTR     (*(volatile uint32_t *)0xe000ed7cU)
#define SCB_CCSIDR  (*(volatile uint32_t *)0xe000ed80U)
#define SCB_CSSELR  (*(volatile uint32_t *)0xe000ed84U)
#define SCB_ICIALLU (*(volatile uint32_t *)0xe000ef50U)
#define SCB_DCISW   (*(volatile uint32_t *)0xe000ef60U)
#define SCB_DCCMVAU (*(volatile uint32_t *)0xe000ef64U)

#define AIRCR_RESET    0x05fa0004U
#define CCR_DIV_0_TRAP (1U << 4)
#define CCR_DATA_CACHE (1U << 16)
#define CCR_CODE_CACHE (1U << 17)
#define SHCSR_FAULTS   (7U << 16) /* UsageFault, BusFault, MemManage by their own names */

extern char __stack[];
void _start(void);
void fault_entry(void);

static void barrier(void)
{
	__asm__ volatile("dsb\n\tisb" ::: "memory");
}

/* ----------------------------------------------------------------- before main */

#ifdef MACHINE_CACHES
static void enable_caches(void)
{
	uint32_t geometry;
	unsigned int last_way;
	unsigned int way_shift;
	unsigned int line_shift;

	SCB_ICIALLU = 0U;
	barrier();
	SCB_CCR |= CCR_CODE_CACHE;
	/* Its content is not defined after a reset: invalidated by set and way. */
	SCB_CSSELR = 0U;
	barrier();
	geometry = SCB_CCSIDR;
	last_way = (geometry >> 3) & 0x3ffU;
	line_shift = (geometry & 7U) + 4U;
	way_shift = last_way == 0U ? 0U : (unsigned int)__builtin_clz(last_way);
	for (uint32_t set = 0U; set <= ((geometry >> 13) & 0x7fffU); set++) {
		for (uint32_t way = 0U; way <= last_way; way++) {
			SCB_DCISW = way << way_shift | set << line_shift;
		}
	}
	barrier();
	SCB_CCR |= CCR_DATA_CACHE;
	barrier();
}
#endif

/* picolibc's start-up code has turned on the FPU and the vector unit, and cleared the data. */
static void cpu_init(void)
{
#if __ARM_ARCH >= 7
	SCB_SHCSR |= SHCSR_FAULTS;
	SCB_CCR |= CCR_DIV_0_TRAP;
#endif
#ifdef MACHINE_CACHES
	enable_caches();
#endif
	barrier();
}

/* Before any constructor, so that a fault there is told, too. */
static void (*const early)(void) __attribute__((section(".preinit_array"), used)) = cpu_init;

void cpu_enable_link_interrupt(void)
{
	NVIC_ENABLE[MACHINE_LINK_IRQ / 32U] = 1U << MACHINE_LINK_IRQ % 32U;
}

void cpu_code_ready(void *address, size_t size)
{
#ifdef MACHINE_CACHES
	uintptr_t line = (uintptr_t)4U << ((SCB_CTR >> 16) & 0xfU);

	for (uintptr_t at = (uintptr_t)address & ~(line - 1U); at < (uintptr_t)address + size;
	     at += line) {
		SCB_DCCMVAU = at;
	}
	barrier();
	SCB_ICIALLU = 0U;
#else
	(void)address;
	(void)size;
#endif
	barrier();
}

void cpu_reset(void)
{
	__asm__ volatile("dsb" ::: "memory");
	SCB_AIRCR = AIRCR_RESET;
	for (;;) {
	}
}

/* ---------------------------------------------------------------------- faults */

/* What the processor pushed when it took the exception. */
struct exception_frame {
	uint32_t r0, r1, r2, r3, r12, lr, pc, xpsr;
};

static const char *fault_name(uint32_t exception)
{
	static const char *const names[] = {"NMI",      "HardFault",  "MemManage",
					    "BusFault", "UsageFault", "SecureFault"};

	return exception >= 2U && exception <= 7U ? names[exception - 2U] : "unexpected exception";
}

__attribute__((noreturn, used)) void fault_handler(const struct exception_frame *frame)
{
	char text[160];
	const char *name = fault_name(SCB_ICSR & 0x1ffU);

#if __ARM_ARCH >= 7
	minrpc_text(text, sizeof(text),
		    "fatal: %s at pc 0x%x, lr 0x%x, cfsr 0x%x, hfsr 0x%x, address 0x%x", name,
		    (unsigned int)frame->pc, (unsigned int)frame->lr, (unsigned int)SCB_CFSR,
		    (unsigned int)SCB_HFSR, (unsigned int)SCB_BFAR);
#else
	minrpc_text(text, sizeof(text), "fatal: %s at pc 0x%x, lr 0x%x", name,
		    (unsigned int)frame->pc, (unsigned int)frame->lr);
#endif
	fault_report(text);
}

__attribute__((naked)) void fault_entry(void)
{
	/* Bit 2 of the return code says which stack has the frame. */
	__asm__ volatile(".syntax unified\n\t"
			 "mov r0, lr\n\t"
			 "lsls r0, r0, #29\n\t"
			 "bmi 1f\n\t"
			 "mrs r0, msp\n\t"
			 "bl fault_handler\n"
			 "1:\n\t"
			 "mrs r0, psp\n\t"
			 "bl fault_handler");
}

#if !defined(__ARM_FEATURE_IDIV)
/* A processor without a divider: the compiler's library comes here instead of trapping. */
int __aeabi_idiv0(int result)
{
	(void)result;
	__builtin_trap();
}
#endif

/* 64-bit divisions are the library's on each of them. */
long long __aeabi_ldiv0(long long result)
{
	(void)result;
	__builtin_trap();
}

#define VECTORS (16U + MACHINE_LINK_IRQ + 1U)

/* Aligned to the next power of two of its size, as the processor wants it. */
const uintptr_t __attribute__((section(".data.init.enter"), used,
			       aligned(256))) __interrupt_vector[VECTORS] = {
	[0] = (uintptr_t)__stack,
	[1] = (uintptr_t)_start,
	[2 ... 14] = (uintptr_t)fault_entry,
	[15] = (uintptr_t)systick_isr,
	[16 ... 15 + MACHINE_LINK_IRQ] = (uintptr_t)fault_entry,
	[16 + MACHINE_LINK_IRQ] = (uintptr_t)link_receive_isr,
};

_Static_assert(sizeof(__interrupt_vector) <= 256U,
	       "a larger vector table wants a larger alignment");
