/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Argument checks whose messages name what was expected and what came.
 */
#include <string.h>

#include <minrpc/text.h>

#include "operators.h"

#define TEXT 48

int operator_fail(const char *format, ...)
{
	char text[MINRPC_ERROR_TEXT];
	va_list list;

	va_start(list, format);
	minrpc_text_list(text, sizeof(text), format, list);
	va_end(list);
	TVMAPISetLastError(text);
	return -1;
}

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

/* "[2,3]"; a shape too long for the buffer is cut. */
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

int operator_expect_count(const struct operator_call *call, int count)
{
	if (call->count == count) {
		return 0;
	}
	return operator_fail("%s: expected %d arguments, got %d", call->name, count, call->count);
}

int operator_expect_type(const struct operator_call *call, int index, int type_code)
{
	if (call->type_codes[index] == type_code) {
		return 0;
	}
	return operator_fail("%s: argument %d: expected %s, got %s", call->name, index,
			     minrpc_type_name(type_code), minrpc_type_name(call->type_codes[index]));
}

const DLTensor *operator_tensor(const struct operator_call *call, int index)
{
	const DLTensor *tensor = call->args[index].v_handle;

	if (operator_expect_type(call, index, kTVMDLTensorHandle) != 0) {
		return NULL;
	}
	if (operator_is_constant(tensor)) {
		(void)operator_fail("%s: argument %d: expected an allocated array, got a constant of the "
				    "firmware, of unknown size",
				    call->name, index);
		return NULL;
	}
	return tensor;
}

int operator_fail_dtype(const struct operator_call *call, int index, const DLTensor *got,
			const char *names)
{
	char text[TEXT];

	return operator_fail("%s: argument %d: expected %s, got %s", call->name, index, names,
			     dtype_text(text, got->dtype));
}

int operator_expect_same_dtype(const struct operator_call *call, const DLTensor *expected,
			       int index, const DLTensor *got)
{
	char text[TEXT];

	if (expected->dtype.code == got->dtype.code && expected->dtype.bits == got->dtype.bits &&
	    expected->dtype.lanes == got->dtype.lanes) {
		return 0;
	}
	return operator_fail_dtype(call, index, got, dtype_text(text, expected->dtype));
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

int operator_expect_same_shape(const struct operator_call *call, const DLTensor *expected,
			       int index, const DLTensor *got)
{
	char wanted[TEXT];
	char came[TEXT];

	if (same_shape(expected, got)) {
		return 0;
	}
	return operator_fail("%s: argument %d: expected shape %s, got %s", call->name, index,
			     shape_text(wanted, expected), shape_text(came, got));
}

bool operator_is(const DLTensor *tensor, DLDataTypeCode code, unsigned int bits)
{
	return tensor->dtype.code == code && tensor->dtype.bits == bits && tensor->dtype.lanes == 1U;
}

size_t operator_elements(const DLTensor *tensor)
{
	size_t elements = 1U;

	for (int32_t i = 0; i < tensor->ndim; i++) {
		elements *= (size_t)tensor->shape[i];
	}
	return elements;
}
