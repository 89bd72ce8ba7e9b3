/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The system library of this project's firmware, TVM's C ABI for generated code, and what functions
 * on tensors check of them.
 */
#ifndef MINRPC_OPERATORS_H_
#define MINRPC_OPERATORS_H_

#include <minrpc/server.h>
#include <tvm/runtime/crt/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/* add, exp, inc, mul, myexpf, spin; testing.count, .crash and .hang with MINRPC_TESTING. */
extern const struct minrpc_module minrpc_operators;

/*
 * The functions of generated code that is linked in (they come first, so they win), then the
 * operators. The array behind it is static.
 */
struct minrpc_library minrpc_system_library(void);

/* Lets TVM's C ABI, which has no context argument, reach the server. One server an image. */
void minrpc_tvm_bind(struct minrpc_server *server);

/* ------------------------------------------------ for functions that take tensors */

static inline const DLTensor *minrpc_tensor(const struct minrpc_call *call, int index)
{
	return (const DLTensor *)call->args.values[index].v_handle;
}

/* Each fails with a text that says what was expected of the argument `index`, and what came. */
bool minrpc_expect_same_dtype(struct minrpc_call *call, const DLTensor *expected, int index);
bool minrpc_expect_same_shape(struct minrpc_call *call, const DLTensor *expected, int index);
/* "expected <names>": for a dtype that the function does not have. */
bool minrpc_fail_dtype(struct minrpc_call *call, int index, const char *names);

bool minrpc_is_dtype(const DLTensor *tensor, DLDataTypeCode code, unsigned int bits);
size_t minrpc_elements(const DLTensor *tensor);

#ifdef __cplusplus
}
#endif

#endif /* MINRPC_OPERATORS_H_ */
