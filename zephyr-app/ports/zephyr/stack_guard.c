/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A stack that runs out on a Cortex-M. Zephyr's guard is 32 bytes, which a large frame jumps over;
 * the stack is therefore at the beginning of RAM (stack_guard.ld), and no memory below it can be
 * written. The processor then can't store its registers at the stack pointer, and Zephyr's own
 * handler, which reads them from there, would fault again.
 */
#include "stack_guard.h"

#include <cmsis_core.h>
#include <zephyr/devicetree.h>
#include <zephyr/fatal.h>
#include <zephyr/kernel.h>

#define EXC_RETURN_THREAD_STACK BIT(2)

typedef struct __callee_saved callee_registers;

void __real_z_arm_fault(uint32_t msp, uint32_t psp, uint32_t exc_return,
			callee_registers *registers);
void __wrap_z_arm_fault(uint32_t msp, uint32_t psp, uint32_t exc_return,
			callee_registers *registers);

/* The linker puts it in front of Zephyr's handler of all faults. */
void __wrap_z_arm_fault(uint32_t msp, uint32_t psp, uint32_t exc_return,
			callee_registers *registers)
{
	uint32_t above = psp - (uint32_t)k_current_get()->stack_info.start;

	if ((exc_return & EXC_RETURN_THREAD_STACK) != 0U &&
	    above >= k_current_get()->stack_info.size) {
		z_fatal_error(K_ERR_STACK_CHK_FAIL, NULL);
	}
	__real_z_arm_fault(msp, psp, exc_return, registers);
}

#if defined(CONFIG_MINRPC_MPU_GUARD)

#define MPU_CTRL (*(volatile uint32_t *)0xe000ed94U)
#define MPU_RBAR (*(volatile uint32_t *)0xe000ed9cU)
#define MPU_RASR (*(volatile uint32_t *)0xe000eda0U)

#define REGION(number, base) ((base) | BIT(4) | (number))
#define NO_ACCESS            BIT(28)              /* nor is it executed */
#define READ_ONLY            (5U << 24 | BIT(17)) /* normal memory, written through */
#define SIZE(bytes)          ((LOG2(bytes) - 1U) << 1 | BIT(0))
#define ON                   (BIT(2) | BIT(0)) /* other memory stays accessible */

#define RAM_BASE ((uint32_t)DT_REG_ADDR(DT_CHOSEN(zephyr_sram)))

BUILD_ASSERT(RAM_BASE == 0x20000000 && CONFIG_FLASH_BASE_ADDRESS == 0,
	     "CONFIG_MINRPC_MPU_GUARD is for flash at 0 and RAM at 0x20000000");

/* If two regions overlap, the later counts. A frame of more than 512 MiB would reach 0xa0000000.
 */
void minrpc_stack_guard_init(void)
{
	MPU_RBAR = REGION(0U, 0U);
	MPU_RASR = NO_ACCESS | SIZE(RAM_BASE);
	MPU_RBAR = REGION(1U, 0U);
	MPU_RASR = READ_ONLY | SIZE(KB(CONFIG_FLASH_SIZE));
	MPU_RBAR = REGION(2U, 0x80000000U);
	MPU_RASR = NO_ACCESS | SIZE(0x40000000U);
	MPU_CTRL = ON;
	__DSB();
	__ISB();
}

#endif
