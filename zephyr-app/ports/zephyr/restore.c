/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "restore.h"

#include <zephyr/devicetree.h>
#include <zephyr/irq.h>
#include <zephyr/kernel.h>

#if defined(CONFIG_ARCH_POSIX)
#include "../host/fault.h"
#endif

static unsigned int unlocked;

#if defined(CONFIG_CPU_CORTEX_M) || defined(CONFIG_RISCV)
/* The vectors of the kernel, or of loaded code that has taken them and says so here. */
extern uintptr_t minrpc_vectors;
uintptr_t minrpc_vectors;
#endif

#if defined(CONFIG_CPU_CORTEX_M)

#include <cmsis_core.h>

#if defined(CONFIG_FPU)
static uint32_t float_mode;
#endif

/* Full access to the coprocessors 10 and 11. */
#define FPU_ON (15U << 20)

#define TICKING (SysTick_CTRL_ENABLE_Msk | SysTick_CTRL_TICKINT_Msk)

void minrpc_port_restore_modes(void)
{
#if defined(CONFIG_ARMV7_M_ARMV8_M_MAINLINE)
	if (!IS_ENABLED(CONFIG_TRAP_UNALIGNED_ACCESS)) {
		SCB->CCR &= ~SCB_CCR_UNALIGN_TRP_Msk;
	}
#endif
#if defined(CONFIG_FPU)
	SCB->CPACR |= FPU_ON;
	__DSB();
	__ISB();
#endif
}

static const char *restore_core(void)
{
#if defined(CONFIG_CPU_CORTEX_M_HAS_VTOR)
	if (SCB->VTOR != minrpc_vectors) {
		SCB->VTOR = minrpc_vectors;
		__DSB();
		__ISB();
	}
#endif
	minrpc_port_restore_modes();
#if DT_HAS_CHOSEN(minrpc_uart) && DT_IRQ_HAS_IDX(DT_CHOSEN(minrpc_uart), 0)
	irq_enable(DT_IRQN_BY_IDX(DT_CHOSEN(minrpc_uart), 0));
#endif
#if DT_HAS_CHOSEN(minrpc_uart) && DT_IRQ_HAS_IDX(DT_CHOSEN(minrpc_uart), 1)
	/* A UART may have one for each direction. */
	irq_enable(DT_IRQN_BY_IDX(DT_CHOSEN(minrpc_uart), 1));
#endif
#if defined(CONFIG_ARMV7_M_ARMV8_M_MAINLINE)
	__enable_fault_irq();
#endif
	__enable_irq();
	if (IS_ENABLED(CONFIG_CORTEX_M_SYSTICK) && (SysTick->CTRL & TICKING) != TICKING) {
		SysTick->CTRL |= TICKING;
		return "SysTick's CTRL";
	}
	return NULL;
}

#elif defined(CONFIG_RISCV)

#include <zephyr/arch/riscv/csr.h>

#if defined(CONFIG_RISCV_PRIVILEGED)
/* Bits of mie when the server started: interrupts of the timer, the UART and others. */
static unsigned long interrupts;
#endif

void minrpc_port_restore_modes(void)
{
#if defined(CONFIG_FPU) && !defined(CONFIG_FPU_SHARING)
	csr_set(mstatus, MSTATUS_FS);
#endif
}

static const char *restore_core(void)
{
	csr_write(mtvec, minrpc_vectors);
#if defined(CONFIG_RISCV_PRIVILEGED)
	csr_set(mie, interrupts);
#endif
	minrpc_port_restore_modes();
	return NULL;
}

#else

void minrpc_port_restore_modes(void)
{
}

static const char *restore_core(void)
{
#if defined(CONFIG_ARCH_POSIX) && defined(__i386__)
	/* Functions with vectors of 64 bits leave the registers of floating point in use. */
	__asm__ volatile("emms");
#endif
	return NULL;
}

#endif

void minrpc_port_restore_init(void)
{
#if defined(CONFIG_CPU_CORTEX_M_HAS_VTOR)
	minrpc_vectors = SCB->VTOR;
#elif defined(CONFIG_RISCV)
	minrpc_vectors = csr_read(mtvec);
#endif
#if defined(CONFIG_RISCV_PRIVILEGED)
	interrupts = csr_read(mie);
#endif
#if defined(CONFIG_CPU_CORTEX_M) && defined(CONFIG_FPU)
	float_mode = __get_FPSCR();
#endif
	unlocked = irq_lock();
	irq_unlock(unlocked);
}

const char *minrpc_port_restore(void *context, bool all)
{
	const char *changed = restore_core();

	ARG_UNUSED(context);
#if defined(CONFIG_CPU_CORTEX_M) && defined(CONFIG_FPU)
	if (all) {
		__set_FPSCR(float_mode);
	}
#elif defined(CONFIG_ARCH_POSIX)
	if (all) {
		host_restore();
	}
#else
	ARG_UNUSED(all);
#endif
	irq_unlock(unlocked);
	return changed;
}
