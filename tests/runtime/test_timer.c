/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The platform timer's arithmetic, with counters that the test injects.
 */
#include <minrpc/platform.h>
#include <minrpc/timer.h>

#include "check.h"

#define TWO_32 (1ULL << 32)

/* ---------------------------------------------------------- narrow counters */

TEST(a_wide_counter_survives_its_wraps)
{
	static const uint32_t starts[] = {0U, 1U, 0x7fffffffU, 0x80000000U, UINT32_MAX};
	static const uint32_t steps[] = {0U, 1U, 2U, 1000U, 0x7fffffffU, 0x80000000U, UINT32_MAX};

	for (size_t i = 0U; i < sizeof(starts) / sizeof(starts[0]); i++) {
		for (size_t j = 0U; j < sizeof(steps) / sizeof(steps[0]); j++) {
			struct minrpc_wide_counter counter = {.last = starts[i]};
			uint32_t now = starts[i];
			uint64_t first = minrpc_wide_counter_update(&counter, now);

			for (uint64_t n = 1U; n <= 10U; n++) {
				now += steps[j];
				CHECK_EQ(minrpc_wide_counter_update(&counter, now) - first,
					 n * steps[j]);
			}
		}
	}
}

/* The counter counts like SysTick: from the period down; 0 is the first cycle of the next round. */
TEST(a_down_counter_tells_every_cycle)
{
	const uint32_t period = 7U;

	for (uint32_t t = 0U; t < 5U * period; t++) {
		uint32_t within = t % period;
		uint32_t value = within == 0U ? 0U : period - within;
		uint32_t rounds = t / period;

		CHECK_EQ(minrpc_down_counter(rounds, false, value, period), t);
		if (rounds > 0U) {
			/* The interrupt that counts the last round is still to be taken. */
			CHECK_EQ(minrpc_down_counter(rounds - 1U, true, value, period), t);
		}
	}
}

TEST(a_down_counter_past_32_bits)
{
	const uint32_t period = 0x01000000U;

	CHECK_EQ(minrpc_down_counter(256U, false, 0U, period), TWO_32);
	CHECK_EQ(minrpc_down_counter(255U, true, 0U, period), TWO_32);
	CHECK_EQ(minrpc_down_counter(255U, false, 1U, period), TWO_32 - 1U);
	CHECK_EQ(minrpc_down_counter(256U, false, period - 1U, period), TWO_32 + 1U);
	CHECK_EQ(minrpc_down_counter(UINT32_MAX, true, 1U, UINT32_MAX),
		 TWO_32 * UINT32_MAX + UINT32_MAX - 1U);
}

/* -------------------------------------------------------------- conversion */

TEST(conversions_of_known_values)
{
	CHECK_EQ(minrpc_clock_convert(0U, 1000U, 1U), 0U);
	CHECK_EQ(minrpc_clock_convert(40U, 1000U, 25000000U), 1000000U);
	CHECK_EQ(minrpc_clock_convert(1U, 32768U, 1000000000U), 30517U);
	CHECK_EQ(minrpc_clock_convert(25000000U, 25000000U, 1000000000U), 1000000000U);
	CHECK_EQ(minrpc_clock_convert(UINT64_MAX, 1000000000U, 1000000000U), UINT64_MAX);
	CHECK_EQ(minrpc_clock_convert(UINT64_MAX, 1000000000U, 1U), UINT64_MAX / 1000000000U);
	CHECK_EQ(minrpc_clock_convert(UINT64_MAX / 3U, UINT32_MAX, UINT32_MAX), UINT64_MAX / 3U);
}

#ifdef __SIZEOF_INT128__
__extension__ typedef unsigned __int128 wide;

TEST(conversions_do_not_overflow_on_the_way)
{
	static const uint64_t rates[] = {1U,          1000U,     10000U,     32768U,
					 1000000U,    25000000U, 100000000U, 1000000000U,
					 4000000000U, UINT32_MAX};
	static const uint64_t values[] = {0U,        1U,          999U,       4294967295U,
					  TWO_32,    TWO_32 + 1U, 1ULL << 40, (1ULL << 53) + 1U,
					  1ULL << 60};

	for (size_t i = 0U; i < sizeof(rates) / sizeof(rates[0]); i++) {
		for (size_t j = 0U; j < sizeof(rates) / sizeof(rates[0]); j++) {
			for (size_t k = 0U; k < sizeof(values) / sizeof(values[0]); k++) {
				wide exact = (wide)values[k] * rates[j] / rates[i];

				if (exact <= UINT64_MAX) {
					CHECK_EQ(
						minrpc_clock_convert(values[k], rates[i], rates[j]),
						exact);
				}
			}
		}
	}
}
#else
TEST(conversions_do_not_overflow_on_the_way)
{
	CHECK_EQ(minrpc_clock_convert((1ULL << 40) + 7U, UINT32_MAX, UINT32_MAX),
		 (1ULL << 40) + 7U);
}
#endif

TEST(seconds_are_rounded_once)
{
	CHECK(minrpc_clock_seconds(0U, 25000000U) == 0.0);
	CHECK(minrpc_clock_seconds(1U, 25000000U) == 4e-08);
	CHECK(minrpc_clock_seconds(3U, 10U) == 0.3);
	CHECK(minrpc_clock_seconds(5000000000U, 1000000000U) == 5.0);
	CHECK(minrpc_clock_seconds((1ULL << 53) - 1U, 1U) == 9007199254740991.0);
}

/* ------------------------------------------------------------ two readings */

/*
 * A clock whose true time is `t` cycles after some start; both counters as a port would read them.
 */
static struct minrpc_clock_sample read_at(const struct minrpc_clock *clock, uint64_t origin,
					  uint64_t t)
{
	struct minrpc_clock_sample sample = {.cycles = origin + t};

	if (clock->coarse_hz != 0U) {
		sample.coarse =
			minrpc_clock_convert(origin + t, clock->cycles_hz, clock->coarse_hz);
	}
	return sample;
}

static void check_elapsed(const struct minrpc_clock *clock, uint64_t origin, uint64_t cycles)
{
	struct minrpc_clock_sample start = read_at(clock, origin, 0U);
	struct minrpc_clock_sample stop = read_at(clock, origin, cycles);
	bool fell_back = true;

	CHECK_EQ(minrpc_clock_elapsed(clock, &start, &stop, &fell_back), cycles);
	CHECK(!fell_back);
}

/* Zero, a tick, and the spots where 32 bits of cycles or of nanoseconds end, a tick either side. */
TEST(elapsed_is_right_to_a_cycle_across_the_bad_spots)
{
	static const struct minrpc_clock clocks[] = {
		{.cycles_hz = 25000000U, .coarse_hz = 10000U},
		{.cycles_hz = 100000000U, .coarse_hz = 100U},
		{.cycles_hz = 1000000000U, .coarse_hz = 1000U},
		{.cycles_hz = 64000000U, .coarse_hz = 32768U},
		{.cycles_hz = 32768U, .coarse_hz = 128U},
		{.cycles_hz = 1000000000U},
		{.cycles_hz = 25000000U, .coarse_hz = 10000U},
	};
	static const uint64_t origins[] = {0U,          1U,         12345U, 0x7fffffffU,
					   0x80000000U, UINT32_MAX, TWO_32, 5U * TWO_32 - 3U};

	for (size_t i = 0U; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		const struct minrpc_clock *clock = &clocks[i];
		const uint64_t spots[] = {
			0U,
			1U,
			2U,
			100U,
			1U << 24,
			1U << 31,
			TWO_32,
			2U * TWO_32,
			3U * TWO_32,
			17U * TWO_32,
			/* 2^31 and 2^32 nanoseconds: 2.15 s and 4.29 s. */
			minrpc_clock_convert(1U << 31, 1000000000U, clock->cycles_hz),
			minrpc_clock_convert(TWO_32, 1000000000U, clock->cycles_hz),
			clock->cycles_hz,
			100U * clock->cycles_hz,
		};

		for (size_t j = 0U; j < sizeof(spots) / sizeof(spots[0]); j++) {
			for (size_t k = 0U; k < sizeof(origins) / sizeof(origins[0]); k++) {
				check_elapsed(clock, origins[k], spots[j]);
				check_elapsed(clock, origins[k], spots[j] + 1U);
				if (spots[j] != 0U) {
					check_elapsed(clock, origins[k], spots[j] - 1U);
				}
			}
		}
	}
}

/* The port widens its counter; a counter that was not widened loses whole wraps. */
TEST(a_counter_that_lost_a_wrap_falls_back)
{
	const struct minrpc_clock clock = {.cycles_hz = 100000000U, .coarse_hz = 1000U};
	const struct minrpc_clock_sample start = {.cycles = 0U, .coarse = 0U};
	const struct minrpc_clock_sample stop = {.cycles = 5000000000U - TWO_32, .coarse = 50000U};
	bool fell_back = false;

	CHECK_EQ(minrpc_clock_elapsed(&clock, &start, &stop, &fell_back), 5000000000U);
	CHECK(fell_back);
}

/*
 * It reads to two coarse ticks, to a 64th, and to two cycles: one cycle more, either way, is a
 * wrong counter.
 */
TEST(the_slack_ends_at_a_cycle)
{
	static const uint64_t coarse_ticks[] = {0U, 1U, 2U, 64U, 1000U};
	const struct minrpc_clock clock = {.cycles_hz = 25000000U, .coarse_hz = 10000U};
	const uint64_t tick = 2500U;

	for (size_t i = 0U; i < sizeof(coarse_ticks) / sizeof(coarse_ticks[0]); i++) {
		const struct minrpc_clock_sample start = {.cycles = 1ULL << 40, .coarse = 7U};
		uint64_t expected = coarse_ticks[i] * tick;
		uint64_t slack = 2U * tick + expected / 64U + 2U;
		struct minrpc_clock_sample stop = {.coarse = 7U + coarse_ticks[i]};
		bool fell_back;

		for (int wrong = 0; wrong < 2; wrong++) {
			uint64_t most = expected + slack + (uint64_t)wrong;
			uint64_t least = expected - slack - (uint64_t)wrong;

			stop.cycles = start.cycles + most;
			CHECK_EQ(minrpc_clock_elapsed(&clock, &start, &stop, &fell_back),
				 wrong ? expected : most);
			CHECK_EQ(fell_back, wrong);
			/*
			 * A value below zero comes of a counter that went back, by no more than the
			 * clocks' resolution.
			 */
			stop.cycles = start.cycles + least;
			CHECK_EQ(minrpc_clock_elapsed(&clock, &start, &stop, &fell_back),
				 wrong || expected < slack ? expected : least);
			CHECK_EQ(fell_back, wrong || expected < slack);
		}
	}
}

/*
 * Clocks of two processors, or of a driver: a clock that goes back by a tick is no reason to doubt
 * the counter.
 */
TEST(a_coarse_clock_that_goes_back_is_not_asked)
{
	static const uint64_t counts[] = {0U, 1U, 2500U, 25000000U};
	const struct minrpc_clock clock = {.cycles_hz = 25000000U, .coarse_hz = 10000U};

	for (size_t i = 0U; i < sizeof(counts) / sizeof(counts[0]); i++) {
		const struct minrpc_clock_sample start = {.cycles = 99U, .coarse = 500U};
		struct minrpc_clock_sample stop = {.cycles = 99U + counts[i], .coarse = 499U};
		bool fell_back = true;

		CHECK_EQ(minrpc_clock_elapsed(&clock, &start, &stop, &fell_back), counts[i]);
		CHECK(!fell_back);
	}
}

TEST(a_counter_that_stands_still_falls_back)
{
	const struct minrpc_clock clock = {.cycles_hz = 25000000U, .coarse_hz = 10000U};
	const struct minrpc_clock_sample start = {.cycles = 99U, .coarse = 500U};
	const struct minrpc_clock_sample stop = {.cycles = 99U, .coarse = 10500U};
	bool fell_back = false;

	CHECK_EQ(minrpc_clock_elapsed(&clock, &start, &stop, &fell_back), 25000000U);
	CHECK(fell_back);
}

TEST(a_counter_at_another_rate_falls_back)
{
	const struct minrpc_clock clock = {.cycles_hz = 100000000U, .coarse_hz = 1000U};
	const struct minrpc_clock_sample start = {0U, 0U};
	bool fell_back = false;

	/* A quarter of the rate, twice the rate, and backwards. */
	CHECK_EQ(minrpc_clock_elapsed(&clock, &start,
				      &(struct minrpc_clock_sample){25000000U, 1000U}, &fell_back),
		 100000000U);
	CHECK(fell_back);
	fell_back = false;
	CHECK_EQ(minrpc_clock_elapsed(&clock, &start,
				      &(struct minrpc_clock_sample){200000000U, 1000U}, &fell_back),
		 100000000U);
	CHECK(fell_back);
	fell_back = false;
	CHECK_EQ(minrpc_clock_elapsed(&clock, &(struct minrpc_clock_sample){100U, 0U},
				      &(struct minrpc_clock_sample){50U, 1000U}, &fell_back),
		 100000000U);
	CHECK(fell_back);
}

TEST(oscillators_may_differ_a_little)
{
	const struct minrpc_clock clock = {.cycles_hz = 100000000U, .coarse_hz = 1000U};
	const struct minrpc_clock_sample start = {0U, 0U};
	const struct minrpc_clock_sample stop = {100500000U, 1000U}; /* half a percent fast */
	bool fell_back = true;

	CHECK_EQ(minrpc_clock_elapsed(&clock, &start, &stop, &fell_back), 100500000U);
	CHECK(!fell_back);
}

/* ---------------------------------------------------------- start and stop */

struct port {
	uint64_t now;
	int begin_result;
	uint32_t begun;
	uint32_t ended;
};

static void describe(void *context, struct minrpc_clock *clock)
{
	(void)context;
	*clock = (struct minrpc_clock){.cycles_hz = 1000U};
}

static int begin(void *context)
{
	struct port *port = context;

	port->begun += port->begin_result == 0;
	return port->begin_result;
}

static void sample(void *context, struct minrpc_clock_sample *sample)
{
	*sample = (struct minrpc_clock_sample){.cycles = ((struct port *)context)->now};
}

static void end(void *context)
{
	((struct port *)context)->ended++;
}

static const struct minrpc_platform platform = {
	.clock_describe = describe,
	.clock_begin = begin,
	.clock_sample = sample,
	.clock_end = end,
};

TEST(start_and_stop)
{
	struct minrpc_timer timer = {0};
	struct port port = {.now = UINT64_MAX - 0xfU};
	uint64_t cycles;

	CHECK_EQ(minrpc_timer_start(&timer, &platform, &port), kTvmErrorNoError);
	port.now = 0x10U;
	CHECK_EQ(minrpc_timer_stop(&timer, &platform, &port, &cycles), kTvmErrorNoError);
	CHECK_EQ(cycles, 0x20U);
	CHECK_EQ(port.begun, 1U);
	CHECK_EQ(port.ended, 1U);
}

TEST(a_timer_is_started_once)
{
	struct minrpc_timer timer = {0};
	struct port port = {0};
	uint64_t cycles;

	CHECK_EQ(minrpc_timer_start(&timer, &platform, &port), kTvmErrorNoError);
	port.now = 5U;
	CHECK_EQ(minrpc_timer_start(&timer, &platform, &port), kTvmErrorPlatformTimerBadState);
	port.now = 7U;
	/* The first start still counts. */
	CHECK_EQ(minrpc_timer_stop(&timer, &platform, &port, &cycles), kTvmErrorNoError);
	CHECK_EQ(cycles, 7U);
	CHECK_EQ(port.begun, 1U);
}

TEST(a_timer_that_does_not_run_is_not_stopped)
{
	struct minrpc_timer timer = {0};
	struct port port = {.now = 9U};
	uint64_t cycles = 1U;

	CHECK_EQ(minrpc_timer_stop(&timer, &platform, &port, &cycles),
		 kTvmErrorPlatformTimerBadState);
	CHECK_EQ(cycles, 0U);
	CHECK_EQ(port.ended, 0U);
	CHECK_EQ(minrpc_timer_start(&timer, &platform, &port), kTvmErrorNoError);
	CHECK_EQ(minrpc_timer_stop(&timer, &platform, &port, &cycles), kTvmErrorNoError);
	CHECK_EQ(minrpc_timer_stop(&timer, &platform, &port, &cycles),
		 kTvmErrorPlatformTimerBadState);
}

TEST(a_clock_that_does_not_begin_leaves_the_timer_stopped)
{
	struct minrpc_timer timer = {0};
	struct port port = {.begin_result = -5};
	uint64_t cycles;

	CHECK(minrpc_timer_start(&timer, &platform, &port) != kTvmErrorNoError);
	CHECK_EQ(minrpc_timer_stop(&timer, &platform, &port, &cycles),
		 kTvmErrorPlatformTimerBadState);
	port.begin_result = 0;
	CHECK_EQ(minrpc_timer_start(&timer, &platform, &port), kTvmErrorNoError);
	CHECK_EQ(minrpc_timer_stop(&timer, &platform, &port, &cycles), kTvmErrorNoError);
	CHECK_EQ(port.begun, port.ended);
}

TEST(a_port_need_not_begin_or_end)
{
	static const struct minrpc_platform bare = {.clock_describe = describe,
						    .clock_sample = sample};
	struct minrpc_timer timer = {0};
	struct port port = {0};
	uint64_t cycles;

	CHECK_EQ(minrpc_timer_start(&timer, &bare, &port), kTvmErrorNoError);
	port.now = 1U;
	CHECK_EQ(minrpc_timer_stop(&timer, &bare, &port, &cycles), kTvmErrorNoError);
	CHECK_EQ(cycles, 1U);
}

CHECK_MAIN(CASE(a_wide_counter_survives_its_wraps), CASE(a_down_counter_tells_every_cycle),
	   CASE(a_down_counter_past_32_bits), CASE(conversions_of_known_values),
	   CASE(conversions_do_not_overflow_on_the_way), CASE(seconds_are_rounded_once),
	   CASE(elapsed_is_right_to_a_cycle_across_the_bad_spots),
	   CASE(a_counter_that_lost_a_wrap_falls_back), CASE(the_slack_ends_at_a_cycle),
	   CASE(a_coarse_clock_that_goes_back_is_not_asked),
	   CASE(a_counter_that_stands_still_falls_back), CASE(a_counter_at_another_rate_falls_back),
	   CASE(oscillators_may_differ_a_little), CASE(start_and_stop),
	   CASE(a_timer_is_started_once), CASE(a_timer_that_does_not_run_is_not_stopped),
	   CASE(a_clock_that_does_not_begin_leaves_the_timer_stopped),
	   CASE(a_port_need_not_begin_or_end))
