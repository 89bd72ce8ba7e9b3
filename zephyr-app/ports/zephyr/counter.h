/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The counter that the platform timer reads, as configured: its rate, its width, its value.
 */
#ifndef COUNTER_H_
#define COUNTER_H_

#include <stdint.h>

#include <zephyr/kernel.h>

#if defined(CONFIG_MINRPC_CLOCK_HOST)

#include "native_host.h"

#define COUNTER_BITS 64U

static inline void counter_init(void)
{
}

static inline uint64_t counter_hz(void)
{
	return 1000000000U;
}

static inline uint64_t counter_now(void)
{
	return minrpc_native_host_clock_ns();
}

#elif defined(CONFIG_MINRPC_CLOCK_TIMING)

#include <zephyr/timing/timing.h>

#define COUNTER_BITS 32U

static inline void counter_init(void)
{
	timing_init();
	timing_start();
}

static inline uint64_t counter_hz(void)
{
	return timing_freq_get();
}

static inline uint32_t counter_now(void)
{
	return (uint32_t)timing_counter_get();
}

#else

static inline void counter_init(void)
{
}

static inline uint64_t counter_hz(void)
{
	return (uint64_t)sys_clock_hw_cycles_per_sec();
}

#ifdef CONFIG_TIMER_HAS_64BIT_CYCLE_COUNTER

#define COUNTER_BITS 64U

static inline uint64_t counter_now(void)
{
	return k_cycle_get_64();
}

#else

#define COUNTER_BITS 32U

static inline uint32_t counter_now(void)
{
	return k_cycle_get_32();
}

#endif

#endif

#endif /* COUNTER_H_ */
