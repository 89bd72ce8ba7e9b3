/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * MACHINE_SECOND: the base of FPGAIO. MACHINE_SECOND_HZ: the rate of its faster counter.
 */
#include "../fpgaio.h"
#include "machine.h"
#include "port.h"

const uint32_t second_hz = MACHINE_SECOND_HZ >> FPGAIO_SHIFT;

static uint32_t offset;

void second_init(void)
{
	offset = fpgaio_counter(MACHINE_SECOND) -
		 (uint32_t)fpgaio_by_hundredths(MACHINE_SECOND, MACHINE_SECOND_HZ);
}

uint64_t second_ticks(void)
{
	return fpgaio_ticks(MACHINE_SECOND, MACHINE_SECOND_HZ, offset);
}
