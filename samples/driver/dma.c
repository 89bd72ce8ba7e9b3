/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A DMA transfer by a descriptor in memory; an interrupt tells its end.
 */
#include "peripherals.h"

#define IS_BUSY -1
#define FAILED  -2

/* The descriptor is in memory before the DMA starts, and is read after its end. */
#ifdef DMA_WITHOUT_BARRIERS
#define BARRIER()
#else
#define BARRIER() __asm volatile("" ::: "memory")
#endif

static DMA_Descriptor descriptor;
static volatile uint32_t busy, failed;

int dma_start(uint8_t *destination, const uint8_t *source, uint32_t size)
{
	if (busy != 0U) {
		return IS_BUSY;
	}
	descriptor = (DMA_Descriptor){source, destination, size, 0};
	busy = 1;
	failed = 0;
	BARRIER();
	DMA1->DESC = (uintptr_t)&descriptor;
	DMA1->CR = DMA_CR_TCIE | DMA_CR_TEIE | DMA_CR_EN;
	return 0;
}

void DMA1_IRQHandler(void)
{
	uint32_t flags = DMA1->ISR & (DMA_ISR_TC | DMA_ISR_TE);

	if (flags != 0U) {
		DMA1->ICR = flags;
		DMA1->CR = 0;
		failed = flags & DMA_ISR_TE;
		busy = 0;
	}
}

/* The number of bytes, or IS_BUSY, FAILED. */
int dma_copy(uint8_t *destination, const uint8_t *source, uint32_t size)
{
	int status = dma_start(destination, source, size);

	if (status != 0) {
		return status;
	}
	while (busy != 0U) {
		__WFI();
	}
	BARRIER();
	return failed != 0U ? FAILED : (int)descriptor.done;
}
