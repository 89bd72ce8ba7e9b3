/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The built-in functions: their results, and their errors for wrong arguments.
 */
#include <math.h>

#include "check.h"
#include "host.h"

/* An array on the device that holds `data`. */
static struct tensor array(struct host *host, uint8_t code, uint8_t bits, const void *data,
			   int64_t count)
{
	uint32_t size = (uint32_t)count * bits / 8U;
	struct tensor tensor = tensor_1d(host_alloc(host, size), code, bits, count);

	host_write(host, tensor.data, data, size);
	return tensor;
}

static const struct answer *call(struct host *host, const char *name, const struct tensor *tensors,
				 uint32_t count)
{
	struct args args = {0};

	for (uint32_t i = 0U; i < count; i++) {
		arg_tensor(&args, V8, &tensors[i]);
	}
	return host_call(host, host_function(host, name), &args);
}

static void check_binary(const char *name, uint8_t code, uint8_t bits, const void *a, const void *b,
			 int64_t b_count, const void *expected)
{
	static const uint8_t zeros[64];
	struct host *host = host_start();
	struct tensor tensors[] = {array(host, code, bits, a, 4),
				   array(host, code, bits, b, b_count),
				   array(host, code, bits, zeros, 4)};
	uint8_t got[64];

	(void)expect_returned(call(host, name, tensors, 3U), ARG_NULL);
	host_read(host, tensors[2].data, got, 4U * bits / 8U);
	CHECK_MEM(got, expected, 4U * bits / 8U);
	host_stop(host);
}

TEST(add_and_mul_of_both_dtypes)
{
	static const int8_t a[] = {2, -3, 127, -128};
	static const int8_t b[] = {4, 5, 1, -1};
	static const float x[] = {2.5F, -3.0F, 1e38F, 0.0F};
	static const float y[] = {4.5F, 0.5F, 1e38F, -0.0F};

	/* Integers go round. */
	check_binary("add", 0U, 8U, a, b, 4, (const int8_t[]){6, 2, -128, 127});
	check_binary("add", 0U, 8U, a, b, 1, (const int8_t[]){6, 1, -125, -124});
	check_binary("mul", 0U, 8U, a, b, 4, (const int8_t[]){8, -15, 127, -128});
	check_binary("mul", 0U, 8U, a, b, 1, (const int8_t[]){8, -12, -4, 0});
	check_binary("add", 2U, 32U, x, y, 4, (const float[]){7.0F, -2.5F, 2e38F, 0.0F});
	check_binary("add", 2U, 32U, x, y, 1, (const float[]){7.0F, 1.5F, 1e38F, 4.5F});
	check_binary("mul", 2U, 32U, x, y, 4, (const float[]){11.25F, -1.5F, INFINITY, -0.0F});
	check_binary("mul", 2U, 32U, x, y, 1, (const float[]){11.25F, -13.5F, INFINITY, 0.0F});
}

TEST(exp_under_both_names)
{
	static const char *const names[] = {"exp", "myexpf"};
	static const float values[] = {0.0F, 1.0F, -INFINITY, 1000.0F};

	for (int i = 0; i < 2; i++) {
		struct host *host = host_start();
		struct tensor tensors[] = {array(host, 2U, 32U, values, 4),
					   array(host, 2U, 32U, values, 4)};
		float got[4];

		(void)expect_returned(call(host, names[i], tensors, 2U), ARG_NULL);
		host_read(host, tensors[1].data, got, sizeof(got));
		CHECK(got[0] == 1.0F && got[2] == 0.0F && got[3] == INFINITY);
		CHECK(got[1] > 2.71828F && got[1] < 2.71829F);
		host_stop(host);
	}
}

/* The result is in place, and one array is used for all arguments. */
TEST(results_may_replace_arguments)
{
	static const int8_t values[] = {1, 2, 3, 4};
	struct host *host = host_start();
	struct tensor one = array(host, 0U, 8U, values, 4);
	int8_t got[4];

	(void)expect_returned(call(host, "add", (struct tensor[]){one, one, one}, 3U), ARG_NULL);
	host_read(host, one.data, got, sizeof(got));
	CHECK_MEM(got, ((const int8_t[]){2, 4, 6, 8}), 4U);
	host_stop(host);
}

TEST(arrays_without_elements)
{
	struct host *host = host_start();
	struct tensor empty = array(host, 0U, 8U, "", 0);
	struct tensor floats = array(host, 2U, 32U, "", 0);

	(void)expect_returned(call(host, "add", (struct tensor[]){empty, empty, empty}, 3U),
			      ARG_NULL);
	(void)expect_returned(call(host, "exp", (struct tensor[]){floats, floats}, 2U), ARG_NULL);
	host_stop(host);
}

TEST(inc_goes_round_and_spin_returns_nothing)
{
	struct host *host = host_start();
	struct args args = {0};

	arg(&args, ARG_INT, INT64_MAX);
	CHECK_EQ(get_u64(expect_returned(host_call(host, host_function(host, "inc"), &args),
					 ARG_INT)),
		 (uint64_t)INT64_MIN);
	arg(&args, ARG_INT, 1000U);
	(void)expect_returned(host_call(host, host_function(host, "spin"), &args), ARG_NULL);
	arg(&args, ARG_INT, 1ULL << 32);
	expect_exception(host_call(host, host_function(host, "spin"), &args), "4294967295");
	arg(&args, ARG_INT, (uint64_t)-1);
	expect_exception(host_call(host, host_function(host, "spin"), &args), "spin");
	host_stop(host);
}

/* ------------------------------------------------------------------- refusals */

TEST(numbers_and_kinds_of_arguments_are_named)
{
	static const char *const names[] = {"add", "mul", "exp", "myexpf", "inc", "spin"};
	struct host *host = host_start();

	for (size_t i = 0U; i < sizeof(names) / sizeof(names[0]); i++) {
		uint64_t function = host_function(host, names[i]);
		struct args args = {0};

		expect_exception(host_call(host, function, &args), "got 0");
		for (uint32_t j = 0U; j < 9U; j++) {
			arg(&args, ARG_INT, 1U);
		}
		expect_exception(host_call(host, function, &args), "got 9");
		for (uint32_t j = 0U; j < (i < 2U ? 3U : i < 4U ? 2U : 1U); j++) {
			arg_string(&args, "text");
		}
		expect_exception(host_call(host, function, &args), "got string");
	}
	host_stop(host);
}

TEST(dtypes_are_named)
{
	static const struct {
		uint8_t code;
		uint8_t bits;
		uint16_t lanes;
		const char *text;
	} cases[] = {{0U, 16U, 1U, "int16"},    {1U, 8U, 1U, "uint8"},
		     {2U, 64U, 1U, "float64"},  {4U, 16U, 1U, "bfloat16"},
		     {3U, 64U, 1U, "handle64"}, {2U, 32U, 4U, "float32x4"},
		     {9U, 8U, 1U, "9"}};
	static const uint8_t zeros[64];
	struct host *host = host_start();
	struct tensor good = array(host, 2U, 32U, zeros, 4);

	for (size_t i = 0U; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tensor bad = array(host, 0U, 8U, zeros, 64);

		bad.code = cases[i].code;
		bad.bits = cases[i].bits;
		bad.lanes = cases[i].lanes;
		bad.shape[0] = 4;
		expect_exception(call(host, "add", (struct tensor[]){good, bad, good}, 3U),
				 cases[i].text);
		CHECK_CONTAINS(host->answer.text, "float32");
		expect_exception(call(host, "add", (struct tensor[]){bad, bad, bad}, 3U),
				 cases[i].text);
		expect_exception(call(host, "exp", (struct tensor[]){bad, good}, 2U),
				 cases[i].text);
	}
	host_stop(host);
}

TEST(shapes_are_named)
{
	static const uint8_t zeros[64];
	struct host *host = host_start();
	struct tensor four = array(host, 0U, 8U, zeros, 4);
	struct tensor three = array(host, 0U, 8U, zeros, 3);
	struct tensor square = array(host, 0U, 8U, zeros, 4);
	struct tensor scalar = array(host, 0U, 8U, zeros, 1);

	square.ndim = 2U;
	square.shape[0] = 2;
	square.shape[1] = 2;
	scalar.ndim = 0U;
	expect_exception(call(host, "add", (struct tensor[]){four, three, four}, 3U), "[4]");
	CHECK_CONTAINS(host->answer.text, "[3]");
	expect_exception(call(host, "add", (struct tensor[]){four, four, square}, 3U), "[2,2]");
	expect_exception(call(host, "add", (struct tensor[]){four, four, scalar}, 3U), "[]");
	(void)expect_returned(call(host, "add", (struct tensor[]){square, scalar, square}, 3U),
			      ARG_NULL);
	host_stop(host);
}

/* The number of dimensions fills a packet: the text is cut at the buffer's end. */
TEST(shapes_too_long_for_the_text_are_cut)
{
	struct host *host = host_start();
	uint64_t data = host_alloc(host, 64U);
	struct bytes body = {0};

	put_u64(&body, host_function(host, "exp"));
	put_u32(&body, 2U);
	put_u32(&body, ARG_TENSOR);
	put_u32(&body, ARG_TENSOR);
	for (uint32_t ndim = 1U; ndim <= 200U; ndim += 199U) {
		put_u64(&body, data);
		put_u64(&body, 1U);
		put_u32(&body, ndim);
		put_u32(&body, 0x00012002U);
		for (uint32_t i = 0U; i < ndim; i++) {
			put_u64(&body, 1U);
		}
		put_u64(&body, 0U);
	}
	expect_exception(host_request(host, RPC_CALL_FUNC, &body), "1,1,1,1,1");
	CHECK(strlen(host->answer.text) < MINRPC_ERROR_TEXT);
	host_stop(host);
}

CHECK_MAIN(CASE(add_and_mul_of_both_dtypes), CASE(exp_under_both_names),
	   CASE(results_may_replace_arguments), CASE(arrays_without_elements),
	   CASE(inc_goes_round_and_spin_returns_nothing),
	   CASE(numbers_and_kinds_of_arguments_are_named), CASE(dtypes_are_named),
	   CASE(shapes_are_named), CASE(shapes_too_long_for_the_text_are_cut))
