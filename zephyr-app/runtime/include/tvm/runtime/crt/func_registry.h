/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A table of packed functions in the form of TVM's C generator.
 */
#ifndef TVM_RUNTIME_CRT_FUNC_REGISTRY_H_
#define TVM_RUNTIME_CRT_FUNC_REGISTRY_H_

#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/crt/error_codes.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint16_t tvm_function_index_t;

/*
 * names: the count, then each name with its NUL. The count is one byte in files of TVM up to v0.8,
 * and two bytes, low byte first, from v0.9 on. Both forms are accepted.
 */
typedef struct TVMFuncRegistry {
	const char *names;
	const TVMBackendPackedCFunc *funcs;
} TVMFuncRegistry;

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_FUNC_REGISTRY_H_ */
