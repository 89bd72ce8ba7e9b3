/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Counters that are read beside a time: of the processor, of the port, of an application's own
 * hardware.
 *
 *     #include <minrpc/counter.h>
 *
 *     static uint64_t read_busy(void *context) { return *(volatile uint32_t *)0x40001000; }
 *
 *     const struct minrpc_counter minrpc_own_counters[] = {{"busy", "cycles", 32, read_busy}, {0}};
 *
 * They are there where MINRPC_COUNTERS is on.
 */
#ifndef MINRPC_COUNTER_H_
#define MINRPC_COUNTER_H_

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One counter; constant, its owner's, for as long as the server is used. */
struct minrpc_counter {
	const char *name; /**< without commas; NULL ends a list */
	const char *unit; /**< "" for a number of something */
	/** 1 to 64, its width: what is told is a difference, modulo 2 to the power of it. */
	uint8_t bits;

	/** Its value now. Called just before a timed batch begins, and just after it has ended. */
	uint64_t (*read)(void *context);

	/**
	 * Sets it going for the next batches, or with `on` false stops it. NULL: it always runs.
	 *
	 * @return false when it can't be had: not allowed, or no slot of the hardware is free
	 */
	bool (*enable)(void *context, bool on);

	void *context; /**< handed to both */
};

/**
 * An application's own counters, where it defines them; a counter without a name ends the list.
 * Together with the runtime's five and the port's, the first 31 are known.
 */
extern const struct minrpc_counter minrpc_own_counters[] __attribute__((weak));

#ifdef __cplusplus
}
#endif

#endif /* MINRPC_COUNTER_H_ */
