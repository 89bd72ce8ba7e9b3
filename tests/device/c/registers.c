/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A driver as vendors write them, and accesses of all widths, which work on memory, too.
 */
#include <stdint.h>

typedef struct {
	volatile uint32_t SR;
	volatile uint32_t DR;
	volatile uint32_t BRR;
	volatile uint32_t CR1;
	uint32_t RESERVED0;
	volatile uint16_t HALF[2];
	volatile uint8_t BYTE[4];
	volatile uint32_t LAST[9];
} USART_TypeDef;

#define USART1 ((USART_TypeDef *)0x40013800)

void uart_put(int c)
{
	while (!(USART1->SR & 0x80)) {
	}
	USART1->DR = c;
}

uint32_t uart_init(uint32_t divider)
{
	USART1->BRR = divider;
	USART1->CR1 |= 0x2000;
	USART1->CR1 |= 0xc;
	return USART1->CR1;
}

uint32_t uart_reserved(void)
{
	return *(volatile uint32_t *)&USART1->RESERVED0;
}

void clock_on(void)
{
	*(volatile uint32_t *)0x40023844 |= 16;
}

uint32_t poll(uint32_t n)
{
	uint32_t sum = 0;

	while (n--) {
		sum += USART1->SR;
	}
	return sum;
}

/* As by an STM32's ATOMIC_SET_BIT, and by the alias of one bit. */
uint32_t bits(void)
{
	*(volatile uint32_t *)(0x42000000 + 0x1380c * 32 + 13 * 4) = 1;
	*(volatile uint32_t *)(0x42000000 + 0x1380c * 32 + 2 * 4) = 0;
	return *(volatile uint32_t *)(0x42000000 + 0x1380c * 32 + 13 * 4);
}

uint32_t crashes(void)
{
	if (USART1->SR != 0) {
		__builtin_trap();
	}
	return 0;
}

/* Widths and signs: p points to a USART_TypeDef. */
uint32_t form_widths(volatile uint32_t *p)
{
	volatile uint8_t *byte = (volatile uint8_t *)p;
	volatile int8_t *sbyte = (volatile int8_t *)p;
	volatile uint16_t *half = (volatile uint16_t *)p;
	volatile int16_t *shalf = (volatile int16_t *)p;
	uint32_t sum =
		p[0] + 3 * byte[5] + 5 * half[3] + 7 * (uint32_t)sbyte[4] + 9 * (uint32_t)shalf[2];

	byte[9] = 0x5a;
	half[7] = (uint16_t)sum;
	p[1] = sum;
	p[2] |= 0x100;
	return sum + p[2];
}

/* The first exchange finds another value. */
uint32_t form_atomic(volatile uint32_t *p)
{
	uint32_t expected = 5;
	uint32_t sum = __atomic_fetch_or(&p[0], 0x70, __ATOMIC_SEQ_CST);

	for (uint32_t i = 0; i < 2; i++) {
		sum = 3 * sum + __atomic_compare_exchange_n(&p[1], &expected, 77 + i, 0,
							    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	}
	sum += 5 * __atomic_fetch_nand(&p[2], 0xff, __ATOMIC_SEQ_CST);
#ifdef __x86_64__
	__asm__ volatile("rorl $1, %0\n\tmovnti %k1, %0" : "+m"(p[3]) : "r"(sum));
#endif
	return sum + expected;
}

uint64_t form_long(volatile uint64_t *p)
{
	uint64_t sum = p[0];

	p[1] = sum + 1;
	return sum;
}
