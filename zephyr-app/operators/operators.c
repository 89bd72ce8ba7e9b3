/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The built-in functions: add, mul, exp (also as myexpf), inc, spin.
 */
#include "operators.h"

#include <math.h>

#include "testing.h"

/* ------------------------------------------------------------- add and mul */

/* C = A op B, all of one dtype. B has A's shape, or one element that is used for all of A. */
struct binary {
	const DLTensor *a;
	const DLTensor *b;
	const DLTensor *c;
	size_t elements;
	size_t b_step;
};

static bool take_binary(struct minrpc_call *call, struct binary *binary)
{
	binary->a = minrpc_tensor(call, 0);
	binary->b = minrpc_tensor(call, 1);
	binary->c = minrpc_tensor(call, 2);
	if (!minrpc_expect_same_dtype(call, binary->a, 1) ||
	    !minrpc_expect_same_dtype(call, binary->a, 2) ||
	    !minrpc_expect_same_shape(call, binary->a, 2)) {
		return false;
	}
	binary->elements = minrpc_elements(binary->a);
	binary->b_step = minrpc_elements(binary->b) == 1U ? 0U : 1U;
	return binary->b_step == 0U || minrpc_expect_same_shape(call, binary->a, 1);
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

static bool run_binary(struct minrpc_call *call, void (*int8)(const struct binary *),
		       void (*float32)(const struct binary *))
{
	struct binary binary;

	if (!take_binary(call, &binary)) {
		return false;
	}
	if (minrpc_is_dtype(binary.a, kDLInt, 8U)) {
		int8(&binary);
	} else if (minrpc_is_dtype(binary.a, kDLFloat, 32U)) {
		float32(&binary);
	} else {
		return minrpc_fail_dtype(call, 0, "int8 or float32");
	}
	return true;
}

static bool add(struct minrpc_call *call)
{
	return run_binary(call, add_int8, add_float32);
}

static bool mul(struct minrpc_call *call)
{
	return run_binary(call, mul_int8, mul_float32);
}

/* --------------------------------------------------------------------- exp */

/* Zephyr's smallest C library has no mathematics. */
#if !defined(CONFIG_MINIMAL_LIBC)

/* C = e^A, for float32 tensors of one shape. */
static bool exp_float32(struct minrpc_call *call)
{
	const DLTensor *a = minrpc_tensor(call, 0);
	const float *from = a->data;
	float *to = minrpc_tensor(call, 1)->data;
	size_t elements = minrpc_elements(a);

	if (!minrpc_is_dtype(a, kDLFloat, 32U)) {
		return minrpc_fail_dtype(call, 0, "float32");
	}
	if (!minrpc_expect_same_dtype(call, a, 1) || !minrpc_expect_same_shape(call, a, 1)) {
		return false;
	}
	for (size_t i = 0U; i < elements; i++) {
		to[i] = expf(from[i]);
	}
	return true;
}

#endif

/* --------------------------------------------------------------------- inc */

/* int -> int + 1, by value: the smallest call. */
static bool inc(struct minrpc_call *call)
{
	/* Unsigned, since the largest int must wrap. */
	return minrpc_return_int(call, (int64_t)((uint64_t)call->args.values[0].v_int64 + 1U));
}

/* -------------------------------------------------------------------- spin */

/*
 * int -> nothing: makes this number of loop rounds. Its run time is known and linear, so it can
 * check a timer.
 */
static bool spin(struct minrpc_call *call)
{
	int64_t rounds = call->args.values[0].v_int64;

	if (rounds < 0 || rounds > UINT32_MAX) {
		return minrpc_fail(call->server, "spin: expected 0 to 4294967295 rounds");
	}
	for (uint32_t left = (uint32_t)rounds; left != 0U; left--) {
		__asm__ volatile("");
	}
	return true;
}

/* ------------------------------------------------------------------- table */

static const struct minrpc_function functions[] = {
	{"add", "ttw", add},
#if !defined(CONFIG_MINIMAL_LIBC)
	{"exp", "tw", exp_float32},
#endif
	{"inc", "i", inc},
	{"mul", "ttw", mul},
#if !defined(CONFIG_MINIMAL_LIBC)
	{"myexpf", "tw", exp_float32}, /* the name in TVM's own tests */
#endif
	{"spin", "i", spin},
#if MINRPC_TESTING
	{"testing.count", "", minrpc_testing_count},
	{"testing.crash", "", minrpc_testing_crash},
	{"testing.hang", "", minrpc_testing_hang},
	{"testing.overrun", "wi", minrpc_testing_overrun},
	{"testing.workspace", "i", minrpc_testing_workspace},
#endif
};

const struct minrpc_module minrpc_operators = {
	.functions = functions,
	.count = sizeof(functions) / sizeof(functions[0]),
};
