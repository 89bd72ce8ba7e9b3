/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The benchmarks' baseline over the bare-metal port's UART driver.
 */
#include "board.h"
#include "raw.h"

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
	static const uint8_t piece[1024];

	uart_init();
	raw_run(piece, sizeof(piece));
}
