/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A UART with interrupts: received bytes go to a ring buffer, sent bytes come from memory.
 */
#include "peripherals.h"

#define SIZE 8U

static volatile uint8_t ring[SIZE];
/* Bytes that were put in and taken out. */
volatile uint32_t head, tail;
volatile uint32_t lost;
#ifdef UART_COUNTS
/* The number of waiting bytes: both the handler and the program change it. */
volatile uint32_t count;
#endif

static const uint8_t *volatile sending;
static volatile uint32_t unsent;

void uart_init(uint32_t clock_hz, uint32_t baud)
{
	USART1->BRR = (clock_hz + baud / 2U) / baud;
	USART1->CR1 = USART_CR1_UE | USART_CR1_TE | USART_CR1_RE | USART_CR1_RXNEIE;
}

static uint32_t waiting(void)
{
#ifdef UART_COUNTS
	return count;
#else
	return head - tail;
#endif
}

static void receive(uint8_t byte)
{
	if (waiting() == SIZE) {
		lost++;
		return;
	}
	ring[head % SIZE] = byte;
	head++;
#ifdef UART_COUNTS
	count++;
#endif
}

void USART1_IRQHandler(void)
{
	uint32_t status = USART1->SR;

	if ((status & USART_SR_RXNE) != 0U) {
		receive((uint8_t)USART1->DR);
	}
	if ((status & USART_SR_TXE) != 0U && (USART1->CR1 & USART_CR1_TXEIE) != 0U) {
		if (unsent == 0U) {
			USART1->CR1 &= ~USART_CR1_TXEIE;
		} else {
			USART1->DR = *sending;
			sending++;
			unsent--;
		}
	}
}

/* The next received byte; -1 if there is none. */
int uart_read(void)
{
	uint8_t byte;

	if (waiting() == 0U) {
		return -1;
	}
	byte = ring[tail % SIZE];
	tail++;
#ifdef UART_COUNTS
	count--;
#endif
	return byte;
}

/* Sends `size` bytes by interrupts; they stay where they are until uart_sent(). */
void uart_send(const uint8_t *data, uint32_t size)
{
	sending = data;
	unsent = size;
	USART1->CR1 |= USART_CR1_TXEIE;
}

int uart_sent(void)
{
	return unsent == 0U;
}
