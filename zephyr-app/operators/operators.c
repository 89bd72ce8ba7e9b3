/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The built-in functions: add, mul, exp (also as myexpf), inc, spin.
 */
#include "operators.h"

#include <math.h>

#include "testing.h"

/* ------------------------------------------------------------- add and mul */

/* C = A op B, all of one dtype; B has A's shape, or one element for all of A. */
struct binary {
	const DLTensor *a;
	const DLTensor *b;
	const DLTensor *c;
	size_t elements;
	size_t b_step;
};

static int take_binary(const struct operator_call *call, struct binary *binary)
{
	if (operator_expect_count(call, 3) != 0) {
		return -1;
	}
	binary->a = operator_tensor(call, 0);
	binary->b = binary->a == NULL ? NULL : operator_tensor(call, 1);
	binary->c = binary->b == NULL ? NULL : operator_tensor(call, 2);
	if (binary->c == NULL || operator_expect_same_dtype(call, binary->a, 1, binary->b) != 0 ||
	    operator_expect_same_dtype(call, binary->a, 2, binary->c) != 0 ||
	    operator_expect_same_shape(call, binary->a, 2, binary->c) != 0) {
		return -1;
	}
	binary->elements = operator_elements(binary->a);
	binary->b_step = operator_elements(binary->b) == 1U ? 0U : 1U;
	if (binary->b_step == 0U) {
		return 0;
	}
	return operator_expect_same_shape(call, binary->a, 1, binary->b);
}

static void add_int8(const struct binary *binary)
{
	const int8_t *a = binary->a->data;
	const int8_t *b = binary->b->data;
	int8_t *c = binary->c->data;

	for (size_t i = 0U; i < binary->elements; i++) {
		c[i] = (int8_t)(a[i] + *b);
		b += binary->b_step;
	}
}

static void add_float32(const struct binary *binary)
{
	const float *a = binary->a->data;
	const float *b = binary->b->data;
	float *c = binary->c->data;

	for (size_t i = 0U; i < binary->elements; i++) {
		c[i] = a[i] + *b;
		b += binary->b_step;
	}
}

static void mul_int8(const struct binary *binary)
{
	const int8_t *a = binary->a->data;
	const int8_t *b = binary->b->data;
	int8_t *c = binary->c->data;

	for (size_t i = 0U; i < binary->elements; i++) {
		c[i] = (int8_t)(a[i] * *b);
		b += binary->b_step;
	}
}

static void mul_float32(const struct binary *binary)
{
	const float *a = binary->a->data;
	const float *b = binary->b->data;
	float *c = binary->c->data;

	for (size_t i = 0U; i < binary->elements; i++) {
		c[i] = a[i] * *b;
		b += binary->b_step;
	}
}

static int run_binary(const struct operator_call *call, void (*int8)(const struct binary *),
		      void (*float32)(const struct binary *))
{
	struct binary binary;

	if (take_binary(call, &binary) != 0) {
		return -1;
	}
	if (operator_is(binary.a, kDLInt, 8U)) {
		int8(&binary);
	} else if (operator_is(binary.a, kDLFloat, 32U)) {
		float32(&binary);
	} else {
		return operator_fail_dtype(call, 0, binary.a, "int8 or float32");
	}
	return 0;
}

static int add(TVMValue *args, int *type_codes, int count, TVMValue *value, int *value_code,
	       void *resource)
{
	const struct operator_call call = {"add", args, type_codes, count};

	(void)value;
	(void)value_code;
	(void)resource;
	return run_binary(&call, add_int8, add_float32);
}

static int mul(TVMValue *args, int *type_codes, int count, TVMValue *value, int *value_code,
	       void *resource)
{
	const struct operator_call call = {"mul", args, type_codes, count};

	(void)value;
	(void)value_code;
	(void)resource;
	return run_binary(&call, mul_int8, mul_float32);
}

/* --------------------------------------------------------------------- exp */

/* C = e^A, float32, one shape. */
static int run_exp(const struct operator_call *call)
{
	const DLTensor *a;
	const DLTensor *c;
	const float *from;
	float *to;
	size_t elements;

	if (operator_expect_count(call, 2) != 0) {
		return -1;
	}
	a = operator_tensor(call, 0);
	c = a == NULL ? NULL : operator_tensor(call, 1);
	if (c == NULL) {
		return -1;
	}
	if (!operator_is(a, kDLFloat, 32U)) {
		return operator_fail_dtype(call, 0, a, "float32");
	}
	if (operator_expect_same_dtype(call, a, 1, c) != 0 ||
	    operator_expect_same_shape(call, a, 1, c) != 0) {
		return -1;
	}
	from = a->data;
	to = c->data;
	elements = operator_elements(a);
	for (size_t i = 0U; i < elements; i++) {
		to[i] = expf(from[i]);
	}
	return 0;
}

static int exp_function(TVMValue *args, int *type_codes, int count, TVMValue *value,
			int *value_code, void *resource)
{
	const struct operator_call call = {"exp", args, type_codes, count};

	(void)value;
	(void)value_code;
	(void)resource;
	return run_exp(&call);
}

/* --------------------------------------------------------------------- inc */

/* int to int + 1, as a value: the smallest call there is. */
static int inc(TVMValue *args, int *type_codes, int count, TVMValue *value, int *value_code,
	       void *resource)
{
	const struct operator_call call = {"inc", args, type_codes, count};

	(void)resource;
	if (operator_expect_count(&call, 1) != 0) {
		return -1;
	}
	if (type_codes[0] != kTVMArgBool && operator_expect_type(&call, 0, kTVMArgInt) != 0) {
		return -1;
	}
	/* Unsigned: the largest int wraps instead of being undefined. */
	value->v_int64 = (int64_t)((uint64_t)args[0].v_int64 + 1U);
	*value_code = kTVMArgInt;
	return 0;
}

/* -------------------------------------------------------------------- spin */

/* int -> nothing: goes round that often. Work whose length is known and linear, to hold the timer against. */
static int spin(TVMValue *args, int *type_codes, int count, TVMValue *value, int *value_code,
		void *resource)
{
	const struct operator_call call = {"spin", args, type_codes, count};

	(void)value;
	(void)value_code;
	(void)resource;
	if (operator_expect_count(&call, 1) != 0 || operator_expect_type(&call, 0, kTVMArgInt) != 0) {
		return -1;
	}
	if (args[0].v_int64 < 0 || args[0].v_int64 > UINT32_MAX) {
		return operator_fail("spin: expected 0 to 4294967295 rounds");
	}
	for (uint32_t left = (uint32_t)args[0].v_int64; left != 0U; left--) {
		__asm__ volatile("");
	}
	return 0;
}

/* ---------------------------------------------------------------- registry */

static const TVMBackendPackedCFunc functions[] = {
	add, exp_function, inc, mul, exp_function, spin, testing_count, testing_crash, testing_hang,
};

const TVMFuncRegistry operators_registry = {
	.names = "\011\000add\0exp\0inc\0mul\0myexpf\0spin\0testing.count\0testing.crash\0testing.hang\0",
	.funcs = functions,
};
