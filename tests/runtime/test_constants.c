/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Memory of the image that a function returned as an opaque handle: TVM's linked parameters.
 */
#include "check.h"
#include "functions.h"
#include "host.h"

static const float parameter[] = {1.5F, -2.0F};

/* What _lookup_linked_param of generated code does. */
static uint64_t look_up(struct host *host)
{
	struct args none = {0};
	const struct answer *answer;

	host_functions.value.v_handle = (void *)parameter;
	host_functions.type_code = kTVMOpaqueHandle;
	answer = host_call(host, host_function(host, "ret"), &none);
	return get_u64(expect_returned(answer, ARG_HANDLE));
}

static const struct answer *call_with(struct host *host, const char *name, const struct tensor *tensor)
{
	struct args args = {0};

	arg_tensor(&args, V8, tensor);
	return host_call(host, host_function(host, name), &args);
}

TEST(a_returned_address_can_be_an_argument)
{
	struct host *host = host_start();
	uint64_t address = look_up(host);
	struct tensor tensor = tensor_1d(address, ARG_FLOAT, 32U, 2);

	CHECK_EQ(address, (uintptr_t)parameter);
	(void)expect_returned(call_with(host, "tick", &tensor), ARG_NULL);
	CHECK_EQ(host_functions.calls, 1U);
	host_stop(host);
}

TEST(an_address_that_no_function_returned_can_not)
{
	struct host *host = host_start();
	struct tensor tensor = tensor_1d((uintptr_t)parameter, ARG_FLOAT, 32U, 2);

	expect_exception(call_with(host, "tick", &tensor), "no live tensor");
	(void)look_up(host);
	tensor.data += sizeof(parameter[0]);
	expect_exception(call_with(host, "tick", &tensor), "no live tensor");
	tensor.data -= sizeof(parameter[0]);
	tensor.offset = sizeof(parameter[0]);
	expect_exception(call_with(host, "tick", &tensor), "no live tensor");
	CHECK_EQ(host_functions.calls, 0U);
	host_stop(host);
}

TEST(a_constant_of_impossible_shape_is_refused)
{
	struct host *host = host_start();
	struct tensor tensor = tensor_1d(look_up(host), ARG_FLOAT, 32U, -1);

	expect_exception(call_with(host, "tick", &tensor), "shape");
	CHECK_EQ(host_functions.calls, 0U);
	host_stop(host);
}

/* Its size is not known, so nothing that goes by a tensor's shape may touch it. */
TEST(operators_copies_and_global_functions_refuse_it)
{
	struct host *host = host_start();
	uint64_t address = look_up(host);
	struct tensor tensor = tensor_1d(address, ARG_FLOAT, 32U, 2);
	struct args args = {0};
	struct bytes body = {0};

	arg_tensor(&args, V8, &tensor);
	arg_tensor(&args, V8, &tensor);
	expect_exception(host_call(host, host_function(host, "exp"), &args), "constant");
	arg_tensor(&args, V8, &tensor);
	expect_exception(host_call(host, host_global(host, "tvm.contrib.random.random_fill"), &args),
			 "no live tensor");
	put_copy(&body, V8, &tensor, sizeof(parameter));
	expect_exception(host_request(host, RPC_COPY_FROM, &body), "no live tensor");
	host_still_serves(host);
	host_stop(host);
}

TEST(the_next_session_knows_it_no_more)
{
	struct host *host = host_start();
	uint64_t address = look_up(host);
	struct tensor tensor = tensor_1d(address, ARG_FLOAT, 32U, 2);

	CHECK_EQ(look_up(host), address);
	host_open(host, 0x23U);
	CHECK_EQ(host->server.arena.used, 0U);
	expect_exception(call_with(host, "tick", &tensor), "no live tensor");
	host_stop(host);
}

TEST(a_null_handle_is_not_kept)
{
	struct host *host = host_start();
	struct args none = {0};
	uint32_t used = host->server.arena.used;

	host_functions.type_code = kTVMOpaqueHandle;
	(void)expect_returned(host_call(host, host_function(host, "ret"), &none), ARG_HANDLE);
	CHECK_EQ(host->server.arena.used, used);
	host_stop(host);
}

CHECK_MAIN(CASE(a_returned_address_can_be_an_argument),
	   CASE(an_address_that_no_function_returned_can_not),
	   CASE(a_constant_of_impossible_shape_is_refused),
	   CASE(operators_copies_and_global_functions_refuse_it),
	   CASE(the_next_session_knows_it_no_more), CASE(a_null_handle_is_not_kept))
