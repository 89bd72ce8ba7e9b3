/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Registers whose struct has bit-fields, as some vendors write them.
 */
#include <stdint.h>

typedef union {
	struct {
		uint8_t SWRST: 1;
		uint8_t ENABLE: 1;
		uint8_t RESERVED0: 1;
		uint8_t MODE: 3;
	} bit;
	uint8_t reg;
} CTRL_Type;

typedef struct {
	volatile CTRL_Type CTRL;
	uint8_t reserved1[3];
	struct {
		volatile uint32_t EN: 1;
		volatile uint32_t MODE: 3;
	} CR;
	volatile uint32_t LOW: 16, HIGH: 16;
	volatile uint32_t DR;
} BITS_Type;

static BITS_Type *const bits = (BITS_Type *)0x40013800;

void enable(void)
{
	bits->CTRL.bit.MODE = 3;
	bits->CTRL.reg |= 2;
	bits->CR.MODE = 5;
	bits->CR.EN = 1;
}

uint32_t swap(void)
{
	bits->HIGH = bits->LOW;
	return bits->HIGH;
}
