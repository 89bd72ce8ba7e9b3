/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A function with the interrupt of a timer.
 */
#include <dlpack/dlpack.h>
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/crt/module.h>

#define PACKED                                                                                     \
	TVMValue *args, int *codes, int count, TVMValue *value, int *value_code, void *resource
#define UNUSED ((void)codes, (void)count, (void)value, (void)value_code, (void)resource)

#if defined(__ZEPHYR__)
#include <zephyr/kernel.h>

/* Long enough for a timer's interrupt, which comes at a different time in each call. */
static void interrupted(void)
{
	static struct k_timer timer;
	static bool set_up;

	if (!set_up) {
		set_up = true;
		k_timer_init(&timer, NULL, NULL);
		k_timer_start(&timer, K_TICKS(1), K_TICKS(1));
	}
	for (volatile int i = 0; i < 20000; i++) {
	}
}
#elif defined(__ARM_ARCH) && __ARM_ARCH >= 7
/*
 * Two calls set the timer's interrupt pending, the next two do not; otherwise all calls do the
 * same. A measurement calls twice, once to warm up.
 */
static void interrupted(void)
{
	static uint32_t calls;

	calls++;
	*(volatile uint32_t *)0xe000ed04U = (calls & 2U) << 25;
}
#endif

/* True if a timer's interrupt can be set pending on this machine. */
static int interrupt(PACKED)
{
	UNUSED;
	(void)args;
#if defined(__ZEPHYR__) || (defined(__ARM_ARCH) && __ARM_ARCH >= 7)
	interrupted();
	value->v_int64 = 1;
#else
	value->v_int64 = 0;
#endif
	*value_code = kTVMArgInt;
	return 0;
}

static const TVMBackendPackedCFunc functions[] = {interrupt};
static const TVMFuncRegistry registry = {"\001\000interrupt\0", functions};
static const TVMModule module = {&registry};

const TVMModule *TVMSystemLibEntryPoint(void)
{
	return &module;
}
