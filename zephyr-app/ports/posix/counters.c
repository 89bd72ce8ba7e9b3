/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * perf_event_open(2), for this process in user mode: if the kernel or a container forbids it, or
 * the machine counts nothing, the counters are not available. The file also paints a piece of the
 * stack.
 */
#define _GNU_SOURCE

#include <linux/perf_event.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <minrpc/counter.h>
#include <minrpc/minrpc_config.h>
#include <minrpc/stack.h>

#include "counters.h"

#if MINRPC_COUNTERS

#define PAINT   0x5ac35ac3U
/* Bytes below the painting function that are painted; the guard page is far away. */
#define PAINTED (1024U * 1024U)

struct event {
	uint64_t config;
	int file;
};

static struct event events[] = {
	{PERF_COUNT_HW_INSTRUCTIONS, -1},        {PERF_COUNT_HW_CPU_CYCLES, -1},
	{PERF_COUNT_HW_BRANCH_INSTRUCTIONS, -1}, {PERF_COUNT_HW_BRANCH_MISSES, -1},
	{PERF_COUNT_HW_CACHE_MISSES, -1},
};

static bool enable(void *context, bool on)
{
	struct event *event = context;
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attributes),
		.config = event->config,
		.exclude_kernel = 1U,
		.exclude_hv = 1U,
		.pinned = 1U,
	};
	uint64_t value;

	if (!on) {
		if (event->file >= 0) {
			(void)close(event->file);
		}
		event->file = -1;
		return true;
	}
	event->file =
		(int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	/* An event for which the processor has no counter left is opened, and gives no value. */
	if (event->file >= 0 &&
	    read(event->file, &value, sizeof(value)) != (ssize_t)sizeof(value)) {
		(void)enable(context, false);
	}
	return event->file >= 0;
}

static uint64_t read_event(void *context)
{
	const struct event *event = context;
	uint64_t value = 0U;

	return read(event->file, &value, sizeof(value)) == (ssize_t)sizeof(value) ? value : 0U;
}

#define EVENT(label, what, index)                                                                  \
	{.name = (label),                                                                          \
	 .unit = (what),                                                                           \
	 .bits = 64U,                                                                              \
	 .read = read_event,                                                                       \
	 .enable = enable,                                                                         \
	 .context = &events[index]}

const struct minrpc_counter posix_counters[] = {
	EVENT("perf_instructions", "", 0), EVENT("perf_cycles", "cycles", 1),
	EVENT("perf_branches", "", 2),     EVENT("perf_branch_misses", "", 3),
	EVENT("perf_cache_misses", "", 4), {.name = NULL},
};

/* Signals are the interrupts of a process. */
void posix_interrupts_mask(void *context, bool masked)
{
	static sigset_t before;
	sigset_t all;

	(void)context;
	(void)sigfillset(&all);
	if (masked) {
		(void)sigprocmask(SIG_SETMASK, &all, &before);
	} else {
		(void)sigprocmask(SIG_SETMASK, &before, NULL);
	}
}

/* Returns the end of the paint, in the direction of the stack's base. */
static uint32_t *top;

__attribute__((noinline)) void posix_stack_paint(void *context)
{
	(void)context;
	top = minrpc_stack_pointer();
	for (volatile uint32_t *at = top - PAINTED / sizeof(*at); at < top; at++) {
		*at = PAINT;
	}
}

__attribute__((noinline)) void posix_stack_use(void *context, uint32_t *size, uint32_t *peak)
{
	const volatile uint32_t *at;

	(void)context;
	if (top == NULL) {
		posix_stack_paint(NULL);
	}
	at = top - PAINTED / sizeof(*at);
	while (at < top && *at == PAINT) {
		at++;
	}
	*size = PAINTED;
	*peak = (uint32_t)((uintptr_t)top - (uintptr_t)at);
}

#endif
