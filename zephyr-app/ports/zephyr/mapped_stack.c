/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A stack that runs out on a 64-bit Arm. An exception stores the registers at the stack pointer,
 * where no memory is then; Zephyr's safe exception stack takes them instead, if the thread tells
 * its limit, which Zephyr does with an MPU only.
 */
#include "mapped_stack.h"

#include <zephyr/arch/arm64/lib_helpers.h>
#include <zephyr/kernel/mm.h>

#define CLASS_SHIFT 26U
#define DATA_ABORT  0x25U /* in the same exception level */

/* ESR_EL1 at the fault: a later exception, as of the FPU's registers, would replace it. */
static unsigned int syndrome;

/* In a private header of the kernel. */
void arch_flush_local_fpu(void);
void __real_z_arm64_fatal_error(unsigned int reason, struct arch_esf *esf);
void __wrap_z_arm64_fatal_error(unsigned int reason, struct arch_esf *esf);

k_thread_stack_t *minrpc_map_stack(void)
{
	return k_mem_map(MINRPC_MAPPED_STACK_SIZE, K_MEM_PERM_RW);
}

void minrpc_limit_stack(k_tid_t thread)
{
	thread->arch.stack_limit = thread->stack_info.start;
}

uintptr_t minrpc_stack_pointer_before(const struct arch_esf *esf)
{
	uintptr_t lost = (uintptr_t)arch_curr_cpu()->arch.corrupted_sp;

	return (lost != 0U ? lost : (uintptr_t)esf) + sizeof(*esf);
}

unsigned int minrpc_syndrome(void)
{
	return syndrome;
}

static bool ran_out(const struct arch_esf *esf)
{
	uintptr_t start = k_current_get()->stack_info.start;
	bool access = (syndrome >> CLASS_SHIFT & BIT_MASK(6)) == DATA_ABORT;

	/* An interrupt has a stack of its own. */
	return !k_is_in_isr() &&
	       (minrpc_stack_pointer_before(esf) < start ||
		(access && start - (uintptr_t)read_far_el1() - 1U < CONFIG_MMU_PAGE_SIZE));
}

/*
 * The linker puts it in front of Zephyr's handler of all faults, whose output uses registers of the
 * FPU. The trap with which they are switched on is one more exception below the stack's limit: it
 * would begin at the top of the safe stack, too.
 */
void __wrap_z_arm64_fatal_error(unsigned int reason, struct arch_esf *esf)
{
	syndrome = (unsigned int)read_esr_el1();
	if (reason == K_ERR_CPU_EXCEPTION && ran_out(esf)) {
		reason = K_ERR_STACK_CHK_FAIL;
#if defined(CONFIG_FPU_SHARING)
		arch_flush_local_fpu();
		write_cpacr_el1(read_cpacr_el1() | CPACR_EL1_FPEN_NOTRAP);
#endif
	}
	__real_z_arm64_fatal_error(reason, esf);
}
