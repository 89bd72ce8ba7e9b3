/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Types of the arguments of code generated before v0.21.
 */
#ifndef TVM_RUNTIME_C_RUNTIME_API_H_
#define TVM_RUNTIME_C_RUNTIME_API_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../ffi/c_api.h"

#ifndef TVM_DLL
#define TVM_DLL
#endif

typedef enum {
	kTVMArgInt = 0,
	kTVMArgFloat = 2,
	kTVMOpaqueHandle = 3,
	kTVMNullptr = 4,
	kTVMDLTensorHandle = 7,
	kTVMStr = 11,
	kTVMNDArrayHandle = 13,
} TVMArgTypeCode;

typedef union {
	int64_t v_int64;
	double v_float64;
	void *v_handle;
	const char *v_str;
} TVMValue;

/* The caller has a number, and no place for a text. */
#define TVMAPISetLastError(message) ((void)(message))

#endif /* TVM_RUNTIME_C_RUNTIME_API_H_ */
