/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The platform timer's arithmetic. It reads no clock: the port supplies the readings.
 */
#ifndef MINRPC_TIMER_H_
#define MINRPC_TIMER_H_

#include <stdbool.h>
#include <stdint.h>

#include <tvm/runtime/crt/error_codes.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Extends a narrow counter to 64 bits. It must be updated at least once per wrap. */
struct minrpc_wide_counter {
	uint64_t total;
	uint32_t last;
};

/**
 * Returns the extended value. Unsigned subtraction is right across a wrap. Only differences of
 * results have a meaning.
 */
static inline uint64_t minrpc_wide_counter_update(struct minrpc_wide_counter *counter, uint32_t now)
{
	counter->total += (uint32_t)(now - counter->last);
	counter->last = now;
	return counter->total;
}

/**
 * Returns the cycles since the start of a down-counter of `period` cycles, whose overflows an
 * interrupt counts. `pending` means that an overflow's interrupt has not run yet. The value 0
 * belongs to the first cycle of the new period, since the interrupt is raised on reaching 0.
 */
static inline uint64_t minrpc_down_counter(uint32_t overflows, bool pending, uint32_t value,
					   uint32_t period)
{
	uint32_t within = value == 0U ? 0U : period - value;

	return ((uint64_t)overflows + pending) * period + within;
}

/** The port's clock. Its counter has 64 bits; the port extends a narrower counter. */
struct minrpc_clock {
	uint64_t cycles_hz; /**< rate of the cycle counter, read at run time; never 0 */
	/** rate of a second, slower clock that is right over long times; 0: none */
	uint64_t coarse_hz;
	/**
	 * Not 0: an interrupt counts the counter's rounds of so many cycles. It loses some while
	 * interrupts are off, so the coarse clock, of the same oscillator, tells how many there
	 * were. Any other difference between the clocks is an error.
	 */
	uint64_t round_cycles;
	/**
	 * Cycles that clocks of one oscillator may differ, beside their resolution; 0: they have
	 * oscillators of their own, which may differ by a 64th.
	 */
	uint64_t tolerance;
};

/** One reading of both clocks. */
struct minrpc_clock_sample {
	uint64_t cycles;
	uint64_t coarse;
};

/**
 * Returns the cycles from `start` to `stop`. The coarse clock is used instead when the counter
 * stood still, lost a wrap or ran at another rate: *fell_back is then true, and the resolution is
 * the coarse clock's. A coarse clock that went back is ignored. With round_cycles, its
 * rounds count, and *fell_back means that neither clock is known to be right.
 */
uint64_t minrpc_clock_elapsed(const struct minrpc_clock *clock,
			      const struct minrpc_clock_sample *start,
			      const struct minrpc_clock_sample *stop, bool *fell_back);

/**
 * Returns value * to / from without a 64-bit overflow, for rates up to 2^32 and a result that fits.
 */
uint64_t minrpc_clock_convert(uint64_t value, uint64_t from, uint64_t to);

/** Converts to seconds, rounded once to the nearest double. The rate is not 0. */
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
 * Returns kTvmErrorPlatformTimerBadState when the timer runs already, kTvmErrorPlatformCheckFailure
 * when the port's clock can't start.
 */
tvm_crt_error_t minrpc_timer_start(struct minrpc_timer *timer,
				   const struct minrpc_platform *platform, void *context);

/**
 * Returns kTvmErrorPlatformTimerBadState when the timer does not run. The timer is always stopped
 * afterwards.
 */
tvm_crt_error_t minrpc_timer_stop(struct minrpc_timer *timer,
				  const struct minrpc_platform *platform, void *context,
				  uint64_t *cycles);

/** Converts milliseconds to cycles of the clock, as described at the last start. */
uint64_t minrpc_timer_cycles(const struct minrpc_timer *timer, uint32_t milliseconds);

#ifdef __cplusplus
}
#endif

#endif /* MINRPC_TIMER_H_ */
