/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The benchmarks' baseline: the bare-metal port's UART driver without the protocol. One character at the start,
 * then an echo of what comes.
 */
#include <stdint.h>

#include "board.h"

void board_reset(void)
{
	SCB_AIRCR = AIRCR_RESET;
	for (;;) {
	}
}

void fault_report(const char *text)
{
	console_write(text);
	console_write("\n");
	board_reset();
}

int main(void)
{
	static const uint8_t ready = '!';

	uart_init();
	link_write(&ready, 1U);
	for (;;) {
		const uint8_t *data;
		uint32_t size = link_wait(&data);

		link_write(data, size);
		link_consume(size);
	}
}
