/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * On a 32-bit x86 a stack that runs out is a double fault, which the processor handles by a task
 * switch. That disables the FPU, and if the kernel computes by SSE, its own handler faults for
 * ever: this handler replaces it.
 */
#include "double_fault.h"

#include <zephyr/arch/cpu.h>
#include <zephyr/fatal.h>
#include <zephyr/kernel.h>

#include <minrpc/zephyr.h>

extern struct task_state_segment _df_tss;

static uint8_t fault_stack[2048] __aligned(16);

static FUNC_NORETURN __used void handle(void)
{
	/* The place of the faulting task. */
	struct arch_esf esf = {
		.esp = _main_tss.esp,
		.ebp = _main_tss.ebp,
		.eip = _main_tss.eip,
		.cs = _main_tss.cs,
		.eflags = _main_tss.eflags,
	};
	uintptr_t bottom = k_current_get()->stack_info.start;
	uintptr_t size = k_current_get()->stack_info.size;

	minrpc_fatal(esf.esp - bottom - 1U < size ? K_ERR_CPU_EXCEPTION : K_ERR_STACK_CHK_FAIL,
		     &esf);
}

static void __attribute__((naked)) enter(void)
{
	__asm__ volatile("clts\n\tjmp handle");
}

void minrpc_double_fault_init(void)
{
	_df_tss.esp = (uint32_t)(fault_stack + sizeof(fault_stack));
	_df_tss.eip = (uint32_t)enter;
}
