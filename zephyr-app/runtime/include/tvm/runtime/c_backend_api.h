/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The functions that generated code calls: workspace, packed functions, parallel launch.
 */
#ifndef TVM_RUNTIME_C_BACKEND_API_H_
#define TVM_RUNTIME_C_BACKEND_API_H_

#include <tvm/runtime/c_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int (*TVMBackendPackedCFunc)(TVMValue *args, int *type_codes, int num_args,
				     TVMValue *out_ret_value, int *out_ret_tcode,
				     void *resource_handle);

/* Allocates memory for the running call. It is freed at the latest when the function returns. */
TVM_DLL void *TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes,
				       int dtype_code_hint, int dtype_bits_hint);
/* Returns 0, or -1 when `ptr` is not live workspace. */
TVM_DLL int TVMBackendFreeWorkspace(int device_type, int device_id, void *ptr);

TVM_DLL int TVMBackendGetFuncFromEnv(void *mod_node, const char *func_name, TVMFunctionHandle *out);
TVM_DLL int TVMBackendRegisterSystemLibSymbol(const char *name, void *ptr);

typedef struct {
	void *sync_handle;
	int32_t num_task;
} TVMParallelGroupEnv;

typedef int (*FTVMParallelLambda)(int task_id, TVMParallelGroupEnv *penv, void *cdata);

/* Runs the tasks one after another, on one core. */
TVM_DLL int TVMBackendParallelLaunch(FTVMParallelLambda flambda, void *cdata, int num_task);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_C_BACKEND_API_H_ */
