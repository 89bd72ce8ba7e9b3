/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's counters: interrupts taken and context switches, if CONFIG_TRACING_USER is on; and
 * peaks of the thread's stack, which the kernel fills with 0xaa at its start, and of the heaps that
 * it lists.
 */
#include <zephyr/kernel.h>
#include <zephyr/sys/sys_heap.h>
#include <zephyr/version.h>

#include <minrpc/counter.h>
#include <minrpc/stack.h>

#include "counters.h"

#define STACK_FILL 0xaaU

#if defined(CONFIG_TRACING_USER)

static uint32_t interrupts;
static uint32_t switches;

/* The kernel calls these, with interrupts off. */
void sys_trace_isr_enter_user(void)
{
	interrupts++;
}

void sys_trace_thread_switched_in_user(void)
{
	switches++;
}

static uint64_t read_count(void *context)
{
	return *(volatile uint32_t *)context;
}

#endif

const struct minrpc_counter minrpc_zephyr_counters[] = {
#if defined(CONFIG_TRACING_USER)
#if !defined(CONFIG_X86_64) /* Zephyr does not trace interrupts there. */
	{.name = "interrupts", .unit = "", .bits = 32U, .read = read_count, .context = &interrupts},
#endif
	{.name = "context_switches",
	 .unit = "",
	 .bits = 32U,
	 .read = read_count,
	 .context = &switches},
#endif
	{.name = NULL},
};

void minrpc_interrupts_mask(void *context, bool masked)
{
	static unsigned int key;

	ARG_UNUSED(context);
	if (masked) {
		key = irq_lock();
	} else {
		irq_unlock(key);
	}
}

void minrpc_stack_paint(void *context)
{
	ARG_UNUSED(context);
#if defined(CONFIG_INIT_STACKS) && defined(CONFIG_THREAD_STACK_INFO)
	volatile uint8_t *at = (volatile uint8_t *)k_current_get()->stack_info.start;
	volatile uint8_t *end = minrpc_stack_pointer();

#if defined(CONFIG_STACK_SENTINEL)
	/* The kernel's own bytes, at the stack's end. */
	at += sizeof(uint32_t);
#endif
	while (at < end) {
		*at++ = STACK_FILL;
	}
#endif
}

void minrpc_heap_use(void *context, uint32_t *used, uint32_t *peak, bool reset)
{
	ARG_UNUSED(context);
	*used = 0U;
	*peak = 0U;
#if CONFIG_SYS_HEAP_ARRAY_SIZE > 0 && ZEPHYR_VERSION_CODE >= ZEPHYR_VERSION(4, 2, 0)
	struct sys_heap **heaps;
	int count = sys_heap_array_get(&heaps);

	for (int i = 0; i < count; i++) {
		struct sys_memory_stats stats;

		if (sys_heap_runtime_stats_get(heaps[i], &stats) == 0) {
			*used += (uint32_t)stats.allocated_bytes;
			*peak += (uint32_t)stats.max_allocated_bytes;
		}
		if (reset) {
			(void)sys_heap_runtime_stats_reset_max(heaps[i]);
		}
	}
#else
	ARG_UNUSED(reset);
#endif
}
