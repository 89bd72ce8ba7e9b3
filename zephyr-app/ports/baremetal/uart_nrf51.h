/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The UART of Nordic's nRF51. It holds six bytes that came in.
 */
#ifndef UART_NRF51_H_
#define UART_NRF51_H_

#include <stdbool.h>
#include <stdint.h>

/* Its registers lie far apart. */
struct uart {
	volatile uint32_t at[0x530U / 4U];
};

/* Tasks: write 1. */
#define UART_START_RECEIVE (0x000U / 4U)
#define UART_START_SEND    (0x008U / 4U)
/* Events: write 0 to clear. */
#define UART_RECEIVED      (0x108U / 4U)
#define UART_SENT          (0x11cU / 4U)
#define UART_INTERRUPT_SET (0x304U / 4U)
#define UART_ERROR_SOURCE  (0x480U / 4U) /* write 1 to clear */
#define UART_ENABLE        (0x500U / 4U)
#define UART_PIN_SEND      (0x50cU / 4U)
#define UART_PIN_RECEIVE   (0x514U / 4U)
#define UART_DATA_IN       (0x518U / 4U)
#define UART_DATA_OUT      (0x51cU / 4U)
#define UART_BAUD          (0x524U / 4U)

#define UART_ENABLED       4U
#define UART_BAUD_1M       0x10000000U
#define UART_INTERRUPT_RX  (1U << 2)
#define UART_ERROR_OVERRUN (1U << 0)

/*
 * MACHINE_LINK_PINS: P0's pins for sending and receiving, two numbers in one: sending * 256 +
 * receiving.
 */
static inline void uart_enable(struct uart *uart, bool receive)
{
	uart->at[UART_PIN_SEND] = MACHINE_LINK_PINS >> 8;
	uart->at[UART_PIN_RECEIVE] = MACHINE_LINK_PINS & 0xffU;
	uart->at[UART_BAUD] = UART_BAUD_1M; /* the highest rate */
	uart->at[UART_ENABLE] = UART_ENABLED;
	uart->at[UART_START_SEND] = 1U;
	if (receive) {
		uart->at[UART_INTERRUPT_SET] = UART_INTERRUPT_RX;
		uart->at[UART_START_RECEIVE] = 1U;
		/*
		 * QEMU reads the link again when this register is read, not when the receiver
		 * starts.
		 */
		(void)uart->at[UART_DATA_IN];
	}
}

static inline void uart_put(struct uart *uart, uint8_t byte)
{
	uart->at[UART_SENT] = 0U;
	uart->at[UART_DATA_OUT] = byte;
	while (uart->at[UART_SENT] == 0U) {
	}
}

/*
 * In the receive interrupt: copies received bytes to `at`, up to `end`, and returns their end.
 * Bytes that are left raise the interrupt again. *overran is set if a byte was lost.
 */
static inline uint8_t *uart_take(struct uart *uart, uint8_t *at, const uint8_t *end, bool *overran)
{
	while (uart->at[UART_RECEIVED] != 0U && at != end) {
		uart->at[UART_RECEIVED] = 0U;
		*at++ = (uint8_t)uart->at[UART_DATA_IN];
	}
	if ((uart->at[UART_ERROR_SOURCE] & UART_ERROR_OVERRUN) != 0U) {
		uart->at[UART_ERROR_SOURCE] = UART_ERROR_OVERRUN;
		*overran = true;
	}
	return at;
}

#endif /* UART_NRF51_H_ */
