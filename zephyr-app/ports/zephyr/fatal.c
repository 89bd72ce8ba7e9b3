/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A fatal error: reported on the console and to the client; then the device restarts.
 */
#include <stddef.h>
#include <string.h>

#include <zephyr/fatal.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>
#if defined(CONFIG_ARM64)
#include <zephyr/arch/arm64/lib_helpers.h>
#endif

#include <minrpc/text.h>
#include <minrpc/zephyr.h>

#include "server.h"
#include "fatal.h"
#include "link.h"
#include "mapped_stack.h"
#include "restart.h"
#include "restore.h"

#define TEXT_SIZE 200U

static const char *reason_name(unsigned int reason)
{
	static const char *const names[] = {
		[K_ERR_CPU_EXCEPTION] = "CPU exception",
		[K_ERR_SPURIOUS_IRQ] = "spurious interrupt",
		[K_ERR_STACK_CHK_FAIL] = "stack overflow",
		[K_ERR_KERNEL_OOPS] = "kernel oops",
		[K_ERR_KERNEL_PANIC] = "kernel panic",
	};

	if (reason < ARRAY_SIZE(names)) {
		return names[reason];
	}
#if defined(CONFIG_CPU_CORTEX_M)
	if (reason == K_ERR_ARM_USAGE_DIV_0) {
		return "division by zero";
	}
	if (reason == K_ERR_ARM_USAGE_UNALIGNED_ACCESS) {
		return "unaligned access";
	}
	if (reason == K_ERR_ARM_USAGE_NO_COPROCESSOR) {
		return "no coprocessor";
	}
	if (reason < K_ERR_ARM_BUS_GENERIC) {
		return "memory protection fault";
	}
	return reason < K_ERR_ARM_USAGE_GENERIC ? "bus fault" : "usage fault";
#else
	return "CPU exception";
#endif
}

#if defined(CONFIG_X86_64)
#define X86(esf, name) ((esf)->r##name)
#define X86_CODE(esf)  ((esf)->code)
#elif defined(CONFIG_X86)
#define X86(esf, name) ((esf)->e##name)
#define X86_CODE(esf)  ((esf)->errorCode)
#endif

/* The address of the faulting instruction; 0 if unknown. */
static uintptr_t program_counter(const struct arch_esf *esf)
{
	if (esf == NULL) {
		return 0U;
	}
#if defined(CONFIG_CPU_CORTEX_M)
	return esf->basic.pc;
#elif defined(CONFIG_X86)
	return X86(esf, ip);
#elif defined(CONFIG_RISCV)
	return esf->mepc;
#elif defined(CONFIG_ARM64)
	return esf->elr;
#else
	return 0U;
#endif
}

/* The stack pointer of the faulting code; 0 if unknown. */
static uintptr_t stack_pointer(const struct arch_esf *esf)
{
#if defined(CONFIG_CPU_CORTEX_M)
	ARG_UNUSED(esf);
	return __get_PSP();
#elif defined(CONFIG_X86)
	return esf == NULL ? 0U : X86(esf, sp);
#elif defined(CONFIG_MINRPC_MAPPED_STACK)
	return esf == NULL ? 0U : minrpc_stack_pointer_before(esf);
#else
	return (uintptr_t)esf;
#endif
}

/*
 * The address that could not be accessed; 0 if there is none, or the processor does not report it.
 */
static uintptr_t fault_address(unsigned int reason)
{
#if defined(CONFIG_CPU_CORTEX_M) && defined(SCB_CFSR_MMARVALID_Msk)
	if (reason == K_ERR_ARM_MEM_DATA_ACCESS) {
		return SCB->MMFAR;
	}
	/* A fault while the processor read its vector hides the reason, but not the address. */
	if (reason == K_ERR_ARM_BUS_PRECISE_DATA_BUS ||
	    (reason == K_ERR_CPU_EXCEPTION && (SCB->CFSR & SCB_CFSR_BFARVALID_Msk) != 0U)) {
		return SCB->BFAR;
	}
	return 0U;
#elif defined(CONFIG_X86)
	uintptr_t address;

	ARG_UNUSED(reason);
	__asm__ volatile("mov %%cr2, %0" : "=r"(address));
	return address;
#elif defined(CONFIG_RISCV)
	ARG_UNUSED(reason);
	return csr_read(mtval);
#elif defined(CONFIG_ARM64)
	ARG_UNUSED(reason);
	return (uintptr_t)read_far_el1();
#else
	ARG_UNUSED(reason);
	return 0U;
#endif
}

/* Names of two values: the names of registers, and the names on other processors. */
#if defined(CONFIG_RISCV)
#define LINK  "ra"
#define CAUSE "mcause"
#elif defined(CONFIG_CPU_CORTEX_M)
#define LINK  "lr"
#define CAUSE "control"
#elif defined(CONFIG_MINRPC_MAPPED_STACK)
#define LINK  "lr"
#define CAUSE "esr"
#else
#define LINK  "lr"
#define CAUSE "code"
#endif

/* The return address in a register, which an x86 does not have; 0 if unknown. */
static uintptr_t link_register(const struct arch_esf *esf)
{
#if defined(CONFIG_CPU_CORTEX_M)
	return esf == NULL ? 0U : esf->basic.lr;
#elif defined(CONFIG_RISCV)
	return esf == NULL ? 0U : esf->ra;
#elif defined(CONFIG_ARM64)
	return esf == NULL ? 0U : esf->lr;
#else
	ARG_UNUSED(esf);
	return 0U;
#endif
}

/*
 * Further information of the processor: a RISC-V and a 64-bit Arm give it for all exceptions, an
 * x86 for some. A Cortex-M tells whether the faulting code had left the privileged mode.
 */
static unsigned int error_code(const struct arch_esf *esf)
{
#if defined(CONFIG_X86)
	return esf == NULL ? 0U : (unsigned int)X86_CODE(esf);
#elif defined(CONFIG_RISCV)
	ARG_UNUSED(esf);
	return (unsigned int)(csr_read(mcause) & CONFIG_RISCV_MCAUSE_EXCEPTION_MASK);
#elif defined(CONFIG_CPU_CORTEX_M)
	ARG_UNUSED(esf);
	return __get_CONTROL();
#elif defined(CONFIG_MINRPC_MAPPED_STACK)
	ARG_UNUSED(esf);
	return minrpc_syndrome();
#else
	ARG_UNUSED(esf);
	return 0U;
#endif
}

static bool in_interrupt(const struct arch_esf *esf)
{
#if defined(CONFIG_CPU_CORTEX_M)
	/* The fault is in an exception: the interrupted function's registers are on the stack. */
	return esf != NULL && (esf->basic.xpsr & IPSR_ISR_Msk) != 0U;
#else
	ARG_UNUSED(esf);
	return k_is_in_isr();
#endif
}

static const char *place(const struct arch_esf *esf)
{
	const char *name = in_interrupt(esf) ? "an interrupt" : k_thread_name_get(k_current_get());

	return name != NULL && name[0] != '\0' ? name : "a thread without name";
}

void minrpc_fatal_at(unsigned int reason, const struct arch_esf *esf, uintptr_t sp)
{
	char text[TEXT_SIZE];

	minrpc_halt_in_restart();
	minrpc_port_restore_modes();
	minrpc_text(text, sizeof(text),
		    "fatal: %s (reason %u) at pc 0x%lx, " LINK " 0x%lx, sp 0x%lx, "
		    "address 0x%lx, " CAUSE " %u in %s%s",
		    reason_name(reason), reason, (unsigned long)program_counter(esf),
		    (unsigned long)link_register(esf), (unsigned long)sp,
		    (unsigned long)fault_address(reason), error_code(esf), place(esf),
		    MINRPC_CAN_RESTART ? "; restarting" : "");
	printk("%s\n", text);
	minrpc_link_poll_only();
	minrpc_device_last_words(text, strlen(text));
	minrpc_device_callers(sp);
	minrpc_restart();
}

/*
 * The registers of the faulting code. If the other security state took the exception first, a
 * signature and nine more words lie before them on the stack, which Zephyr takes for them.
 */
static const struct arch_esf *registers_of(const struct arch_esf *esf)
{
#if defined(CONFIG_ARMV8_M_SE)
	const uint32_t *words = (const uint32_t *)__get_PSP();

	if (esf != NULL && (words[0] | 1U) == 0xfefa125bU &&
	    memcmp(words, esf, offsetof(struct arch_esf, basic.xpsr)) == 0) {
		return (const struct arch_esf *)(words + 10);
	}
#endif
	return esf;
}

void minrpc_fatal(unsigned int reason, const struct arch_esf *esf)
{
	minrpc_fatal_at(reason, registers_of(esf), stack_pointer(esf));
}

#ifdef CONFIG_MINRPC_FATAL_HANDLER

void k_sys_fatal_error_handler(unsigned int reason, const struct arch_esf *esf)
{
	minrpc_fatal(reason, esf);
}

#endif
