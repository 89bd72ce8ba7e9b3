/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The 16550 of PCs and of QEMU's RISC-V machine, a register a byte. Its FIFOs hold 16 bytes each
 * way.
 */
#ifndef UART_16550_H_
#define UART_16550_H_

#include <stdbool.h>
#include <stdint.h>

struct uart {
	volatile uint8_t data;      /* the divisor's low byte while LCR_DIVISOR is set */
	volatile uint8_t interrupt; /* the divisor's high byte, in the same way */
	volatile uint8_t fifo;
	volatile uint8_t line;
	volatile uint8_t modem;
	volatile uint8_t state;
};

#define UART_IER_RX       0x01U
#define UART_FCR_ON       0x07U /* both FIFOs on and empty; an interrupt at the first byte */
#define UART_LCR_8N1      0x03U
#define UART_LCR_DIVISOR  0x80U
#define UART_LSR_RX       0x01U
#define UART_LSR_OVERRUN  0x02U /* reading clears it */
#define UART_LSR_TX_EMPTY 0x20U

static inline void uart_enable(struct uart *uart, bool receive)
{
	uart->line = UART_LCR_DIVISOR | UART_LCR_8N1;
	uart->data = 1U; /* the highest rate */
	uart->interrupt = 0U;
	uart->line = UART_LCR_8N1;
	uart->fifo = UART_FCR_ON;
	uart->interrupt = receive ? UART_IER_RX : 0U;
	/* QEMU reads the link again when this register is read, not when the FIFO is emptied. */
	(void)uart->data;
}

static inline void uart_put(struct uart *uart, uint8_t byte)
{
	while ((uart->state & UART_LSR_TX_EMPTY) == 0U) {
	}
	uart->data = byte;
}

/*
 * In the receive interrupt: copies received bytes to `at`, up to `end`, and returns their end.
 * Bytes that are left raise the interrupt again. *overran is set if a byte was lost.
 */
static inline uint8_t *uart_take(struct uart *uart, uint8_t *at, const uint8_t *end, bool *overran)
{
	uint8_t state = uart->state;
	uint8_t seen = state;

	while ((state & UART_LSR_RX) != 0U && at != end) {
		*at++ = uart->data;
		state = uart->state;
		seen |= state;
	}
	*overran = (seen & UART_LSR_OVERRUN) != 0U;
	return at;
}

#endif /* UART_16550_H_ */
