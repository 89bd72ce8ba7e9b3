/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Registers as a vendor's header has them.
 */
#ifndef PERIPHERALS_H_
#define PERIPHERALS_H_

#include <stdint.h>

#define __IO volatile

#if defined(__arm__) || defined(__riscv)
#define __WFI() __asm volatile("wfi")
#else
#define __WFI() __asm volatile("")
#endif

typedef struct {
	__IO uint32_t SR;  /* status */
	__IO uint32_t DR;  /* data */
	__IO uint32_t BRR; /* divider of the baud rate */
	__IO uint32_t CR1; /* control */
} USART_TypeDef;

#define USART_SR_RXNE    (1U << 5)
#define USART_SR_TXE     (1U << 7)
#define USART_CR1_RE     (1U << 2)
#define USART_CR1_TE     (1U << 3)
#define USART_CR1_RXNEIE (1U << 5)
#define USART_CR1_TXEIE  (1U << 7)
#define USART_CR1_UE     (1U << 13)

typedef struct {
	__IO uint32_t CR1;
	__IO uint32_t CR2;
	__IO uint32_t OAR1;
	__IO uint32_t OAR2;
	__IO uint32_t DR;
	__IO uint32_t SR1;
	__IO uint32_t SR2;
} I2C_TypeDef;

#define I2C_CR1_START (1U << 8)
#define I2C_CR1_STOP  (1U << 9)
#define I2C_SR1_SB    (1U << 0)
#define I2C_SR1_ADDR  (1U << 1)
#define I2C_SR1_RXNE  (1U << 6)
#define I2C_SR1_AF    (1U << 10) /* a written 0 clears it */

typedef struct {
	__IO uint32_t CR;
	__IO uint32_t ISR;
	__IO uint32_t ICR;   /* a written 1 clears the flag in ISR */
	__IO uintptr_t DESC; /* address of the descriptor in memory */
} DMA_TypeDef;

/* Lies in memory; the DMA reads it, and counts the bytes that are done. */
typedef struct {
	const uint8_t *source;
	uint8_t *destination;
	uint32_t size;
	uint32_t done;
} DMA_Descriptor;

#define DMA_CR_EN   (1U << 0)
#define DMA_CR_TCIE (1U << 1)
#define DMA_CR_TEIE (1U << 2)
#define DMA_ISR_TC  (1U << 1)
#define DMA_ISR_TE  (1U << 2)

#define DMA1   ((DMA_TypeDef *)0x40026000U)
#define USART1 ((USART_TypeDef *)0x40013800U)
#define I2C1   ((I2C_TypeDef *)0x40005400U)

#endif /* PERIPHERALS_H_ */
