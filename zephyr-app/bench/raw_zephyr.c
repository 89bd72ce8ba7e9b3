/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The benchmarks' baseline: the Zephyr port's UART driver without the protocol. One character at the start, then
 * an echo of what comes.
 */
#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

#include "device.h"
#include "link.h"

/* Nobody listens for text on the link. */
void device_last_words(const char *text, uint32_t size)
{
	ARG_UNUSED(text);
	ARG_UNUSED(size);
}

int main(void)
{
	static const uint8_t ready = '!';
	int error = link_init();

	if (error != 0) {
		printk("raw: UART failed: error %d\n", error);
		return error;
	}
	link_write(&ready, 1U);
	for (;;) {
		const uint8_t *data;
		uint32_t size = link_wait(&data);

		link_write(data, size);
		link_consume(size);
	}
}
