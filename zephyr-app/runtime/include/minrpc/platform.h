/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The callbacks that a port provides. Each gets the port's context. A callback may be NULL only if
 * its description permits it.
 */
#ifndef MINRPC_PLATFORM_H_
#define MINRPC_PLATFORM_H_

#include <stdbool.h>
#include <stdint.h>

#include <minrpc/minrpc_config.h>
#include <minrpc/timer.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The port's callbacks: constant, and valid as long as the server is used. receive_overruns may be
 * called from anywhere, the others only where minrpc_server_receive runs.
 */
struct minrpc_platform {
	/**
	 * Sends all bytes, and waits as long as that takes.
	 *
	 * @param data  valid until the callback returns
	 * @param size  1 to the send buffer's size
	 * @return 0; a negative number when the link is gone
	 */
	int (*write)(void *context, const uint8_t *data, uint32_t size);

	/**
	 * Describes the clock, in Hz. Called at each start of the timer and whenever the rate is
	 * needed.
	 */
	void (*clock_describe)(void *context, struct minrpc_clock *clock);

	/**
	 * Prepares the clock for one interval: starts counting wraps, sets a pin. NULL, together
	 * with clock_end: nothing to do.
	 *
	 * @return 0; a negative number on failure: then clock_end is not called
	 */
	int (*clock_begin)(void *context);

	/** Reads the clock. The measured time lies between two such readings. */
	void (*clock_sample)(void *context, struct minrpc_clock_sample *sample);

	/** Reverts clock_begin. */
	void (*clock_end)(void *context);

	/**
	 * Puts back what a function may have changed in the processor, and the port's link, its
	 * clock or the runtime's code need. Called after each call and before each measurement.
	 * NULL: nothing to do.
	 *
	 * @param all  a session begins: also modes that functions may set for others, such as the
	 *             rounding of floats
	 * @return the clock's register that had changed, since when times are wrong; NULL: none
	 */
	const char *(*restore)(void *context, bool all);

	/** Sleeps for the time evaluator's cool-down, 1 ms to 2^27 ms. */
	void (*sleep_ms)(void *context, uint32_t milliseconds);

	/**
	 * Looks, without waiting, at received bytes that were not handed to minrpc_server_receive
	 * yet. Called between the calls of a long measurement, which ends when the start of a new
	 * session is among them. NULL: nothing ends a measurement early.
	 *
	 * When the port has no room for more bytes, it must drop the bytes that were passed over
	 * before it returns 0. Otherwise it could not receive the start of a session.
	 *
	 * @param from  number of bytes to pass over, since a ring has two pieces
	 * @param data  set to the next bytes, which stay where they are and are handed over later
	 * @return number of bytes in this piece; 0: no more
	 */
	uint32_t (*pending)(void *context, uint32_t from, const uint8_t **data);

	/**
	 * Changes when bytes arrive. With it the server looks for bytes only after a call during
	 * which bytes arrived, which costs each call of a measurement the same few instructions.
	 * NULL: the port does not notice arrivals. The server then looks about every quarter of a
	 * second, and the measured time contains the look.
	 */
	const volatile uint32_t *received;

#if MINRPC_ASK
	/**
	 * Waits for bytes while a function runs. The bytes handed over before are consumed.
	 *
	 * @param data  set to the bytes, which are valid until the next call, or until
	 *              minrpc_server_receive returns
	 * @return their number; 0: none yet
	 */
	uint32_t (*receive)(void *context, const uint8_t **data);
#endif

	/** Restarts the device and does not return. NULL: the device can't restart. */
	void (*reset)(void *context);

	/**
	 * Returns the number of bytes lost on reception since boot (ring full, UART overrun). NULL:
	 * none can be lost.
	 */
	uint32_t (*receive_overruns)(void *context);

	/**
	 * Makes the bytes of a block executable: cache maintenance, page permissions. NULL: nothing
	 * to do.
	 *
	 * @param size  bytes of the block
	 * @return 0; a negative number on failure
	 */
	int (*code_ready)(void *context, void *block, uint32_t size);

	/**
	 * Reports the size of the stack that requests run on, and the most bytes of it ever used.
	 * NULL: unknown.
	 */
	void (*stack_use)(void *context, uint32_t *size, uint32_t *peak);

#if MINRPC_GUARDS
	/**
	 * Inspects the guards of the heap's blocks, and repairs them. NULL: they have none.
	 *
	 * @param where  set to words for the place, behind "wrote": "beside the memory of malloc"
	 * @return the first written place outside all blocks; NULL: there is none
	 */
	const void *(*heap_inspect)(void *context, const char **where);
#endif

#if MINRPC_COUNTERS
	/** Restarts the measurement of stack_use's peak. NULL: not possible. */
	void (*stack_paint)(void *context);

	/**
	 * Reports the heap's use. NULL: there is no heap.
	 *
	 * @param used   set to the bytes in use
	 * @param peak   set to the most bytes in use since boot or since the last reset
	 * @param reset  restarts the measurement of the peak
	 */
	void (*heap_use)(void *context, uint32_t *used, uint32_t *peak, bool reset);

	/*
	 * Masks interrupts during a timed batch: `masked` at its start; at its end restores the
	 * earlier state. NULL: not possible.
	 */
	void (*interrupts_mask)(void *context, bool masked);
#endif
};

#ifdef __cplusplus
}
#endif

#endif /* MINRPC_PLATFORM_H_ */
