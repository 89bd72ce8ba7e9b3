/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Arm's CMSDK APB UART. It holds one byte that came in.
 */
#ifndef UART_CMSDK_H_
#define UART_CMSDK_H_

#include <stdbool.h>
#include <stdint.h>

struct uart {
	volatile uint32_t data;
	volatile uint32_t state;
	volatile uint32_t ctrl;
	volatile uint32_t interrupt; /* write 1 to clear */
	volatile uint32_t divider;
};

#define UART_STATE_TX_FULL (1U << 0)
#define UART_STATE_RX_FULL (1U << 1)
#define UART_STATE_OVERRUN (1U << 3) /* write 1 to clear */
#define UART_CTRL_TX       (1U << 0)
#define UART_CTRL_RX       (1U << 1)
#define UART_CTRL_RX_IRQ   (1U << 3)
#define UART_INTERRUPT_RX  (1U << 1)

static inline void uart_enable(struct uart *uart, bool receive)
{
	uart->divider = 16U; /* the smallest divisor that the UART accepts: the highest rate */
	uart->ctrl = receive ? UART_CTRL_TX | UART_CTRL_RX | UART_CTRL_RX_IRQ : UART_CTRL_TX;
	/*
	 * QEMU stops reading a link whose receiver is off, and reads again when DATA is read, not
	 * when the receiver is turned on. Without this read some boots never receive a byte.
	 */
	(void)uart->data;
}

static inline void uart_put(struct uart *uart, uint8_t byte)
{
	while ((uart->state & UART_STATE_TX_FULL) != 0U) {
	}
	uart->data = byte;
}

/*
 * In the receive interrupt: copies received bytes to `at`, up to `end`, which is behind `at`, and
 * returns their end. Bytes that are left raise the interrupt again. *overran is set if a byte was
 * lost.
 */
static inline uint8_t *uart_take(struct uart *uart, uint8_t *at, const uint8_t *end, bool *overran)
{
	uint32_t state;

	uart->interrupt = UART_INTERRUPT_RX;
	do {
		state = uart->state;
		if ((state & UART_STATE_RX_FULL) == 0U) {
			break;
		}
		*at++ = (uint8_t)uart->data;
	} while (at != end);
	if ((state & UART_STATE_OVERRUN) != 0U) {
		uart->state = UART_STATE_OVERRUN;
		*overran = true;
	}
	return at;
}

#endif /* UART_CMSDK_H_ */
