/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A pin that is high while the platform timer runs, if the board names a pin.
 */
#ifndef TIMER_PIN_H_
#define TIMER_PIN_H_

#include <stdbool.h>

#ifdef CONFIG_MINRPC_TIMER_GPIO

/** @brief Make the pin an output, low. Returns 0, or a negative errno of the GPIO driver. */
int minrpc_timer_pin_init(void);

/** @brief Set the pin's level. Returns 0, or a negative errno of the GPIO driver. */
int minrpc_timer_pin_set(bool high);

#else

static inline int minrpc_timer_pin_init(void)
{
	return 0;
}

static inline int minrpc_timer_pin_set(bool high)
{
	(void)high;
	return 0;
}

#endif

#endif /* TIMER_PIN_H_ */
