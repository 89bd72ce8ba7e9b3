/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's uptime is read before the interval and after it, never in it, so that it costs no
 * measured time.
 */
#include "clock.h"

#include <stdbool.h>

#include <zephyr/kernel.h>

#include "counter.h"
#include "second_clock.h"
#include "ticks.h"
#include "timer_pin.h"

/*
 * Expires several times per wrap. It runs for counters of any width: some system timers stop
 * counting without a pending timeout.
 */
static struct k_timer wrap_timer;
static uint64_t begin_ticks;
static bool begun;

#if COUNTER_BITS < 64U

static struct minrpc_wide_counter wide;

static uint64_t wide_now(void)
{
	unsigned int key = irq_lock();
	uint64_t now = minrpc_wide_counter_update(&wide, counter_now());

	irq_unlock(key);
	return now;
}

static void count_wraps(struct k_timer *timer)
{
	ARG_UNUSED(timer);
	(void)wide_now();
}

#else

static uint64_t wide_now(void)
{
	return counter_now();
}

#define count_wraps NULL

#endif

/* A quarter of the range of 32 bits. */
static k_timeout_t wrap_period(void)
{
	return K_MSEC(MAX((1ULL << 30) * 1000U / counter_hz(), 1U));
}

int minrpc_port_clock_init(void)
{
	counter_init();
	k_timer_init(&wrap_timer, count_wraps, NULL);
	k_timer_start(&wrap_timer, wrap_period(), wrap_period());
	return minrpc_timer_pin_init();
}

void minrpc_port_clock_describe(void *context, struct minrpc_clock *clock)
{
	ARG_UNUSED(context);
	*clock = (struct minrpc_clock){.cycles_hz = counter_hz()};
	if (HAS_SECOND_CLOCK) {
		clock->coarse_hz = second_clock_hz();
		clock->tolerance = SECOND_CLOCK_SLACK;
	} else if (!IS_ENABLED(CONFIG_MINRPC_CLOCK_HOST)) {
		clock->coarse_hz = minrpc_tick_hz(sys_clock_hw_cycles_per_sec(),
						  CONFIG_SYS_CLOCK_TICKS_PER_SEC);
	}
}

#ifdef CONFIG_MINRPC_TIMER_LOCK_IRQ

static unsigned int irq_key;

static void lock_interrupts(void)
{
	irq_key = irq_lock();
}

static void unlock_interrupts(void)
{
	irq_unlock(irq_key);
}

#else

static void lock_interrupts(void)
{
}

static void unlock_interrupts(void)
{
}

#endif

static uint64_t coarse_ticks(void)
{
	return HAS_SECOND_CLOCK ? second_clock_ticks() : (uint64_t)k_uptime_ticks();
}

int minrpc_port_clock_begin(void *context)
{
	int error = minrpc_timer_pin_set(true);

	ARG_UNUSED(context);
	if (error != 0) {
		return error;
	}
	/*
	 * The count continues, so that two readings with an interval between them can be compared.
	 */
	(void)wide_now();
	k_timer_start(&wrap_timer, wrap_period(), wrap_period());
	begin_ticks = coarse_ticks();
	begun = true;
	lock_interrupts();
	return 0;
}

void minrpc_port_clock_sample(void *context, struct minrpc_clock_sample *sample)
{
	ARG_UNUSED(context);
	sample->cycles = wide_now();
	sample->coarse = begun ? begin_ticks : coarse_ticks();
	begun = false;
}

void minrpc_port_clock_end(void *context)
{
	ARG_UNUSED(context);
	unlock_interrupts();
	(void)minrpc_timer_pin_set(false);
}
