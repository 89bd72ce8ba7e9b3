/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Functions that generated code calls while it runs. Results: 0, or another number for a failure;
 * NULL for no memory.
 */
#ifndef TVM_RUNTIME_C_BACKEND_API_H_
#define TVM_RUNTIME_C_BACKEND_API_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Memory for the time of one operator, given back in reverse order. */
void *TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t size, int dtype_code,
			       int dtype_bits);
int TVMBackendFreeWorkspace(int device_type, int device_id, void *pointer);

typedef struct {
	void *sync_handle;
	int32_t num_task;
} TVMParallelGroupEnv;

typedef int (*FTVMParallelLambda)(int task_id, TVMParallelGroupEnv *environment, void *data);

/* Runs the tasks one after another. */
int TVMBackendParallelLaunch(FTVMParallelLambda task, void *data, int task_count);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_C_BACKEND_API_H_ */
