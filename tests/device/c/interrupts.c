/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A UART that receives and sends by interrupts, with an update that an interrupt can lose.
 */
#include <setjmp.h>
#include <stdint.h>

typedef struct {
	volatile uint32_t SR, DR, BRR, CR1;
} USART_TypeDef;

#define USART1 ((USART_TypeDef *)0x40013800)

volatile uint32_t count, head, tail, calls;
volatile uint8_t ring[8];
uint32_t exception;
const char *volatile to_send;
volatile uint32_t left;

static uint32_t exception_number(void)
{
	uint32_t number = 0;

#if defined(__arm__)
	__asm__ volatile("mrs %0, ipsr" : "=r"(number));
#endif
	return number;
}

static void disable_irq(void)
{
#if defined(__arm__)
	__asm__ volatile("cpsid i" ::: "memory");
#elif defined(__riscv)
	__asm__ volatile("csrci mstatus, 8" ::: "memory");
#endif
}

static void enable_irq(void)
{
#if defined(__arm__)
	__asm__ volatile("cpsie i" ::: "memory");
#elif defined(__riscv)
	__asm__ volatile("csrsi mstatus, 8" ::: "memory");
#endif
}

void rx_isr(void)
{
	ring[head] = 42;
	head = (head + 1) & 7;
	count++;
	calls++;
	exception = exception_number();
}

void off_isr(void)
{
	disable_irq();
}

static jmp_buf before_jump;

void jump_isr(void)
{
	if (left != 0) {
		longjmp(before_jump, 1);
	}
}

int guarded(void)
{
	left = 0;
	if (setjmp(before_jump) != 0) {
		left = 0;
		return -1;
	}
	left = 1;
	count++;
	left = 0;
	return 0;
}

/* The update of `count` is lost if rx_isr comes between its load and its store. */
int get(void)
{
	int c, left;

	if (count == 0) {
		return -1;
	}
	c = ring[tail];
	tail = (tail + 1) & 7;
	left = count;
	__asm__ volatile(""
			 : "+r"(left)); /* GCC 16 would make one instruction of both for an x86 */
	count = left - 1;               /* lost */
	return c;
}

void count_exclusively(void)
{
	uint32_t seen = count;

	while (!__atomic_compare_exchange_n(&count, &seen, seen + 1, 0, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST)) {
	}
}

int get_mended(void)
{
	int c = -1;

	disable_irq();
	if (count != 0) {
		c = ring[tail];
		tail = (tail + 1) & 7;
		count--;
	}
	enable_irq();
	return c;
}

#define COUNT_ALONE()                                                                              \
	do {                                                                                       \
		disable_irq();                                                                     \
		count++;                                                                           \
		enable_irq();                                                                      \
	} while (0)

int count_in_a_line(void)
{
	COUNT_ALONE();
	return count;
}

#if defined(__arm__)
/* As kernels do, which mask interrupts up to a priority. */
static void mask(uint32_t priority)
{
	__asm__ volatile("msr basepri, %0" ::"r"(priority) : "memory");
}

void mask_isr(void)
{
	mask(0x20);
}

/* The mask behind an access. */
uint32_t masked(void)
{
	uint32_t found;

	mask(0x20);
	(void)USART1->SR;
	__asm__ volatile("mrs %0, basepri" : "=r"(found)::"memory");
	mask(0);
	return found;
}
#endif

#if defined(__arm__) || defined(__riscv)
/* Interrupts are off from the look at the ring to the wait, so that no wake-up is lost. */
int receive(void)
{
	disable_irq();
	while (head == tail) {
		__asm__ volatile("wfi" ::: "memory");
		enable_irq();
		disable_irq();
	}
	enable_irq();
	return ring[tail];
}

/* An interrupt between the look at the ring and the wait wakes nobody up. */
int receive_or_sleep(void)
{
	if (head == tail) {
		__asm__ volatile("wfi" ::: "memory");
	}
	return ring[tail];
}
#endif

/* The handler of an interrupt-driven sender: a byte for each interrupt. */
void usart_isr(void)
{
	float scaled = (float)left * 0.5f;

	exception = exception_number();
	if ((USART1->SR & 0x80) != 0 && left != 0) {
		USART1->DR = (uint8_t)*to_send++;
		left--;
	}
	if (left == 0) {
		USART1->CR1 &= ~0x80U;
	}
	calls += scaled >= 0.0f;
}

void send_by_interrupts(const char *text, uint32_t size)
{
	to_send = text;
	left = size;
	disable_irq();
	USART1->CR1 |= 0x80;
	enable_irq();
	while (left != 0) {
		(void)USART1->SR;
	}
	to_send = 0;
}

/* Two accesses while interrupts are off. */
void access_twice(void)
{
	disable_irq();
	USART1->BRR = 1;
	USART1->BRR = 2;
	enable_irq();
}

/* A table of jumps, and an update that is lost behind it. */
int step(int state)
{
	switch (state) {
	case 0:
		head = 3;
		break;
	case 1:
		head = tail + 7;
		break;
	case 2:
		count = count - 1;
		break;
	case 3:
		head = tail ^ 5;
		break;
	case 4:
		tail = 1 + head * 3;
		break;
	case 5:
		calls = 9 - tail;
		break;
	case 6:
		count = count + 2;
		break;
	default:
		return -1;
	}
	return head;
}

#ifdef __riscv
__attribute__((interrupt("machine"))) void entered_isr(void)
{
	calls++;
}
#endif
