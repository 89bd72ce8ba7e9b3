/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The system library of this firmware, and what its functions share.
 */
#ifndef OPERATORS_H_
#define OPERATORS_H_

#include <minrpc/server.h>
#include <tvm/runtime/crt/module.h>

/*
 * The functions of generated code that is linked in (they come first, so they win), then the built-in ones.
 * The array behind it is static.
 */
struct minrpc_library operators_library(void);

/* Lets TVM's C ABI, which has no context argument, reach the server. One server an image. */
void operators_bind(struct minrpc_server *server);

/* -------------------------------------------------- for the operators themselves */

/* What a packed function gets. */
struct operator_call {
	const char *name;
	const TVMValue *args;
	const int *type_codes;
	int count;
};

/* Sets the error text and returns -1, for `return operator_fail(...)`. */
__attribute__((format(printf, 1, 2))) int operator_fail(const char *format, ...);

/* Each returns 0, or -1 with a text that says what was expected and what came. */
int operator_expect_count(const struct operator_call *call, int count);
int operator_expect_type(const struct operator_call *call, int index, int type_code);

/* Whether its data is memory of the image, as minrpc_server_is_constant says. */
bool operator_is_constant(const DLTensor *tensor);

/* The tensor at `index`, or NULL with a text. */
const DLTensor *operator_tensor(const struct operator_call *call, int index);
int operator_expect_same_dtype(const struct operator_call *call, const DLTensor *expected,
			       int index, const DLTensor *got);
int operator_expect_same_shape(const struct operator_call *call, const DLTensor *expected,
			       int index, const DLTensor *got);
/* Fails with "expected <names>": for a dtype that the function does not have. */
int operator_fail_dtype(const struct operator_call *call, int index, const DLTensor *got,
			const char *names);

bool operator_is(const DLTensor *tensor, DLDataTypeCode code, unsigned int bits);
size_t operator_elements(const DLTensor *tensor);

extern const TVMFuncRegistry operators_registry;

#endif /* OPERATORS_H_ */
