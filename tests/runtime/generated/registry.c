/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The registry that belongs to operators.c, in the form of TVM up to v0.8: prototypes of five
 * parameters, a count of one byte.
 */
#include <tvm/runtime/crt/module.h>
TVM_DLL int32_t generated_double(TVMValue *args, int *type_code, int num_args, TVMValue *out_value,
				 int *out_type_code);
TVM_DLL int32_t generated_fail(TVMValue *args, int *type_code, int num_args, TVMValue *out_value,
			       int *out_type_code);
TVM_DLL int32_t generated_subtract_one(TVMValue *args, int *type_code, int num_args,
				       TVMValue *out_value, int *out_type_code);
TVM_DLL int32_t generated_indirect(TVMValue *args, int *type_code, int num_args,
				   TVMValue *out_value, int *out_type_code);
TVM_DLL int32_t _lookup_linked_param(TVMValue *args, int *type_code, int num_args,
				     TVMValue *out_value, int *out_type_code);
static TVMBackendPackedCFunc _tvm_func_array[] = {
	(TVMBackendPackedCFunc)generated_double,       (TVMBackendPackedCFunc)generated_fail,
	(TVMBackendPackedCFunc)generated_subtract_one, (TVMBackendPackedCFunc)generated_indirect,
	(TVMBackendPackedCFunc)_lookup_linked_param,
};
static const TVMFuncRegistry _tvm_func_registry = {
	"\005generated_double\000generated_fail\000generated_subtract_one\000generated_"
	"indirect\000_lookup_linked_param\000",
	_tvm_func_array,
};
static const TVMModule _tvm_system_lib = {
	&_tvm_func_registry,
};
const TVMModule *TVMSystemLibEntryPoint(void)
{
	return &_tvm_system_lib;
};
