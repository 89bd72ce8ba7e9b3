/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * RISC-V, 32 and 64 bits, in machine mode, with a PLIC.
 *
 * MACHINE_PLIC: its base; the link's interrupt comes through it. MACHINE_RESET: address of the
 * register that restarts the machine by MACHINE_RESET_VALUE. MACHINE_VECTORS: 1 where it has
 * vectors. MACHINE_PMP: 1 where it has physical memory protection, which keeps the image and
 * MACHINE_NOTHING from being written.
 */
#ifndef CPU_RISCV_H_
#define CPU_RISCV_H_

#include <stdint.h>

#define PLIC_PRIORITY(irq) (*(volatile uint32_t *)(uintptr_t)(MACHINE_PLIC + 4U * (irq)))
/* Registers of the first hart's machine mode. */
#define PLIC_ENABLE(irq)                                                                           \
	(*(volatile uint32_t *)(uintptr_t)(MACHINE_PLIC + 0x2000U + (irq) / 32U * 4U))
#define PLIC_THRESHOLD (*(volatile uint32_t *)(uintptr_t)(MACHINE_PLIC + 0x200000U))
#define PLIC_CLAIM     (*(volatile uint32_t *)(uintptr_t)(MACHINE_PLIC + 0x200004U))

#define MSTATUS_MIE "8"

/* An interrupt saves each register that it changes, also those of the FPU. */
#define CPU_INTERRUPT __attribute__((interrupt("machine"), aligned(4)))

static inline void cpu_interrupt_begin(void)
{
	(void)PLIC_CLAIM;
}

static inline void cpu_interrupt_end(void)
{
	PLIC_CLAIM = MACHINE_LINK_IRQ;
}

static inline void interrupts_off(void)
{
	__asm__ volatile("csrci mstatus, " MSTATUS_MIE ::: "memory");
}

static inline void interrupts_on(void)
{
	__asm__ volatile("csrsi mstatus, " MSTATUS_MIE ::: "memory");
}

/* Called with interrupts off; returns when an interrupt is pending. */
static inline void wait_for_interrupt(void)
{
	__asm__ volatile("fence\n\twfi" ::: "memory");
}

#endif /* CPU_RISCV_H_ */
