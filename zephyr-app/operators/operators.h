/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The system library of this project's firmware, TVM's C ABI for generated code, and checks for
 * functions on tensors.
 */
#ifndef MINRPC_OPERATORS_H_
#define MINRPC_OPERATORS_H_

#include <minrpc/ask.h>
#include <minrpc/server.h>
#include <tvm/runtime/crt/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/* add, exp, inc, mul, myexpf, spin; with MINRPC_TESTING also testing.count and others. */
extern const struct minrpc_module minrpc_operators;

/*
 * Returns the functions of linked generated code, then the operators, then linked libraries. The
 * first of several functions with one name is used. The array of modules is static.
 */
struct minrpc_library minrpc_system_library(void);

/* Sets the server for TVM's C ABI, which has no context argument. An image has one server. */
void minrpc_tvm_bind(struct minrpc_server *server);

#if MINRPC_ASK
/* minrpc_ask for loaded code, which has no server. */
const void *minrpc_ask_client(const void *question, uint32_t size, uint32_t *answer_size);
/* minrpc_escapable with this image's server, and the jump to its end. */
bool minrpc_escapable_client(void (*run)(void *context), void *context);
__attribute__((noreturn)) void minrpc_escape_client(void);
#endif

/* ------------------------------------------------ for functions that take tensors */

static inline const DLTensor *minrpc_tensor(const struct minrpc_call *call, int index)
{
	return (const DLTensor *)call->args.values[index].v_handle;
}

/* Each fails with a text that names the expected and the actual property of argument `index`. */
bool minrpc_expect_same_dtype(struct minrpc_call *call, const DLTensor *expected, int index);
bool minrpc_expect_same_shape(struct minrpc_call *call, const DLTensor *expected, int index);
/* Fails with "expected <names>", for a dtype that the function does not support. */
bool minrpc_fail_dtype(struct minrpc_call *call, int index, const char *names);

bool minrpc_is_dtype(const DLTensor *tensor, DLDataTypeCode code, unsigned int bits);
size_t minrpc_elements(const DLTensor *tensor);

#ifdef __cplusplus
}
#endif

#endif /* MINRPC_OPERATORS_H_ */
