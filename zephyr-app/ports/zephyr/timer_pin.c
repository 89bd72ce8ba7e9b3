/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "timer_pin.h"

#include <errno.h>

#include <zephyr/drivers/gpio.h>

static const struct gpio_dt_spec pin = GPIO_DT_SPEC_GET(DT_ALIAS(minrpc_timer_gpio), gpios);

int minrpc_timer_pin_init(void)
{
	return gpio_is_ready_dt(&pin) ? gpio_pin_configure_dt(&pin, GPIO_OUTPUT_INACTIVE) : -ENODEV;
}

int minrpc_timer_pin_set(bool high)
{
	return gpio_pin_set_dt(&pin, high ? 1 : 0);
}
