/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * By hand, as the registry file was at v0.18: prototypes of six parameters, a count of two bytes.
 */
#include <tvm/runtime/crt/module.h>
#ifdef __cplusplus
extern "C"
#endif
	TVM_DLL int32_t generated_add(TVMValue *args, int *type_code, int num_args,
				      TVMValue *out_value, int *out_type_code,
				      void *resource_handle);
#ifdef __cplusplus
extern "C"
#endif
	TVM_DLL int32_t generated_inc(TVMValue *args, int *type_code, int num_args,
				      TVMValue *out_value, int *out_type_code,
				      void *resource_handle);
#ifdef __cplusplus
extern "C"
#endif
	TVM_DLL int32_t __tvm_main__(TVMValue *args, int *type_code, int num_args,
				     TVMValue *out_value, int *out_type_code,
				     void *resource_handle);
static TVMBackendPackedCFunc _tvm_func_array[] = {
	(TVMBackendPackedCFunc)generated_add,
	(TVMBackendPackedCFunc)generated_inc,
	(TVMBackendPackedCFunc)__tvm_main__,
};
static const TVMFuncRegistry _tvm_func_registry = {
	"\003\000generated_add\000generated_inc\000__tvm_main__\000",
	_tvm_func_array,
};
static const TVMModule _tvm_system_lib = {
	&_tvm_func_registry,
};
const TVMModule *TVMSystemLibEntryPoint(void)
{
	return &_tvm_system_lib;
};
