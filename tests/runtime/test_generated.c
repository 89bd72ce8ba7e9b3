/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Functions as TVM's C generator writes them, linked beside ours: generated/operators.c and
 * generated/registry.c.
 */
#include "check.h"
#include "host.h"
#include "operators.h"

/* The linker's: the memory that a port on this machine declares as read-only. */
extern const char __executable_start[];
extern const char edata[];

static struct host *start(void)
{
	struct host *host = host_start();

	host->config.library = minrpc_system_library();
	host->config.read_only = __executable_start;
	host->config.read_only_size = (uint32_t)(edata - __executable_start);
	return host;
}

static uint64_t array(struct host *host, float first, uint32_t count)
{
	uint64_t data = host_alloc(host, 4U * count);
	float values[300];

	for (uint32_t i = 0U; i < count; i++) {
		values[i] = first + (float)i;
	}
	host_write(host, data, values, 4U * count);
	return data;
}

TEST(a_generated_function_runs_on_tensors)
{
	struct host *host = start();
	uint64_t a = array(host, 1.0F, 300U);
	uint64_t b = array(host, 0.0F, 300U);
	uint32_t used = host->server.arena.used;
	struct tensor from = tensor_1d(a, 2U, 32U, 300);
	struct tensor to = tensor_1d(b, 2U, 32U, 300);
	struct args args = {0};
	float results[300];

	arg_tensor(&args, V8, &from);
	arg_tensor(&args, V8, &to);
	(void)expect_returned(host_call(host, host_function(host, "generated_double"), &args),
			      ARG_NULL);
	host_read(host, b, results, sizeof(results));
	for (int i = 0; i < 300; i++) {
		CHECK(results[i] == 2.0F * (1.0F + (float)i));
	}
	CHECK_EQ(host->server.arena.used, used);
	host_stop(host);
}

/* Generated code does not look at byte_offset. */
TEST(a_byte_offset_is_folded_into_the_address)
{
	struct host *host = start();
	uint64_t a = host_alloc(host, 1280U);
	uint64_t b = array(host, 0.0F, 300U);
	struct tensor whole = tensor_1d(a, 2U, 32U, 320);
	struct tensor from = tensor_1d(a, 2U, 32U, 300);
	struct tensor to = tensor_1d(b, 2U, 32U, 300);
	struct args args = {0};
	float values[320];
	float results[300];

	for (int i = 0; i < 320; i++) {
		values[i] = (float)i;
	}
	host_write(host, whole.data, values, sizeof(values));
	from.offset = 80U;
	arg_tensor(&args, V8, &from);
	arg_tensor(&args, V8, &to);
	(void)expect_returned(host_call(host, host_function(host, "generated_double"), &args),
			      ARG_NULL);
	host_read(host, b, results, sizeof(results));
	CHECK(results[0] == 40.0F && results[299] == 638.0F);
	host_stop(host);
}

TEST(a_generated_function_that_fails_leaves_no_workspace)
{
	struct host *host = start();
	uint64_t fail = host_function(host, "generated_fail");

	for (int i = 0; i < 100; i++) {
		struct args args = {0};

		expect_exception(host_call(host, fail, &args), "memory");
		CHECK_CONTAINS(host->answer.text, "1000000000");
		CHECK_EQ(host->server.arena.used, 0U);
	}
	host_still_serves(host);
	host_stop(host);
}

TEST(generated_functions_return_values_and_call_each_other)
{
	static const char *const names[] = {"generated_subtract_one", "generated_indirect"};
	struct host *host = start();

	for (int i = 0; i < 2; i++) {
		struct args args = {0};

		arg(&args, ARG_INT, 43U);
		CHECK_EQ(get_u64(expect_returned(
				 host_call(host, host_function(host, names[i]), &args), ARG_INT)),
			 42U);
	}
	host_stop(host);
}

TEST(both_libraries_are_there)
{
	struct host *host = start();

	CHECK_EQ(host_function(host, "generated_double"), 0x80008000U);
	CHECK(host_function(host, "add") > 0x80008000U);
	host_still_serves(host);
	host_stop(host);
}

TEST(linked_parameters_are_tensors_of_calls_but_not_of_copies)
{
	struct host *host = start();
	uint64_t lookup = host_function(host, "_lookup_linked_param");
	uint64_t twice = host_function(host, "generated_double");
	struct tensor from = tensor_1d(0U, 2U, 32U, 300);
	struct tensor to = tensor_1d(host_alloc(host, 1200U), 2U, 32U, 300);
	struct args args = {0};
	struct bytes body = {0};
	float results[300];

	arg(&args, ARG_INT, 7U);
	(void)expect_returned(host_call(host, lookup, &args), ARG_NULL);
	arg(&args, ARG_INT, 0U);
	from.data = get_u64(expect_returned(host_call(host, lookup, &args), ARG_HANDLE));
	arg_tensor(&args, V8, &from);
	arg_tensor(&args, V8, &to);
	(void)expect_returned(host_call(host, twice, &args), ARG_NULL);
	host_read(host, to.data, results, sizeof(results));
	CHECK(results[0] == 2.0F && results[1] == 5.0F && results[2] == 0.0F);
	put_copy(&body, V8, &from, 4U);
	put_u32(&body, 0U);
	expect_exception(host_request(host, RPC_COPY_TO, &body), "0x");
	host_stop(host);
}

/* It writes to no parameter, for any tensors of a client: parameters may lie in flash. */
TEST(linked_parameters_are_not_written)
{
	static const char *const names[] = {"exp", "add", "mul"};
	struct host *host = start();
	uint64_t lookup = host_function(host, "_lookup_linked_param");
	uint64_t data = host_alloc(host, 16U);
	struct tensor from = tensor_1d(data, 2U, 32U, 4);
	struct tensor to;
	struct args args = {0};

	arg(&args, ARG_INT, 0U);
	to = tensor_1d(get_u64(expect_returned(host_call(host, lookup, &args), ARG_HANDLE)), 2U,
		       32U, 4);
	for (int i = 0; i < 3; i++) {
		arg_tensor(&args, V8, &from);
		if (i > 0) {
			arg_tensor(&args, V8, &from);
		}
		arg_tensor(&args, V8, &to);
		expect_exception(host_call(host, host_function(host, names[i]), &args), "");
	}
	arg_tensor(&args, V8, &to);
	expect_exception(
		host_call(host, host_global(host, "tvm.contrib.random.random_fill"), &args), "0x");
	host_stop(host);
}

CHECK_MAIN(CASE(a_generated_function_runs_on_tensors),
	   CASE(a_byte_offset_is_folded_into_the_address),
	   CASE(a_generated_function_that_fails_leaves_no_workspace),
	   CASE(generated_functions_return_values_and_call_each_other),
	   CASE(both_libraries_are_there),
	   CASE(linked_parameters_are_tensors_of_calls_but_not_of_copies),
	   CASE(linked_parameters_are_not_written))
