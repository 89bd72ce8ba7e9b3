/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * For the tests of ports: divisions, loads that are not aligned, registers over an interrupt, and a
 * dot product with and without vectors.
 */
#include <string.h>

#include <dlpack/dlpack.h>
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/crt/module.h>

#if defined(__ARM_FEATURE_MVE)
#include <arm_mve.h>
#endif

#define PACKED(name)                                                                               \
	static int name(TVMValue *args, int *type_codes, int count, TVMValue *result,              \
			int *result_code, void *resource)
#define UNUSED (void)type_codes, (void)count, (void)resource

PACKED(divide)
{
	UNUSED;
	result->v_int64 = (int)args[0].v_int64 / (int)args[1].v_int64;
	*result_code = kTVMArgInt;
	return 0;
}

PACKED(divide_wide)
{
	UNUSED;
	result->v_int64 = args[0].v_int64 / args[1].v_int64;
	*result_code = kTVMArgInt;
	return 0;
}

/* The 32-bit number at an address of any alignment, by the instruction that loads a word. */
PACKED(load_word)
{
	uint32_t word;

	UNUSED;
#if defined(__arm__)
	__asm__ volatile("ldr %0, [%1]" : "=r"(word) : "r"((uint8_t *)args[0].v_handle));
#else
	__asm__ volatile("lw %0, 0(%1)" : "=r"(word) : "r"((uint8_t *)args[0].v_handle));
#endif
	result->v_int64 = word;
	*result_code = kTVMArgInt;
	return 0;
}

#if defined(__ARM_FP)
#define SCB_ICSR (*(volatile uint32_t *)0xe000ed04U)
#define SCB_VTOR (*(volatile uint32_t *)0xe000ed08U)
#define MPU_CTRL (*(volatile uint32_t *)0xe000ed94U)
#define SYSTICK  15U
#define LOWER                                                                                      \
	"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13",    \
		"s14", "s15"
#define UPPER                                                                                      \
	"s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27", "s28", \
		"s29", "s30", "s31"

static volatile uint32_t interrupts;

/* Takes the registers that a function may change, as any interrupt that calculates does. */
static void spoil(void)
{
	static const float others[16] = {-1.0F, -2.0F, -3.0F};

	__asm__ volatile("vldmia %0, {s0-s15}" ::"r"(others) : LOWER, "memory");
	interrupts = interrupts + 1U;
}
#endif

/*
 * The number of the FPU's registers that an interrupt changed; -1 if there was no interrupt.
 */
PACKED(changed_by_interrupt)
{
	int64_t changed = 0;

	(void)args;
	UNUSED;
#if defined(__ARM_FP)
	extern const uintptr_t __interrupt_vector[];
	static uintptr_t vectors[128] __attribute__((aligned(512)));
	static float before[32], after[32];
	uint32_t own = SCB_VTOR, protection = MPU_CTRL;

	for (int i = 0; i < 32; i++) {
		before[i] = (float)(i + 1);
	}
	/* The MPU closes the table to programs: they would read it through null pointers. */
	MPU_CTRL = 0U;
	__asm__ volatile("dsb\n\tisb" ::: "memory");
	memcpy(vectors, __interrupt_vector, 64U * sizeof(vectors[0]));
	MPU_CTRL = protection;
	vectors[SYSTICK] = (uintptr_t)spoil;
	interrupts = 0U;
	SCB_VTOR = (uint32_t)(uintptr_t)vectors;
	__asm__ volatile("dsb\n\t"
			 "vldmia %[before], {s0-s31}\n\t"
			 "str %[pend], [%[icsr]]\n\t"
			 "dsb\n\t"
			 "isb\n\t"
			 "vstmia %[after], {s0-s31}" ::[before] "r"(before),
			 [after] "r"(after), [pend] "r"(1U << 26), [icsr] "r"(&SCB_ICSR)
			 : LOWER, UPPER, "memory");
	SCB_VTOR = own;
	for (int i = 0; i < 32; i++) {
		changed += before[i] != after[i];
	}
	changed = interrupts == 0U ? -1 : changed;
#endif
	result->v_int64 = changed;
	*result_code = kTVMArgInt;
	return 0;
}

static int32_t dot_scalar_of(const int8_t *a, const int8_t *b, int count)
{
	int32_t sum = 0;

	for (int i = 0; i < count; i++) {
		sum += a[i] * b[i];
	}
	return sum;
}

static int32_t dot_of(const int8_t *a, const int8_t *b, int count)
{
	int32_t sum = 0;

#if defined(__ARM_FEATURE_MVE)
	for (; count >= 16; count -= 16, a += 16, b += 16) {
		sum = vmladavaq_s8(sum, vldrbq_s8(a), vldrbq_s8(b));
	}
#endif
#if defined(MACHINE_VECTORS)
	/* 16-bit products of 8-bit elements, added up in 32 bits. */
	__asm__ volatile("vsetivli zero, 1, e32, m1, ta, ma\n\t"
			 "vmv.v.i v0, 0\n"
			 "1:\n\t"
			 "vsetvli t0, %[count], e8, m2, ta, ma\n\t"
			 "vle8.v v8, (%[a])\n\t"
			 "vle8.v v10, (%[b])\n\t"
			 "vwmul.vv v12, v8, v10\n\t"
			 "vsetvli zero, zero, e16, m4, ta, ma\n\t"
			 "vwredsum.vs v0, v12, v0\n\t"
			 "add %[a], %[a], t0\n\t"
			 "add %[b], %[b], t0\n\t"
			 "sub %[count], %[count], t0\n\t"
			 "bnez %[count], 1b\n\t"
			 "vsetivli zero, 1, e32, m1, ta, ma\n\t"
			 "vmv.x.s %[sum], v0"
			 : [sum] "=r"(sum), [a] "+r"(a), [b] "+r"(b), [count] "+r"(count)
			 :
			 : "t0", "memory");
#endif
	return sum + dot_scalar_of(a, b, count);
}

PACKED(dot)
{
	const DLTensor *a = args[0].v_handle;
	const DLTensor *b = args[1].v_handle;

	UNUSED;
	result->v_int64 = dot_of(a->data, b->data, (int)a->shape[0]);
	*result_code = kTVMArgInt;
	return 0;
}

PACKED(dot_scalar)
{
	const DLTensor *a = args[0].v_handle;
	const DLTensor *b = args[1].v_handle;

	UNUSED;
	result->v_int64 = dot_scalar_of(a->data, b->data, (int)a->shape[0]);
	*result_code = kTVMArgInt;
	return 0;
}

static const TVMBackendPackedCFunc functions[] = {divide,     divide_wide, dot,
						  dot_scalar, load_word,   changed_by_interrupt};
static const TVMFuncRegistry registry = {
	"\006\000divide\0divide_wide\0dot\0dot_scalar\0load_word\0changed_by_interrupt\0",
	functions};
static const TVMModule module = {&registry};

const TVMModule *TVMSystemLibEntryPoint(void)
{
	return &module;
}
