/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * What a port supplies. Each callback gets the port's own context; NULL is allowed only where said.
 */
#ifndef MINRPC_PLATFORM_H_
#define MINRPC_PLATFORM_H_

#include <stdint.h>

#include <minrpc/minrpc_config.h>
#include <minrpc/timer.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A port's callbacks: constant, the port's own, for as long as the server is used. All but
 * receive_overruns run where minrpc_server_receive does.
 */
struct minrpc_platform {
	/**
	 * Sends all bytes, waiting as long as that takes.
	 *
	 * @param data  valid until it returns
	 * @param size  1 to the send buffer's size
	 * @return 0, or a negative number when the link is gone
	 */
	int (*write)(void *context, const uint8_t *data, uint32_t size);

	/**
	 * Describes the clock, in Hz. Called at each start of the timer and whenever the rate is
	 * asked for.
	 */
	void (*clock_describe)(void *context, struct minrpc_clock *clock);

	/**
	 * Readies the clock for one interval: wrap counting on, pin up. NULL, as clock_end: nothing
	 * to do.
	 *
	 * @return 0, or a negative number when it can't; clock_end is not called then
	 */
	int (*clock_begin)(void *context);

	/** Reads the clock. The time that is measured lies between two of these. */
	void (*clock_sample)(void *context, struct minrpc_clock_sample *sample);

	/** Undoes clock_begin. */
	void (*clock_end)(void *context);

	/** Waits for the time evaluator's cool-down, 1 ms to 2^27 ms. */
	void (*sleep_ms)(void *context, uint32_t milliseconds);

	/**
	 * Looks at bytes that have arrived behind those that were handed to minrpc_server_receive,
	 * without waiting. Called between the calls of a long measurement, which the start of a new
	 * session then ends. NULL: nothing ends one.
	 *
	 * A port that has no room for more drops what was passed over when it returns 0: else the
	 * start of a session that comes next would never be seen.
	 *
	 * @param from  so many of them are passed over: a ring has two pieces
	 * @param data  set to the next; they stay where they are, and are handed over later
	 * @return how many lie there in one piece; 0: no more
	 */
	uint32_t (*pending)(void *context, uint32_t from, const uint8_t **data);

	/**
	 * Changes when bytes come in. With it, bytes are looked for only after a call during which
	 * some came: that takes the same few instructions for each call of a measurement. NULL
	 * where nothing notices them: then they are looked for about every quarter of a second, and
	 * what a look takes is in the time.
	 */
	const volatile uint32_t *received;

	/** Restarts the device and does not return. NULL: the device can't. */
	void (*reset)(void *context);

	/** Bytes lost on reception since boot (ring full, UART overrun). NULL: none can be. */
	uint32_t (*receive_overruns)(void *context);

	/**
	 * Makes what was written to the block runnable: cache maintenance, page permissions. NULL:
	 * nothing to do.
	 *
	 * @param size  bytes of the block
	 * @return 0, or a negative number when it can't
	 */
	int (*code_ready)(void *context, void *block, uint32_t size);

	/**
	 * Bytes of the stack that requests run on, and the most of it that was ever used. NULL:
	 * not known.
	 */
	void (*stack_use)(void *context, uint32_t *size, uint32_t *peak);

#if MINRPC_COUNTERS
	/** From now on stack_use tells the most since now. NULL: it can't. */
	void (*stack_paint)(void *context);

	/**
	 * Bytes of the heap that are in use, and were at the most. NULL: there is none.
	 *
	 * @param used   set to what is in use now
	 * @param peak   set to the most that was in use since boot or the last reset of it
	 * @param reset  from now on the peak is that since now
	 */
	void (*heap_use)(void *context, uint32_t *used, uint32_t *peak, bool reset);

	/*
	 * Keeps interrupts out of a timed batch: `masked` when it begins, and as they were before
	 * when it has ended. NULL: it can't.
	 */
	void (*interrupts_mask)(void *context, bool masked);
#endif
};

#ifdef __cplusplus
}
#endif

#endif /* MINRPC_PLATFORM_H_ */
