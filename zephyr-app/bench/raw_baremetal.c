/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The benchmarks' baseline over the bare-metal port's UART driver.
 */
#include "port.h"
#include "raw.h"

int main(void)
{
	static const uint8_t piece[1024];

	link_init();
	raw_run(piece, sizeof(piece));
}
