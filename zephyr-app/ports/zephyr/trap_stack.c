/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A stack that runs out on a RISC-V. Zephyr's trap entry stores the registers at the stack pointer,
 * and faults again there, for ever: this entry runs before it, and handles a fault on its own stack
 * if the server's stack has no room. The server's stack is at the beginning of RAM
 * (stack_guard.ld).
 */
#include "trap_stack.h"

#include <zephyr/arch/cpu.h>
#include <zephyr/devicetree.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/util.h>

#include "fatal.h"

/* Room that Zephyr's entry needs, also for an interrupt, and room that its handler needs. */
#if defined(CONFIG_64BIT)
#define ENTRY_ROOM 384
#else
#define ENTRY_ROOM 192
#endif
#define HANDLER_ROOM 1536

BUILD_ASSERT(sizeof(struct arch_esf) <= ENTRY_ROOM, "Zephyr's trap entry needs more room");

#define FROM_ECALL 11

static uint8_t fault_stack[2048] __aligned(16) __used;

static FUNC_NORETURN __used void handle_on_own_stack(uintptr_t sp, uintptr_t ra)
{
	struct arch_esf esf = {.mepc = csr_read(mepc), .mstatus = csr_read(mstatus), .ra = ra};
	uintptr_t bottom = k_current_get()->stack_info.start;
	bool inside = sp - bottom - 1U < k_current_get()->stack_info.size;
	bool exception = (long)csr_read(mcause) >= 0;

	minrpc_fatal_at(inside && exception ? K_ERR_CPU_EXCEPTION : K_ERR_STACK_CHK_FAIL, &esf, sp);
}

static void __attribute__((naked, aligned(64))) enter(void)
{
	/* clang-format would indent each line after a macro. */
	/* clang-format off */
	__asm__ volatile("csrw mscratch, t0\n\t"
			 "la t0, minrpc_stack_start + " STRINGIFY(HANDLER_ROOM) "\n\t"
			 "bltu sp, t0, 2f\n"
			 "1:\n\t"
			 "csrr t0, mscratch\n\t"
			 "j _isr_wrapper\n"
			 "2:\n\t"
			 "la t0, minrpc_stack_start + " STRINGIFY(ENTRY_ROOM) "\n\t"
			 "bltu sp, t0, 3f\n\t"
			 "csrr t0, mcause\n\t"
			 "bltz t0, 1b\n\t"
			 "addi t0, t0, -" STRINGIFY(FROM_ECALL) "\n\t"
			 "beqz t0, 1b\n"
			 "3:\n\t"
			 "mv a0, sp\n\t"
			 "mv a1, ra\n\t"
			 "la sp, fault_stack + 2048\n\t"
			 "j handle_on_own_stack");
	/* clang-format on */
}

#if defined(CONFIG_MINRPC_PMP_GUARD)

/* The last region, which has the lowest priority. */
#define SIZE     0x40000000UL
#define RAM_BASE ((unsigned long)DT_REG_ADDR(DT_CHOSEN(zephyr_sram)))
#define BASE     (RAM_BASE - SIZE)
#define NAPOT(b) ((b) >> 2 | (SIZE / 8U - 1U))
#define LOCKED   0x98UL /* a power of two, no access, machine mode, too */

BUILD_ASSERT(RAM_BASE == 0x80000000 && CONFIG_PMP_SLOTS == 16,
	     "CONFIG_MINRPC_PMP_GUARD is for RAM at 0x80000000 and a PMP of 16 regions");

static void refuse_below(void)
{
	csr_write(pmpaddr15, NAPOT(BASE));
#if defined(CONFIG_64BIT)
	csr_set(pmpcfg2, LOCKED << 56);
#else
	csr_set(pmpcfg3, LOCKED << 24);
#endif
}

#else
static void refuse_below(void)
{
}
#endif

void minrpc_trap_stack_init(void)
{
	refuse_below();
	csr_write(mtvec, (uintptr_t)enter);
}
