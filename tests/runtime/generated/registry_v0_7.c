/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * By hand, as the registry file was until v0.8: prototypes of five parameters, a count of one byte,
 * and a semicolon at the end.
 */
#include <tvm/runtime/crt/module.h>
#ifdef __cplusplus
extern "C"
#endif
	TVM_DLL int32_t generated_add(TVMValue *args, int *type_code, int num_args,
				      TVMValue *out_value, int *out_type_code);
#ifdef __cplusplus
extern "C"
#endif
	TVM_DLL int32_t generated_inc(TVMValue *args, int *type_code, int num_args,
				      TVMValue *out_value, int *out_type_code);
#ifdef __cplusplus
extern "C"
#endif
	TVM_DLL int32_t _lookup_linked_param(TVMValue *args, int *type_code, int num_args,
					     TVMValue *out_value, int *out_type_code);
static TVMBackendPackedCFunc _tvm_func_array[] = {
	(TVMBackendPackedCFunc)generated_add,
	(TVMBackendPackedCFunc)generated_inc,
	(TVMBackendPackedCFunc)_lookup_linked_param,
};
static const TVMFuncRegistry _tvm_func_registry = {
	"\003generated_add\000generated_inc\000_lookup_linked_param\000",
	_tvm_func_array,
};
static const TVMModule _tvm_system_lib = {
	&_tvm_func_registry,
};
const TVMModule *TVMSystemLibEntryPoint(void)
{
	return &_tvm_system_lib;
};
