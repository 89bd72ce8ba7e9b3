/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A driver of Arm's CMSDK UART, whose status and clear registers share an address.
 */
#include <stdint.h>

typedef struct {
	volatile uint32_t data;
	volatile uint32_t state;
	volatile uint32_t ctrl;
	union {
		volatile uint32_t intstatus;
		volatile uint32_t intclear;
	};
	volatile uint32_t bauddiv;
} UART_TypeDef;

#define UART2 ((UART_TypeDef *)0x40006000)

uint32_t transmit(const uint8_t *data, uint32_t size)
{
	uint32_t interrupts = 0;

	UART2->bauddiv = 0x12345;
	UART2->ctrl = 1;
	for (uint32_t at = 0; at < size; at++) {
		while (UART2->state & 1) {
		}
		UART2->intclear = 1;
		UART2->data = data[at];
		UART2->ctrl |= 4;
		interrupts += UART2->intstatus;
	}
	UART2->ctrl &= ~4;
	return interrupts + (UART2->state << 8);
}
