/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * An x86 that runs a process, which can neither mask interrupts nor reset the machine.
 */
#ifndef PROCESS_H
#define PROCESS_H

#include <stdint.h>

static inline int is_process(void)
{
	uint16_t segment;

	__asm__ volatile("mov %%cs, %0" : "=r"(segment));
	return segment & 3;
}

#endif
