/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The platform timer: computes the time between two readings of the port's clocks, and provides
 * TVM's start and stop.
 */
#include <minrpc/timer.h>

#include <stddef.h>
#include <string.h>

#include <minrpc/platform.h>

uint64_t minrpc_clock_convert(uint64_t value, uint64_t from, uint64_t to)
{
	return value / from * to + value % from * to / from;
}

/*
 * A long division: of libgcc's functions for doubles the device would need 5 KiB, for this only.
 */
double minrpc_clock_seconds(uint64_t cycles, uint64_t cycles_hz)
{
	uint64_t exponent = 1023U + 52U; /* the bias, and the bits behind the point */
	uint64_t quotient;
	double seconds;

	if (cycles == 0U) {
		return 0.0;
	}
	for (; cycles >> 63 == 0U; cycles <<= 1) {
		exponent--;
	}
	for (; cycles_hz >> 63 == 0U; cycles_hz <<= 1) {
		exponent++;
	}
	quotient = cycles >= cycles_hz;
	cycles -= quotient != 0U ? cycles_hz : 0U;
	/* 53 bits, and a bit for the rounding. */
	for (; quotient >> 53 == 0U; exponent--) {
		uint64_t lacking = cycles_hz - cycles;
		bool bit = cycles >= lacking;

		quotient = quotient << 1 | bit;
		cycles = bit ? cycles - lacking : cycles << 1;
	}
	quotient += cycles != 0U || (quotient & 2U) != 0U;
	/* The quotient's first bit counts as 1 in the exponent. */
	quotient = (exponent << 52) + (quotient >> 1);
	memcpy(&seconds, &quotient, sizeof(seconds));
	return seconds;
}

uint64_t minrpc_clock_elapsed(const struct minrpc_clock *clock,
			      const struct minrpc_clock_sample *start,
			      const struct minrpc_clock_sample *stop, bool *fell_back)
{
	uint64_t counted = stop->cycles - start->cycles;
	uint64_t expected;
	uint64_t slack;

	*fell_back = false;
	if (clock->coarse_hz == 0U || stop->coarse < start->coarse) {
		return counted;
	}
	expected = minrpc_clock_convert(stop->coarse - start->coarse, clock->coarse_hz,
					clock->cycles_hz);
	if (clock->round_cycles != 0U) {
		uint64_t within = counted % clock->round_cycles;
		uint64_t latest = expected + clock->round_cycles / 2U;
		uint64_t rounds = latest < within ? 0U : (latest - within) / clock->round_cycles;

		counted = rounds * clock->round_cycles + within;
	}
	/*
	 * Two coarse ticks, since each reading is rounded down to a whole tick, and 1/64 for the
	 * oscillators' tolerance.
	 */
	slack = 2U * (clock->cycles_hz / clock->coarse_hz) + 2U +
		(clock->tolerance != 0U ? clock->tolerance : expected / 64U);
	*fell_back = (counted > expected ? counted - expected : expected - counted) > slack;
	return *fell_back ? expected : counted;
}

uint64_t minrpc_timer_cycles(const struct minrpc_timer *timer, uint32_t milliseconds)
{
	return milliseconds * timer->clock.cycles_hz / 1000U;
}

tvm_crt_error_t minrpc_timer_start(struct minrpc_timer *timer,
				   const struct minrpc_platform *platform, void *context)
{
	if (timer->running) {
		return kTvmErrorPlatformTimerBadState;
	}
	if (platform->clock_begin != NULL && platform->clock_begin(context) < 0) {
		return kTvmErrorPlatformCheckFailure;
	}
	platform->clock_describe(context, &timer->clock);
	timer->running = true;
	platform->clock_sample(context, &timer->start);
	return kTvmErrorNoError;
}

tvm_crt_error_t minrpc_timer_stop(struct minrpc_timer *timer,
				  const struct minrpc_platform *platform, void *context,
				  uint64_t *cycles)
{
	struct minrpc_clock_sample stop;

	*cycles = 0U;
	if (!timer->running) {
		return kTvmErrorPlatformTimerBadState;
	}
	platform->clock_sample(context, &stop);
	timer->running = false;
	if (platform->clock_end != NULL) {
		platform->clock_end(context);
	}
	*cycles = minrpc_clock_elapsed(&timer->clock, &timer->start, &stop, &timer->fell_back);
	return kTvmErrorNoError;
}
