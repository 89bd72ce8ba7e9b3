/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Checks of tensors. Their error texts name the expected and the actual property.
 */
#include <string.h>

#include <minrpc/text.h>

#include "operators.h"

#define TEXT 48

#if MINRPC_ERROR_TEXTS
static const char *dtype_text(char text[TEXT], DLDataType dtype)
{
	static const char *const kinds[] = {"int", "uint", "float", "handle", "bfloat"};

	if (dtype.code >= sizeof(kinds) / sizeof(kinds[0])) {
		minrpc_text(text, TEXT, "dtype code %u", (unsigned int)dtype.code);
	} else if (dtype.lanes == 1U) {
		minrpc_text(text, TEXT, "%s%u", kinds[dtype.code], (unsigned int)dtype.bits);
	} else {
		minrpc_text(text, TEXT, "%s%ux%u", kinds[dtype.code], (unsigned int)dtype.bits,
			    (unsigned int)dtype.lanes);
	}
	return text;
}

/* Formats a shape as "[2,3]"; cuts it at the buffer's end. */
static const char *shape_text(char text[TEXT], const DLTensor *tensor)
{
	char *at = text;

	minrpc_text(text, TEXT, "[");
	for (int32_t i = 0; i < tensor->ndim; i++) {
		at += strlen(at);
		minrpc_text(at, (uint32_t)(text + TEXT - at), i == 0 ? "%u" : ",%u",
			    (unsigned int)tensor->shape[i]);
	}
	at += strlen(at);
	minrpc_text(at, (uint32_t)(text + TEXT - at), "]");
	return text;
}
#else
#define dtype_text(text, dtype)  ((void)(text), (void)(dtype), "")
#define shape_text(text, tensor) ((void)(text), (void)(tensor), "")
#endif

bool minrpc_fail_dtype(struct minrpc_call *call, int index, const char *names)
{
	char text[TEXT];

	return minrpc_fail(call->server, "%s: argument %d: expected %s, got %s",
			   minrpc_callee_name(call->callee), index, names,
			   dtype_text(text, minrpc_tensor(call, index)->dtype));
}

bool minrpc_expect_same_dtype(struct minrpc_call *call, const DLTensor *expected, int index)
{
	const DLTensor *got = minrpc_tensor(call, index);
	char text[TEXT];

	return memcmp(&expected->dtype, &got->dtype, sizeof(got->dtype)) == 0 ||
	       minrpc_fail_dtype(call, index, dtype_text(text, expected->dtype));
}

static bool same_shape(const DLTensor *a, const DLTensor *b)
{
	if (a->ndim != b->ndim) {
		return false;
	}
	for (int32_t i = 0; i < a->ndim; i++) {
		if (a->shape[i] != b->shape[i]) {
			return false;
		}
	}
	return true;
}

bool minrpc_expect_same_shape(struct minrpc_call *call, const DLTensor *expected, int index)
{
	const DLTensor *got = minrpc_tensor(call, index);
	char wanted[TEXT];
	char came[TEXT];

	return same_shape(expected, got) ||
	       minrpc_fail(call->server, "%s: argument %d: expected shape %s, got %s",
			   minrpc_callee_name(call->callee), index, shape_text(wanted, expected),
			   shape_text(came, got));
}

bool minrpc_is_dtype(const DLTensor *tensor, DLDataTypeCode code, unsigned int bits)
{
	return tensor->dtype.code == code && tensor->dtype.bits == bits &&
	       tensor->dtype.lanes == 1U;
}

size_t minrpc_elements(const DLTensor *tensor)
{
	size_t elements = 1U;

	for (int32_t i = 0; i < tensor->ndim; i++) {
		elements *= (size_t)tensor->shape[i];
	}
	return elements;
}
