/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A module of generated code. The system library finds it by its entry point.
 */
#ifndef TVM_RUNTIME_CRT_MODULE_H_
#define TVM_RUNTIME_CRT_MODULE_H_

#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/crt/func_registry.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TVMModule {
	const TVMFuncRegistry *registry;
} TVMModule;

/*
 * Defined by generated code. Not weak here, since that would make the definitions weak, and the
 * linker would silently drop one of two definitions.
 */
const TVMModule *TVMSystemLibEntryPoint(void);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_MODULE_H_ */
