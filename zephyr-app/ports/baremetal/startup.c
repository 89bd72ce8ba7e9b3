/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The vector table that picolibc's start-up code installs, and what becomes of a fault.
 */
#include <stdint.h>

#include <minrpc/text.h>

#include "board.h"

extern char __stack[];
void _start(void);
void fault_entry(void);

/* What the processor pushed when it took the exception. */
struct exception_frame {
	uint32_t r0, r1, r2, r3, r12, lr, pc, xpsr;
};

static const char *fault_name(uint32_t exception)
{
	static const char *const names[] = {"NMI", "HardFault", "MemManage", "BusFault", "UsageFault"};

	return exception >= 2U && exception <= 6U ? names[exception - 2U] : "unexpected exception";
}

__attribute__((noreturn, used)) void fault_handler(const struct exception_frame *frame)
{
	char text[160];

	minrpc_text(text, sizeof(text),
		    "fatal: %s at pc 0x%x, lr 0x%x, cfsr 0x%x, hfsr 0x%x, address 0x%x",
		    fault_name(SCB_ICSR & 0x1ffU), (unsigned int)frame->pc, (unsigned int)frame->lr,
		    (unsigned int)SCB_CFSR, (unsigned int)SCB_HFSR, (unsigned int)SCB_BFAR);
	fault_report(text);
}

__attribute__((naked)) void fault_entry(void)
{
	/* Bit 2 of the return code says which stack has the frame. */
	__asm__ volatile("tst lr, #4\n\t"
			 "ite eq\n\t"
			 "mrseq r0, msp\n\t"
			 "mrsne r0, psp\n\t"
			 "b fault_handler");
}

#define VECTORS (16U + LINK_RX_IRQ + 1U)

const uintptr_t __attribute__((section(".data.init.enter"), used, aligned(128)))
__interrupt_vector[VECTORS] = {
	[0] = (uintptr_t)__stack,
	[1] = (uintptr_t)_start,
	[2 ... 14] = (uintptr_t)fault_entry,
	[15] = (uintptr_t)systick_isr,
	[16 ... 15 + LINK_RX_IRQ] = (uintptr_t)fault_entry,
	[16 + LINK_RX_IRQ] = (uintptr_t)link_receive_isr,
};
