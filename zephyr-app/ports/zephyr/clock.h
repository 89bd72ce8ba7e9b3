/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The clock of the platform timer: the runtime's clock callbacks.
 */
#ifndef CLOCK_H_
#define CLOCK_H_

#include <minrpc/timer.h>

/** @brief Prepare counter and pin, once at boot. Returns 0, or a negative errno. */
int minrpc_port_clock_init(void);

/** @brief Report the rates and widths; see struct minrpc_platform. */
void minrpc_port_clock_describe(void *context, struct minrpc_clock *clock);

/** @brief Begin an interval: count wraps, raise the pin. Returns 0, or a negative errno. */
int minrpc_port_clock_begin(void *context);

/** @brief Read the counter and the kernel's uptime. */
void minrpc_port_clock_sample(void *context, struct minrpc_clock_sample *sample);

/** @brief End the interval that minrpc_port_clock_begin() began. */
void minrpc_port_clock_end(void *context);

#endif /* CLOCK_H_ */
