/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A function that sleeps.
 */
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/crt/module.h>

#if defined(__ZEPHYR__)
#include <zephyr/kernel.h>
#endif

#define PACKED                                                                                     \
	TVMValue *args, int *codes, int count, TVMValue *value, int *value_code, void *resource
#define UNUSED ((void)args, (void)codes, (void)count, (void)value, (void)value_code, (void)resource)

/* A number: sleeps this number of times. */
static int rests(PACKED)
{
	UNUSED;
#if defined(__ZEPHYR__)
	for (int64_t i = 0; i < args[0].v_int64; i++) {
		k_msleep(1);
	}
#endif
	return 0;
}

static const TVMBackendPackedCFunc functions[] = {rests};
static const TVMFuncRegistry registry = {"\001\000rests\0", functions};
static const TVMModule module = {&registry};

const TVMModule *TVMSystemLibEntryPoint(void)
{
	return &module;
}
