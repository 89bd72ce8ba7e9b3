/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "restore.h"

#include <zephyr/devicetree.h>
#include <zephyr/irq.h>
#include <zephyr/kernel.h>

static unsigned int unlocked;

#if defined(CONFIG_CPU_CORTEX_M)

#include <cmsis_core.h>

/* The vectors of the kernel, or of loaded code that has taken them and says so here. */
extern uintptr_t minrpc_vectors;
uintptr_t minrpc_vectors;

#define TICKING (SysTick_CTRL_ENABLE_Msk | SysTick_CTRL_TICKINT_Msk)

static const char *restore_core(void)
{
#if defined(CONFIG_CPU_CORTEX_M_HAS_VTOR)
	if (SCB->VTOR != minrpc_vectors) {
		SCB->VTOR = minrpc_vectors;
		__DSB();
		__ISB();
	}
#endif
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

#else

static const char *restore_core(void)
{
	return NULL;
}

#endif

void minrpc_port_restore_init(void)
{
#if defined(CONFIG_CPU_CORTEX_M_HAS_VTOR)
	minrpc_vectors = SCB->VTOR;
#endif
	unlocked = irq_lock();
	irq_unlock(unlocked);
}

const char *minrpc_port_restore(void *context, bool all)
{
	const char *changed = restore_core();

	ARG_UNUSED(context);
	ARG_UNUSED(all);
	irq_unlock(unlocked);
	return changed;
}
