/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * RISC-V in machine mode: the trap vector, and faults.
 */
#include <minrpc/text.h>

#include "machine.h"
#include "port.h"

#define MIE_EXTERNAL    (1UL << 11)
#define MSTATUS_VECTORS (1UL << 9)
#define MSTATUS_FLOATS  (1UL << 13)

/* pmpcfg0: four regions, each from the previous region's address to its own. */
#define PMP_LOCKED    0x80U /* machine mode, too */
#define PMP_TO        0x08U
#define PMP_READ      0x01U
#define PMP_EXECUTE   0x04U
#define PMP_OF(index) (8U * (index))

void trap_vector(void);
void fault_entry(void);

/* Vectored: exceptions come to the first entry, interrupt N to entry N; 11 is external. */
__attribute__((naked, used, aligned(256))) void trap_vector(void)
{
	__asm__ volatile(".option push\n\t"
			 ".option norvc\n\t"
			 ".rept 11\n\t"
			 "j fault_entry\n\t"
			 ".endr\n\t"
#ifdef MACHINE_LINK_IRQ
			 "j link_receive_isr\n\t"
#else
			 "j fault_entry\n\t"
#endif
			 ".option pop");
}

#ifdef MACHINE_PMP
/* Until the next reset, writes to the image and accesses to addresses without memory fault. */
static void protect(void)
{
	uint32_t config = (PMP_LOCKED | PMP_TO | PMP_READ | PMP_EXECUTE) << PMP_OF(1U);

	__asm__ volatile("csrw pmpaddr0, %0" ::"r"(MACHINE_FLASH_BASE >> 2));
	__asm__ volatile("csrw pmpaddr1, %0" ::"r"((MACHINE_FLASH_BASE + MACHINE_FLASH_SIZE) >> 2));
#ifdef MACHINE_NOTHING_BASE
	config |= (PMP_LOCKED | PMP_TO) << PMP_OF(3U);
	__asm__ volatile("csrw pmpaddr2, %0" ::"r"(MACHINE_NOTHING_BASE >> 2));
	__asm__ volatile(
		"csrw pmpaddr3, %0" ::"r"((MACHINE_NOTHING_BASE + MACHINE_NOTHING_SIZE) >> 2));
#endif
	__asm__ volatile("csrw pmpcfg0, %0" ::"r"((unsigned long)config));
}
#endif

/* picolibc's start-up code has turned on the FPU and cleared the data. */
static void cpu_init(void)
{
#ifdef MACHINE_PMP
	protect();
#endif
#ifndef MACHINE_NO_TRAPS
	__asm__ volatile("csrw mtvec, %0" ::"r"((uintptr_t)trap_vector | 1U));
#endif
#ifdef MACHINE_VECTORS
	/* Interrupts do not use these registers, so they are not saved. */
	__asm__ volatile("csrs mstatus, %0" ::"r"(MSTATUS_VECTORS));
#endif
}

/* Runs before any constructor, so that a fault in a constructor is reported, too. */
static void (*const early)(void) __attribute__((section(".preinit_array"), used)) = cpu_init;

#ifdef MACHINE_LINK_IRQ
void cpu_enable_link_interrupt(void)
{
	PLIC_PRIORITY(MACHINE_LINK_IRQ) = 1U;
	PLIC_THRESHOLD = 0U;
	PLIC_ENABLE(MACHINE_LINK_IRQ) = 1U << MACHINE_LINK_IRQ % 32U;
	__asm__ volatile("csrs mie, %0" ::"r"(MIE_EXTERNAL));
	interrupts_on();
}
#endif

/* ----------------------------------------------------------------- after calls */

uintptr_t minrpc_vectors;

void cpu_note_modes(void)
{
#ifndef MACHINE_NO_TRAPS
	__asm__ volatile("csrr %0, mtvec" : "=r"(minrpc_vectors));
#endif
}

void cpu_restore(bool all)
{
#ifndef MACHINE_NO_TRAPS
	__asm__ volatile("csrw mtvec, %0" ::"r"(minrpc_vectors));
#endif
#ifdef MACHINE_VECTORS
	__asm__ volatile("csrs mstatus, %0" ::"r"(MSTATUS_VECTORS));
#endif
#ifdef __riscv_flen
	__asm__ volatile("csrs mstatus, %0" ::"r"(MSTATUS_FLOATS));
	if (all) {
		__asm__ volatile("csrw fcsr, zero");
	}
#else
	(void)all;
#endif
#ifdef MACHINE_LINK_IRQ
	cpu_enable_link_interrupt();
#endif
}

void cpu_code_ready(void *address, size_t size)
{
	(void)address;
	(void)size;
#ifdef MACHINE_NO_TRAPS
	__asm__ volatile("fence" ::: "memory");
#else
	__asm__ volatile("fence rw, rw\n\tfence.i" ::: "memory");
#endif
}

void cpu_reset(void)
{
	__asm__ volatile("fence" ::: "memory");
	*(volatile uint32_t *)(uintptr_t)MACHINE_RESET = MACHINE_RESET_VALUE;
	for (;;) {
	}
}

/* ---------------------------------------------------------------------- faults */

static const char *fault_name(unsigned long cause)
{
	static const char *const names[] = {
		"misaligned instruction", "instruction access fault",
		"illegal instruction",    "breakpoint",
		"misaligned load",        "load access fault",
		"misaligned store",       "store access fault",
	};

	return cause < sizeof(names) / sizeof(names[0]) ? names[cause] : "unexpected trap";
}

/*
 * Faults have their own stack, since the program's stack may have overflowed. The handler does not
 * return, so it saves no registers.
 */
__attribute__((naked, used)) void fault_entry(void)
{
	__asm__ volatile("mv a0, ra\n\t"
			 "mv a1, sp\n\t"
			 "la sp, minrpc_handler_stack_end\n\t"
			 "j fault_handler");
}

__attribute__((noreturn, used)) void fault_handler(unsigned long ra, unsigned long sp)
{
	char text[192];
	unsigned long cause;
	unsigned long pc;
	unsigned long address;

	__asm__ volatile("csrr %0, mcause" : "=r"(cause));
	__asm__ volatile("csrr %0, mepc" : "=r"(pc));
	__asm__ volatile("csrr %0, mtval" : "=r"(address));
	minrpc_text(text, sizeof(text),
		    "fatal: %s%s at pc 0x%x, ra 0x%x, sp 0x%x, mcause %u, address 0x%x",
		    stack_ran_out(sp, address) ? STACK_OVERFLOW : "", fault_name(cause),
		    (unsigned int)pc, (unsigned int)ra, (unsigned int)sp, (unsigned int)cause,
		    (unsigned int)address);
	fault_report(text, sp);
}
