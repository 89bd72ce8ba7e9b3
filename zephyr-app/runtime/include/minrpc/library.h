/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The system library: one or more function registries, searched in order.
 */
#ifndef MINRPC_LIBRARY_H_
#define MINRPC_LIBRARY_H_

#include <stdint.h>

#include <tvm/runtime/crt/func_registry.h>

struct minrpc_library {
	const TVMFuncRegistry *const *registries;
	uint32_t count;
};

/* Functions are numbered through all registries. MINRPC_NO_FUNCTION when there is none of that name. */
#define MINRPC_NO_FUNCTION UINT32_MAX
uint32_t minrpc_library_find(const struct minrpc_library *library, const char *name);

/* NULL when `index` is no function's. */
TVMBackendPackedCFunc minrpc_library_at(const struct minrpc_library *library, uint32_t index);

/* Which of `count` names, one behind another with their NULs, it is; count when it is none. */
uint32_t minrpc_names_find(const char *names, uint32_t count, const char *name);

#endif /* MINRPC_LIBRARY_H_ */
