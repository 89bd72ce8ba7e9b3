/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Arm Cortex-M: the vector table that picolibc's start-up code installs, the units turned on before
 * main, and faults. The program runs on the process stack, interrupts and faults on the main stack:
 * so the handler of a stack overflow has a stack.
 */
#include <stdbool.h>

#include <minrpc/text.h>

#include "machine.h"
#include "port.h"

#define NVIC_ENABLE ((volatile uint32_t *)0xe000e100U)
#define SCB_AIRCR   (*(volatile uint32_t *)0xe000ed0cU)
#define SCB_VTOR    (*(volatile uint32_t *)0xe000ed08U)
#define SCB_SCR     (*(volatile uint32_t *)0xe000ed10U)
#define SCB_CCR     (*(volatile uint32_t *)0xe000ed14U)
#define SCB_SHPR1   (*(volatile uint32_t *)0xe000ed18U)
#define SCB_SHPR2   (*(volatile uint32_t *)0xe000ed1cU)
#define SCB_SHPR3   (*(volatile uint32_t *)0xe000ed20U)
#define SCB_SHCSR   (*(volatile uint32_t *)0xe000ed24U)
#if __ARM_ARCH >= 7
#define SCB_CFSR  (*(volatile uint32_t *)0xe000ed28U)
#define SCB_HFSR  (*(volatile uint32_t *)0xe000ed2cU)
#define SCB_MMFAR (*(volatile uint32_t *)0xe000ed34U)
#define SCB_BFAR  (*(volatile uint32_t *)0xe000ed38U)
#else /* v6-M reports no causes */
#define SCB_CFSR  0U
#define SCB_HFSR  0U
#define SCB_MMFAR 0U
#define SCB_BFAR  0U
#endif
#define SCB_CPACR   (*(volatile uint32_t *)0xe000ed88U)
#define SCB_CTR     (*(volatile uint32_t *)0xe000ed7cU)
#define SCB_CCSIDR  (*(volatile uint32_t *)0xe000ed80U)
#define SCB_CSSELR  (*(volatile uint32_t *)0xe000ed84U)
#define MPU_TYPE    (*(volatile uint32_t *)0xe000ed90U)
#define MPU_CTRL    (*(volatile uint32_t *)0xe000ed94U)
#define MPU_RNR     (*(volatile uint32_t *)0xe000ed98U)
#define MPU_RBAR    (*(volatile uint32_t *)0xe000ed9cU)
#define MPU_RASR    (*(volatile uint32_t *)0xe000eda0U) /* v8-M: RLAR */
#define MPU_MAIR0   (*(volatile uint32_t *)0xe000edc0U)
#define SCB_ICIALLU (*(volatile uint32_t *)0xe000ef50U)
#define SCB_DCISW   (*(volatile uint32_t *)0xe000ef60U)
#define SCB_DCCMVAU (*(volatile uint32_t *)0xe000ef64U)

#define AIRCR_RESET    0x05fa0004U
#define CCR_UNALIGNED  (1U << 3)
#define CCR_DIV_0_TRAP (1U << 4)
#define CCR_DATA_CACHE (1U << 16)
#define CCR_CODE_CACHE (1U << 17)
#define CPACR_FPU      (15U << 20)
#define SHCSR_FAULTS   (7U << 16) /* UsageFault, BusFault, MemManage by their own names */
#define CFSR_MMARVALID (1U << 7)
#define CFSR_BFARVALID (1U << 15)
#define CFSR_NO_FRAME  (1U << 4 | 1U << 12) /* MSTKERR, STKERR: the registers were not stored */
#define CFSR_STKOF     (1U << 20)
#define MPU_CTRL_ON                                                                                \
	5U /* the MPU is on, except in a fault's handler; other memory stays accessible */

#define EXC_RETURN_PROCESS_STACK (1U << 2)
#define EXC_RETURN_NO_FPU_FRAME  (1U << 4)
#define FRAME_BYTES              32U
#define FPU_FRAME_BYTES          104U

/* Symbol of the linker's options: the end of the stack of interrupts and faults. */
extern char minrpc_handler_stack[], minrpc_handler_stack_end[];
void _start(void);
void reset_entry(void);
void fault_entry(void);

static void barrier(void)
{
	__asm__ volatile("dsb\n\tisb" ::: "memory");
}

/* ----------------------------------------------------------------- before main */

#ifdef MACHINE_CACHES
static void enable_caches(void)
{
	uint32_t geometry;
	unsigned int last_way;
	unsigned int way_shift;
	unsigned int line_shift;

	SCB_ICIALLU = 0U;
	barrier();
	SCB_CCR |= CCR_CODE_CACHE;
	/* The cache's content is undefined after a reset, so it is invalidated by set and way. */
	SCB_CSSELR = 0U;
	barrier();
	geometry = SCB_CCSIDR;
	last_way = (geometry >> 3) & 0x3ffU;
	line_shift = (geometry & 7U) + 4U;
	way_shift = last_way == 0U ? 0U : (unsigned int)__builtin_clz(last_way);
	for (uint32_t set = 0U; set <= ((geometry >> 13) & 0x7fffU); set++) {
		for (uint32_t way = 0U; way <= last_way; way++) {
			SCB_DCISW = way << way_shift | set << line_shift;
		}
	}
	barrier();
	SCB_CCR |= CCR_DATA_CACHE;
	barrier();
}
#endif

#if __ARM_ARCH >= 8

#define READ_ONLY    (2U << 1)
#define NEVER_RUN    1U
#define REGION_ON    1U
/* Normal memory, written through, as without an MPU. */
#define NORMAL_CACHE 0xaaU

static void protect(uint32_t base, uint32_t end, uint32_t attributes)
{
	if (base != end) {
		MPU_RBAR = base | READ_ONLY | attributes;
		MPU_RASR = ((end - 1U) & ~31U) | REGION_ON;
		MPU_RNR++;
	}
}

/* Regions don't overlap, and reading can't be forbidden. */
static void set_regions(void)
{
	uint32_t end = MACHINE_FLASH_BASE + MACHINE_FLASH_SIZE;

	MPU_MAIR0 = NORMAL_CACHE;
	MPU_RNR = 0U;
	protect(MACHINE_FLASH_BASE, end, 0U);
#ifdef MACHINE_NOTHING_BASE
	protect(MACHINE_NOTHING_BASE, MACHINE_FLASH_BASE, NEVER_RUN);
	protect(end, MACHINE_NOTHING_BASE + MACHINE_NOTHING_SIZE, NEVER_RUN);
#endif
}

#else

#define NO_ACCESS  (1U << 28)            /* nor is it executed */
#define READ_ONLY  (5U << 24 | 1U << 17) /* normal memory, written through, as without an MPU */
#define REGION_ON  1U
#define REGION_SET (1U << 4)

/*
 * Maps the memory in pieces whose sizes are powers of two. Returns the next free region, which
 * comes before the used regions.
 */
static uint32_t protect(uint32_t region, uint32_t base, uint32_t size, uint32_t attributes)
{
	while (size != 0U) {
		uint32_t bits = 31U - (uint32_t)__builtin_clz(size);

		if (base != 0U && (uint32_t)__builtin_ctz(base) < bits) {
			bits = (uint32_t)__builtin_ctz(base);
		}
		MPU_RBAR = base | REGION_SET | region++;
		MPU_RASR = attributes | (bits - 1U) << 1 | REGION_ON;
		base += 1U << bits;
		size -= 1U << bits;
	}
	return region;
}

/*
 * If two regions overlap, the later counts. The processor reads vectors past the MPU; programs read
 * them through null pointers only.
 */
static void set_regions(void)
{
	uint32_t region = 0U;

#ifdef MACHINE_NOTHING_BASE
	region = protect(region, MACHINE_NOTHING_BASE, MACHINE_NOTHING_SIZE, NO_ACCESS);
#endif
	region = protect(region, MACHINE_FLASH_BASE, MACHINE_FLASH_SIZE, READ_ONLY);
#if MACHINE_FLASH_BASE == 0
	(void)protect(region, 0U, VECTORS_BYTES, NO_ACCESS);
#endif
}

#endif

/* Forbids writes to vectors, code and constants, and to addresses without memory. */
static void enable_mpu(void)
{
	if ((MPU_TYPE >> 8 & 0xffU) != 0U) {
		set_regions();
		MPU_CTRL = MPU_CTRL_ON;
	}
}

/* picolibc's start-up code has turned on the FPU and the vector unit, and cleared the data. */
static void cpu_init(void)
{
	enable_mpu();
#if __ARM_ARCH >= 7
	SCB_SHCSR |= SHCSR_FAULTS;
	SCB_CCR |= CCR_DIV_0_TRAP;
#endif
#ifdef MACHINE_CACHES
	enable_caches();
#endif
	barrier();
}

/* Runs before any constructor, so that a fault in a constructor is reported, too. */
static void (*const early)(void) __attribute__((section(".preinit_array"), used)) = cpu_init;

#ifdef MACHINE_LINK_IRQ
void cpu_enable_link_interrupt(void)
{
	NVIC_ENABLE[MACHINE_LINK_IRQ / 32U] = 1U << MACHINE_LINK_IRQ % 32U;
}
#endif

/* ----------------------------------------------------------------- after calls */

uintptr_t minrpc_vectors;

/* Control registers that no request changes: sleep, traps, priorities, coprocessors. */
static volatile uint32_t *const mode_registers[] = {
	&SCB_SCR,   &SCB_CCR,
#if __ARM_ARCH >= 7
	&SCB_SHPR1,
#endif
	&SCB_SHPR2, &SCB_SHPR3,
#if defined(__ARM_FP)
	&SCB_CPACR,
#endif
};

#define MODES (sizeof(mode_registers) / sizeof(mode_registers[0]))

static uint32_t modes[MODES];
#if defined(__ARM_FP)
static uint32_t float_mode;
#endif

void cpu_note_modes(void)
{
	minrpc_vectors = SCB_VTOR;
	for (uint32_t i = 0U; i < MODES; i++) {
		modes[i] = *mode_registers[i];
	}
#if defined(__ARM_FP)
	__asm__ volatile("vmrs %0, fpscr" : "=r"(float_mode));
#endif
}

static void restore_modes(void)
{
	for (uint32_t i = 0U; i < MODES; i++) {
		*mode_registers[i] = modes[i];
	}
#if __ARM_ARCH >= 7
	SCB_SHCSR |= SHCSR_FAULTS;
#endif
	barrier();
#if defined(__ARM_FP)
	__asm__ volatile("vmsr fpscr, %0" ::"r"(float_mode));
#endif
	MPU_CTRL = 0U;
	for (uint32_t i = 0U; i < (MPU_TYPE >> 8 & 0xffU); i++) {
		MPU_RNR = i;
		MPU_RASR = 0U;
	}
	enable_mpu();
	barrier();
}

void cpu_restore(bool all)
{
	if (SCB_VTOR != minrpc_vectors) {
		SCB_VTOR = minrpc_vectors;
		barrier();
	}
#ifdef MACHINE_LINK_IRQ
	cpu_enable_link_interrupt();
#endif
#if __ARM_ARCH >= 7
	SCB_CCR &= ~CCR_UNALIGNED;
#endif
#if defined(__ARM_FP)
	SCB_CPACR |= CPACR_FPU;
	barrier();
#endif
	if (all) {
		restore_modes();
	}
#if __ARM_ARCH >= 7
	__asm__ volatile("msr basepri, %0\n\tcpsie f" ::"r"(0) : "memory");
#endif
	interrupts_on();
}

void cpu_code_ready(void *address, size_t size)
{
#ifdef MACHINE_CACHES
	uintptr_t line = (uintptr_t)4U << ((SCB_CTR >> 16) & 0xfU);

	for (uintptr_t at = (uintptr_t)address & ~(line - 1U); at < (uintptr_t)address + size;
	     at += line) {
		SCB_DCCMVAU = at;
	}
	barrier();
	SCB_ICIALLU = 0U;
#else
	(void)address;
	(void)size;
#endif
	barrier();
}

void cpu_reset(void)
{
	__asm__ volatile("dsb" ::: "memory");
	SCB_AIRCR = AIRCR_RESET;
	for (;;) {
	}
}

/* ---------------------------------------------------------------------- faults */

/* Registers that the processor pushed when it took the exception. */
struct exception_frame {
	uint32_t r0, r1, r2, r3, r12, lr, pc, xpsr;
};

static const char *fault_name(uint32_t exception)
{
	static const char *const names[] = {"NMI",      "HardFault",  "MemManage",
					    "BusFault", "UsageFault", "SecureFault"};

	return exception >= 2U && exception <= 7U ? names[exception - 2U] : "unexpected exception";
}

/* The address that could not be accessed; 0 if the processor does not know it. */
static uint32_t fault_address(uint32_t status)
{
	if ((status & CFSR_MMARVALID) != 0U) {
		return SCB_MMFAR;
	}
	return (status & CFSR_BFARVALID) != 0U ? SCB_BFAR : 0U;
}

__attribute__((noreturn, used)) void fault_handler(const struct exception_frame *frame,
						   uint32_t exc_return)
{
	char text[192];
	uint32_t exception = SCB_ICSR & 0x1ffU;
	const char *name = fault_name(exception);
	uint32_t status = SCB_CFSR;
	uint32_t control;
	uint32_t address = fault_address(status);
	bool program = (exc_return & EXC_RETURN_PROCESS_STACK) != 0U;
	/* At a limit the processor stores nothing, and leaves the pointer there. */
	bool lost = (status & CFSR_NO_FRAME) != 0U ||
		    (program && (uintptr_t)frame <= (uintptr_t)minrpc_stack);
	uintptr_t sp =
		(uintptr_t)frame +
		((exc_return & EXC_RETURN_NO_FPU_FRAME) != 0U ? FRAME_BYTES : FPU_FRAME_BYTES);
	bool overflow = program && (lost || (status & CFSR_STKOF) != 0U ||
				    stack_ran_out(sp, address == 0U ? sp : address));

	__asm__ volatile("mrs %0, control" : "=r"(control));
	minrpc_text(text, sizeof(text),
		    "fatal: %s%s at pc 0x%x, lr 0x%x, sp 0x%x, cfsr 0x%x, hfsr 0x%x, address 0x%x, "
		    "exception %u, control %u",
		    overflow ? STACK_OVERFLOW : "", name, lost ? 0U : (unsigned int)frame->pc,
		    lost ? 0U : (unsigned int)frame->lr, (unsigned int)sp, (unsigned int)status,
		    (unsigned int)SCB_HFSR, (unsigned int)address, (unsigned int)exception,
		    (unsigned int)control);
	fault_report(text, sp);
}

__attribute__((naked)) void fault_entry(void)
{
	/* Bit 2 of the return code shows the stack with the frame; the other stack is free. */
	__asm__ volatile(".syntax unified\n\t"
			 "mov r1, lr\n\t"
			 "lsls r0, r1, #29\n\t"
			 "bmi 1f\n\t"
			 "mrs r0, msp\n\t"
			 "bl fault_handler\n"
			 "1:\n\t"
			 "mrs r0, psp\n\t"
			 "ldr r2, =minrpc_handler_stack_end\n\t"
			 "mov sp, r2\n\t"
			 "bl fault_handler");
}

/* The program's stack is the process stack, from the first instruction on. */
__attribute__((naked)) void reset_entry(void)
{
	__asm__ volatile(".syntax unified\n\t"
			 "ldr r0, =__stack\n\t"
			 "msr psp, r0\n\t"
#if __ARM_ARCH >= 8
			 "ldr r0, =minrpc_stack\n\t"
			 "msr psplim, r0\n\t"
			 "ldr r0, =minrpc_handler_stack\n\t"
			 "msr msplim, r0\n\t"
#endif
			 "movs r0, #2\n\t"
			 "msr control, r0\n\t"
			 "isb\n\t"
			 "ldr r0, =_start\n\t"
			 "bx r0");
}

#if !defined(__ARM_FEATURE_IDIV)
/* A processor without a divider: the compiler's library comes here instead of trapping. */
int __aeabi_idiv0(int result)
{
	(void)result;
	__builtin_trap();
}
#endif

/* All these processors use the library for 64-bit divisions. */
long long __aeabi_ldiv0(long long result)
{
	(void)result;
	__builtin_trap();
}

/* The table is aligned to its size, as the processor requires. */
const uintptr_t __attribute__((
	section(".data.init.enter"), used,
	aligned(VECTORS_BYTES))) __interrupt_vector[VECTORS_BYTES / sizeof(uintptr_t)] = {
	[0] = (uintptr_t)minrpc_handler_stack_end,
	[1] = (uintptr_t)reset_entry,
	[2 ... 14] = (uintptr_t)fault_entry,
	[15] = (uintptr_t)systick_isr,
#ifdef MACHINE_LINK_IRQ
	[16 ... 15 + MACHINE_LINK_IRQ] = (uintptr_t)fault_entry,
	[16 + MACHINE_LINK_IRQ] = (uintptr_t)link_receive_isr,
#endif
};

#ifdef MACHINE_LINK_IRQ
_Static_assert(16U + MACHINE_LINK_IRQ < VECTORS_BYTES / sizeof(uintptr_t),
	       "the table needs the next power of two");
#endif
