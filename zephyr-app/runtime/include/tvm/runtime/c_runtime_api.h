/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * TVM's packed-function C ABI: the part that TVM's C generator and this runtime use.
 */
#ifndef TVM_RUNTIME_C_RUNTIME_API_H_
#define TVM_RUNTIME_C_RUNTIME_API_H_

#include <dlpack/dlpack.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef TVM_DLL
#define TVM_DLL __attribute__((visibility("default")))
#endif

#ifndef TVM_WEAK
#define TVM_WEAK __attribute__((weak))
#endif

typedef DLDataType TVMDataType;
typedef DLDevice TVMContext; /* the name until v0.7 */
typedef DLTensor TVMArray;
typedef TVMArray *TVMArrayHandle;

/* Type codes of packed values, which are also the numbers on the wire. */
typedef enum {
	kTVMArgInt = 0,
	kTVMArgUInt = 1,
	kTVMArgFloat = 2,
	kTVMOpaqueHandle = 3,
	kTVMNullptr = 4,
	kTVMDataType = 5,
	kDLDevice = 6,
	kTVMContext = 6,
	kTVMDLTensorHandle = 7,
	kTVMObjectHandle = 8,
	kTVMModuleHandle = 9,
	kTVMPackedFuncHandle = 10,
	kTVMStr = 11,
	kTVMBytes = 12,
	kTVMNDArrayHandle = 13,
	kTVMObjectRValueRefArg = 14,
	kTVMArgBool = 15,
} TVMArgTypeCode;

typedef union {
	int64_t v_int64;
	double v_float64;
	void *v_handle;
	const char *v_str;
	TVMDataType v_type;
	DLDevice v_device;
	DLDevice v_ctx;
} TVMValue;

typedef struct {
	const char *data;
	size_t size;
} TVMByteArray;

typedef void *TVMModuleHandle;
typedef void *TVMFunctionHandle;
typedef void *TVMRetValueHandle;

/* Sets the text that the client gets when the running function fails. The text is copied. */
TVM_DLL void TVMAPISetLastError(const char *message);
TVM_DLL const char *TVMGetLastError(void);

/* Looks a packed function of the system library up by its name. */
TVM_DLL int TVMFuncGetGlobal(const char *name, TVMFunctionHandle *out);
TVM_DLL int TVMFuncCall(TVMFunctionHandle function, TVMValue *args, int *type_codes, int num_args,
			TVMValue *ret_value, int *ret_type_code);
TVM_DLL int TVMFuncFree(TVMFunctionHandle function);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_C_RUNTIME_API_H_ */
