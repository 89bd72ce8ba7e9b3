/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * What a port supplies. Each callback gets the port's own context; NULL is allowed only where said.
 */
#ifndef MINRPC_PLATFORM_H_
#define MINRPC_PLATFORM_H_

#include <stdint.h>

#include <minrpc/timer.h>

struct minrpc_platform {
	/*
	 * Sends all `size` bytes, waiting as long as that takes. Returns 0, or a negative number
	 * when the link is gone.
	 */
	int (*write)(void *context, const uint8_t *data, uint32_t size);

	/*
	 * Describes the clock. Called at each start of the timer and whenever the rate is asked
	 * for.
	 */
	void (*clock_describe)(void *context, struct minrpc_clock *clock);

	/*
	 * Readies the clock for one interval: wrap counting on, pin up. Returns 0, or a negative
	 * number. NULL: nothing to do.
	 */
	int (*clock_begin)(void *context);

	/* Reads the clock. The time that is measured lies between two of these. */
	void (*clock_sample)(void *context, struct minrpc_clock_sample *sample);

	/* Undoes clock_begin. NULL: nothing to do. */
	void (*clock_end)(void *context);

	/* Waits for the time evaluator's cool-down. */
	void (*sleep_ms)(void *context, uint32_t milliseconds);

	/*
	 * Bytes that have arrived behind those that were handed to minrpc_server_receive, and stay
	 * where they are; *data is the first, the return value how many. Does not wait. Called
	 * between the calls of a long measurement, which the start of a new session then ends.
	 * NULL: nothing ends one.
	 */
	uint32_t (*pending)(void *context, const uint8_t **data);

	/* Restarts the device and does not return. NULL: the device can't. */
	void (*reset)(void *context);

	/* Bytes lost on reception since boot (ring full, UART overrun). NULL: none can be. */
	uint32_t (*receive_overruns)(void *context);

	/*
	 * Makes what was written to the block runnable: cache maintenance, page permissions. 0, or
	 * a negative number. NULL: nothing to do.
	 */
	int (*code_ready)(void *context, void *block, uint32_t size);

	/*
	 * Bytes of the stack that requests run on, and the most of it that was ever used. NULL: not
	 * known.
	 */
	void (*stack_use)(void *context, uint32_t *size, uint32_t *peak);
};

#endif /* MINRPC_PLATFORM_H_ */
