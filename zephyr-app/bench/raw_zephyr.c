/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The benchmarks' baseline over the Zephyr port's UART driver.
 */
#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

#include "server.h"
#include "link.h"
#include "raw.h"

uint32_t link_wait(const uint8_t **data)
{
	return minrpc_link_wait(data);
}

void link_consume(uint32_t size)
{
	minrpc_link_consume(size);
}

void link_write(const uint8_t *data, uint32_t size)
{
	minrpc_link_write(data, size);
}

/* No client reads text on the link. */
void minrpc_device_last_words(const char *text, uint32_t size)
{
	ARG_UNUSED(text);
	ARG_UNUSED(size);
}

void minrpc_device_callers(uintptr_t pointer)
{
	ARG_UNUSED(pointer);
}

int main(void)
{
	static const uint8_t piece[1024];
	int error = minrpc_link_init();

	if (error != 0) {
		printk("raw: UART failed: error %d\n", error);
		return error;
	}
	raw_run(piece, sizeof(piece));
}
