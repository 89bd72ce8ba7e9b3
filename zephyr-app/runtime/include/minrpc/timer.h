/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The platform timer's arithmetic. Pure: the port supplies readings, nothing here reads a clock.
 */
#ifndef MINRPC_TIMER_H_
#define MINRPC_TIMER_H_

#include <stdbool.h>
#include <stdint.h>

#include <tvm/runtime/crt/error_codes.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A narrow counter made 64 bits wide by looking at it at least once per wrap. */
struct minrpc_wide_counter {
	uint64_t total;
	uint32_t last;
};

/**
 * Unsigned subtraction is right across a wrap as it stands. Only differences of results mean
 * something.
 */
static inline uint64_t minrpc_wide_counter_update(struct minrpc_wide_counter *counter, uint32_t now)
{
	counter->total += (uint32_t)(now - counter->last);
	counter->last = now;
	return counter->total;
}

/**
 * Cycles since start of a down-counter of `period` cycles whose overflows an interrupt counts.
 * `pending`: it has overflowed and the interrupt has not been taken yet. A value of 0 is the first
 * cycle of the new period: the interrupt is raised on reaching it.
 */
static inline uint64_t minrpc_down_counter(uint32_t overflows, bool pending, uint32_t value,
					   uint32_t period)
{
	uint32_t within = value == 0U ? 0U : period - value;

	return ((uint64_t)overflows + pending) * period + within;
}

/** What the port's clock is. Its counter has 64 bits: the port widens one that has fewer. */
struct minrpc_clock {
	uint64_t cycles_hz; /**< rate of the cycle counter, read at run time; never 0 */
	/** rate of a second, slower clock that is trusted over long times; 0: none */
	uint64_t coarse_hz;
};

/** One reading of both clocks. */
struct minrpc_clock_sample {
	uint64_t cycles;
	uint64_t coarse;
};

/**
 * Cycles from `start` to `stop`. A coarse clock takes over where the counter stood still, lost a
 * wrap or ran at another rate (*fell_back is then true, and the resolution is the coarse clock's).
 * One that goes back itself, if only by a tick, says nothing about the counter.
 */
uint64_t minrpc_clock_elapsed(const struct minrpc_clock *clock,
			      const struct minrpc_clock_sample *start,
			      const struct minrpc_clock_sample *stop, bool *fell_back);

/**
 * value * to / from without a 64-bit overflow on the way, for rates up to 2^32 and a result that
 * fits.
 */
uint64_t minrpc_clock_convert(uint64_t value, uint64_t from, uint64_t to);

/** Seconds, rounded once. */
double minrpc_clock_seconds(uint64_t cycles, uint64_t cycles_hz);

struct minrpc_platform;

/** TVM's platform timer: start, stop, elapsed. */
struct minrpc_timer {
	struct minrpc_clock clock;
	struct minrpc_clock_sample start;
	bool running;
	bool fell_back; /**< at the last stop */
};

/**
 * kTvmErrorPlatformTimerBadState when it runs already; the port's own number when its clock can't
 * start.
 */
tvm_crt_error_t minrpc_timer_start(struct minrpc_timer *timer,
				   const struct minrpc_platform *platform, void *context);

/**
 * kTvmErrorPlatformTimerBadState when it does not run. Whatever it returns, the timer is stopped.
 */
tvm_crt_error_t minrpc_timer_stop(struct minrpc_timer *timer,
				  const struct minrpc_platform *platform, void *context,
				  uint64_t *cycles);

/** So many milliseconds in cycles of the clock as it was described at the last start. */
uint64_t minrpc_timer_cycles(const struct minrpc_timer *timer, uint32_t milliseconds);

/** Cycles of that clock in seconds. */
static inline double minrpc_timer_seconds(const struct minrpc_timer *timer, uint64_t cycles)
{
	return minrpc_clock_seconds(cycles, timer->clock.cycles_hz);
}

#ifdef __cplusplus
}
#endif

#endif /* MINRPC_TIMER_H_ */
