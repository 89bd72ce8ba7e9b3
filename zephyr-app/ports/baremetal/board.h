/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * ARM MPS2 with the AN385 image, a Cortex-M3: the registers that this port uses (CMSDK APB UART, ARMv7-M).
 */
#ifndef BOARD_H_
#define BOARD_H_

#include <stdint.h>

#define CPU_HZ 25000000U

struct uart {
	volatile uint32_t data;
	volatile uint32_t state;
	volatile uint32_t ctrl;
	volatile uint32_t interrupt; /* write 1 to clear */
	volatile uint32_t divider;
};

#define UART_STATE_TX_FULL  (1U << 0)
#define UART_STATE_RX_FULL  (1U << 1)
#define UART_STATE_OVERRUN  (1U << 3) /* write 1 to clear */
#define UART_CTRL_TX        (1U << 0)
#define UART_CTRL_RX        (1U << 1)
#define UART_CTRL_RX_IRQ    (1U << 3)
#define UART_INTERRUPT_RX   (1U << 1)

#define CONSOLE_UART ((struct uart *)0x40004000U) /* UART0: text */
#define LINK_UART    ((struct uart *)0x40005000U) /* UART1: RPC */
#define LINK_RX_IRQ  2U

#define NVIC_ENABLE    (*(volatile uint32_t *)0xe000e100U)
#define SCB_ICSR       (*(volatile uint32_t *)0xe000ed04U)
#define SCB_AIRCR      (*(volatile uint32_t *)0xe000ed0cU)
#define SCB_SHCSR      (*(volatile uint32_t *)0xe000ed24U)
#define SCB_CFSR       (*(volatile uint32_t *)0xe000ed28U)
#define SCB_HFSR       (*(volatile uint32_t *)0xe000ed2cU)
#define SCB_BFAR       (*(volatile uint32_t *)0xe000ed38U)
#define SYSTICK_CTRL   (*(volatile uint32_t *)0xe000e010U)
#define SYSTICK_RELOAD (*(volatile uint32_t *)0xe000e014U)
#define SYSTICK_VALUE  (*(volatile uint32_t *)0xe000e018U)

#define ICSR_SYSTICK_PENDING  (1U << 26)
#define AIRCR_RESET           0x05fa0004U
#define SYSTICK_CTRL_RUN      0x7U /* processor clock, interrupt, enabled */
#define SYSTICK_PERIOD        (1U << 24)

static inline void interrupts_off(void)
{
	__asm__ volatile("cpsid i" ::: "memory");
}

static inline void interrupts_on(void)
{
	__asm__ volatile("cpsie i" ::: "memory");
}

static inline void wait_for_interrupt(void)
{
	__asm__ volatile("dsb\n\twfi" ::: "memory");
}

/* Does not return. */
__attribute__((noreturn)) void board_reset(void);

/* uart.c */
void uart_init(void);
void console_write(const char *text);
void link_write(const uint8_t *data, uint32_t size);
/* Received bytes in one piece: waits until there are some, returns how many. link_consume frees them. */
uint32_t link_wait(const uint8_t **data);
void link_consume(uint32_t size);
uint32_t link_overruns(void);
void link_receive_isr(void);

/* systick.c */
void systick_init(void);
uint64_t systick_cycles(void);
void systick_isr(void);

/* stack.c */
void stack_paint(void);
void stack_use(uint32_t *size, uint32_t *peak);

/* main.c */
__attribute__((noreturn)) void fault_report(const char *text);

#endif /* BOARD_H_ */
