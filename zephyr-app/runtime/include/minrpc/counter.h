/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Counters that are read beside a time: of the processor, of the port, or of an application's own
 * hardware.
 *
 *     #include <minrpc/counter.h>
 *
 *     static uint64_t read_busy(void *context) { return *(volatile uint32_t *)0x40001000; }
 *
 *     const struct minrpc_counter minrpc_own_counters[] = {{"busy", "cycles", 32, read_busy}, {0}};
 *
 * They need the option MINRPC_COUNTERS.
 */
#ifndef MINRPC_COUNTER_H_
#define MINRPC_COUNTER_H_

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One counter: constant, and valid as long as the server is used. */
struct minrpc_counter {
	const char *name; /**< without commas; NULL ends a list */
	const char *unit; /**< "" for a plain count */
	/** The counter's width, 1 to 64 bits. Results are differences modulo 2^bits. */
	uint8_t bits;

	/** Reads the value. Called just before a timed batch begins and just after it has ended. */
	uint64_t (*read)(void *context);

	/**
	 * Starts the counter for the next batches, or stops it. NULL: the counter always runs.
	 *
	 * @return false when it is not available: not permitted, or the hardware has no free slot
	 */
	bool (*enable)(void *context, bool on);

	void *context; /**< passed to both functions */
};

/**
 * The application's own counters, where it defines this list. A counter without a name ends the
 * list. The first 31 of the runtime's five counters, the port's and these are known.
 */
extern const struct minrpc_counter minrpc_own_counters[] __attribute__((weak));

#ifdef __cplusplus
}
#endif

#endif /* MINRPC_COUNTER_H_ */
