/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Functions in the form in which TVM's C generator writes them, by hand: void pointers, no checks
 * of arguments, shapes that are compiled in, workspace for large arrays, -1 without a text on
 * failure. It must compile and link without a change.
 */
#define TVM_EXPORTS
#include "tvm/runtime/c_runtime_api.h"
#include "tvm/runtime/c_backend_api.h"
#include <math.h>

static void *subtract_one_packed = NULL;

/* B[i] = 2 * A[i], 300 float32, by way of a workspace. */
#ifdef __cplusplus
extern "C"
#endif
	TVM_DLL int32_t generated_double(void *args, void *arg_type_ids, int32_t num_args,
					 void *out_ret_value, void *out_ret_tcode,
					 void *resource_handle)
{
	void *arg0 = (((TVMValue *)args)[0].v_handle);
	int32_t arg0_code = ((int32_t *)arg_type_ids)[(0)];
	void *arg1 = (((TVMValue *)args)[1].v_handle);
	void *A = (((DLTensor *)arg0)[0].data);
	void *arg0_shape = (((DLTensor *)arg0)[0].shape);
	void *arg0_strides = (((DLTensor *)arg0)[0].strides);
	int32_t dev_id = (((DLTensor *)arg0)[0].device.device_id);
	void *B = (((DLTensor *)arg1)[0].data);
	if (!(arg0_strides == NULL)) {
		return -1;
	}
	void *twice = TVMBackendAllocWorkspace(1, dev_id, (uint64_t)1200, 2, 32);
	if (twice == NULL) {
		return -1;
	}
	for (int32_t i = 0; i < 300; ++i) {
		((float *)twice)[(i)] = (((float *)A)[(i)] * 2.000000e+00f);
	}
	for (int32_t i1 = 0; i1 < 300; ++i1) {
		((float *)B)[(i1)] = ((float *)twice)[(i1)];
	}
	if (TVMBackendFreeWorkspace(1, dev_id, twice) != 0) {
		return -1;
	}
	return 0;
}

/* Fails in the middle, as generated code does: its workspace stays behind. */
#ifdef __cplusplus
extern "C"
#endif
	TVM_DLL int32_t generated_fail(void *args, void *arg_type_ids, int32_t num_args,
				       void *out_ret_value, void *out_ret_tcode,
				       void *resource_handle)
{
	void *outer = TVMBackendAllocWorkspace(1, 0, (uint64_t)2048, 0, 8);
	if (outer == NULL) {
		return -1;
	}
	void *inner = TVMBackendAllocWorkspace(1, 0, (uint64_t)1000000000, 0, 8);
	if (inner == NULL) {
		return -1;
	}
	return 0;
}

/* Returns x - 1 as an int. */
#ifdef __cplusplus
extern "C"
#endif
	TVM_DLL int32_t generated_subtract_one(void *args, int32_t *arg_type_ids, int32_t num_args,
					       void *out_ret_value, int32_t *out_ret_tcode,
					       void *resource_handle)
{
	int32_t x = ((int32_t)(((TVMValue *)args)[0].v_int64));
	(((TVMValue *)out_ret_value)[0].v_int64) = ((int64_t)(x - 1));
	out_ret_tcode[0] = 0;
	return 0;
}

/* Calls another packed function by its name: x - 1 again. */
#ifdef __cplusplus
extern "C"
#endif
	TVM_DLL int32_t generated_indirect(void *args, void *arg_type_ids, int32_t num_args,
					   void *out_ret_value, void *out_ret_tcode,
					   void *resource_handle)
{
	TVMValue stack[1];
	void *stack_value = stack;
	int32_t stack_tcode[2];
	TVMValue ret_val;
	int ret_type_code;
	(((TVMValue *)stack_value)[0].v_int64) = (((TVMValue *)args)[0].v_int64);
	((int32_t *)stack_tcode)[(0)] = 0;
	if (subtract_one_packed == NULL) {
		if (TVMBackendGetFuncFromEnv(NULL, "generated_subtract_one",
					     &subtract_one_packed) != 0) {
			return -1;
		}
	}
	if (TVMFuncCall(subtract_one_packed, (TVMValue *)stack_value, (int *)stack_tcode, 1,
			&ret_val, &ret_type_code) != 0) {
		return -1;
	}
	(((TVMValue *)out_ret_value)[0].v_int64) = ret_val.v_int64;
	((int32_t *)out_ret_tcode)[0] = 0;
	return 0;
}

static const float linked_param_0[300] = {1.000000e+00f, 2.500000e+00f};

#ifdef __cplusplus
extern "C"
#endif
	TVM_DLL int32_t _lookup_linked_param(void *args, int *arg_type_ids, int num_args,
					     void *out_ret_value, int *out_ret_tcode,
					     void *resource_handle)
{
	switch (((int64_t *)args)[0]) {
	default:
		out_ret_tcode[0] = 4;
		return 0;
	case 0:
		((uint64_t *)out_ret_value)[0] = (uint64_t)(uintptr_t)linked_param_0;
		out_ret_tcode[0] = 3;
		return 0;
	}
}
