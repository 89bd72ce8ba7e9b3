/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * By hand, in the form that TVM's C generator wrote at v0.18: declarations in front, constants in a
 * section of their own, a direct call of another packed function, an entry function.
 */
#define TVM_EXPORTS
#include "tvm/runtime/c_runtime_api.h"
#include "tvm/runtime/c_backend_api.h"
#include <math.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif
static const int8_t __attribute__((section(".rodata.tvm"), aligned(16))) bias[2] = {+0x00, +0x00};
#ifdef __cplusplus
}
#endif
#ifdef __cplusplus
extern "C"
#endif
	TVM_DLL int32_t generated_add(void *args, int32_t *arg_type_ids, int32_t num_args,
				      void *out_ret_value, int32_t *out_ret_tcode,
				      void *resource_handle);
#ifdef __cplusplus
extern "C"
#endif
	TVM_DLL int32_t generated_inc(void *args, int32_t *arg_type_ids, int32_t num_args,
				      void *out_ret_value, int32_t *out_ret_tcode,
				      void *resource_handle);

#ifdef __cplusplus
extern "C"
#endif
	TVM_DLL int32_t generated_add(void *args, int32_t *arg_type_ids, int32_t num_args,
				      void *out_ret_value, int32_t *out_ret_tcode,
				      void *resource_handle)
{
	int32_t A_code = arg_type_ids[0];
	void *A = (((TVMValue *)args)[0].v_handle);
	void *B = (((TVMValue *)args)[1].v_handle);
	void *C = (((TVMValue *)args)[2].v_handle);
	void *A_1 = (((DLTensor *)A)[0].data);
	void *A_shape = (((DLTensor *)A)[0].shape);
	int32_t dev_id = (((DLTensor *)A)[0].device.device_id);
	void *B_1 = (((DLTensor *)B)[0].data);
	void *C_1 = (((DLTensor *)C)[0].data);
	void *T = TVMBackendAllocWorkspace(1, dev_id, (uint64_t)2048, 0, 8);

	if (T == NULL) {
		return -1;
	}
	for (int32_t i = 0; i < 2; ++i) {
		((int8_t *)T)[i] = (int8_t)(((int8_t *)A_1)[i] + ((int8_t *)B_1)[0]);
	}
	for (int32_t i = 0; i < 2; ++i) {
		((int8_t *)C_1)[i] = (int8_t)(((int8_t *)T)[i] + bias[i]);
	}
	if (TVMBackendFreeWorkspace(1, dev_id, T) != 0) {
		return -1;
	}
	return 0;
}

#ifdef __cplusplus
extern "C"
#endif
	TVM_DLL int32_t generated_inc(void *args, int32_t *arg_type_ids, int32_t num_args,
				      void *out_ret_value, int32_t *out_ret_tcode,
				      void *resource_handle)
{
	(((TVMValue *)out_ret_value)[0].v_int64) = ((((TVMValue *)args)[0].v_int64) + (int64_t)1);
	out_ret_tcode[0] = 0;
	return 0;
}

#ifdef __cplusplus
extern "C"
#endif
	TVM_DLL int32_t __tvm_main__(void *args, int *arg_type_ids, int num_args,
				     void *out_ret_value, int *out_ret_tcode, void *resource_handle)
{
	return generated_inc(args, arg_type_ids, num_args, out_ret_value, out_ret_tcode,
			     resource_handle);
}
