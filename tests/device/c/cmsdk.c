/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A driver of Arm's CMSDK UART, whose status and clear registers share an address.
 */
#include <stdint.h>

typedef struct {
	volatile uint32_t DATA;
	volatile uint32_t STATE;
	volatile uint32_t CTRL;
	union {
		volatile uint32_t INTSTATUS;
		volatile uint32_t INTCLEAR;
	};
	volatile uint32_t BAUDDIV;
} UART_TypeDef;

#define UART2 ((UART_TypeDef *)0x40006000)

uint32_t transmit(const uint8_t *data, uint32_t size)
{
	uint32_t interrupts = 0;

	UART2->BAUDDIV = 0x12345;
	UART2->CTRL = 1;
	for (uint32_t at = 0; at < size; at++) {
		while (UART2->STATE & 1) {
		}
		UART2->INTCLEAR = 1;
		UART2->DATA = data[at];
		UART2->CTRL |= 4;
		interrupts += UART2->INTSTATUS;
	}
	UART2->CTRL &= ~4;
	return interrupts + (UART2->STATE << 8);
}
