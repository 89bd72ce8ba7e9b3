/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * For the tests of ports: divisions, and a dot product with and without vectors.
 */
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

static const TVMBackendPackedCFunc functions[] = {divide, divide_wide, dot, dot_scalar};
static const TVMFuncRegistry registry = {"\004\000divide\0divide_wide\0dot\0dot_scalar\0", functions};
static const TVMModule module = {&registry};

const TVMModule *TVMSystemLibEntryPoint(void)
{
	return &module;
}
