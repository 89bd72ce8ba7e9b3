/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Memory of the image that the port declares as read-only: clients may name it, as they do with
 * TVM's linked parameters, but nothing of theirs writes there.
 */
#include "check.h"
#include "functions.h"
#include "host.h"

static struct tensor constants(uint32_t first, int64_t count)
{
	return tensor_1d((uintptr_t)&host_constants[first], ARG_FLOAT, 32U, count);
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

TEST(they_can_be_arguments_and_be_read)
{
	struct host *host = host_start();
	struct tensor tensor = constants(0U, 4);
	struct bytes body = {0};

	(void)expect_returned(call(host, "tick", &tensor, 1U), ARG_NULL);
	CHECK_EQ(host_functions.calls, 1U);
	put_copy(&body, V8, &tensor, sizeof(host_constants));
	CHECK_MEM(host_request(host, RPC_COPY_FROM, &body)->body, host_constants,
		  sizeof(host_constants));
	/* The copy may begin anywhere in it. */
	tensor = constants(2U, 2);
	(void)expect_returned(call(host, "tick", &tensor, 1U), ARG_NULL);
	tensor = constants(1U, 2);
	tensor.offset = sizeof(host_constants[0]);
	(void)expect_returned(call(host, "tick", &tensor, 1U), ARG_NULL);
	host_stop(host);
}

TEST(not_a_byte_outside_of_them)
{
	struct host *host = host_start();
	struct tensor tensor = constants(0U, 5);

	expect_exception(call(host, "tick", &tensor, 1U), "20 bytes at 0 in an allocation of 16");
	tensor = constants(3U, 2);
	expect_exception(call(host, "tick", &tensor, 1U), "8 bytes at 0 in an allocation of 4");
	tensor = constants(0U, 1);
	tensor.offset = 16U;
	expect_exception(call(host, "tick", &tensor, 1U), "4 bytes at 16");
	tensor.offset = UINT64_MAX;
	expect_exception(call(host, "tick", &tensor, 1U), "");
	tensor = constants(4U, 0);
	expect_exception(call(host, "tick", &tensor, 1U), "no live tensor");
	tensor = constants(0U, 1);
	tensor.data--;
	expect_exception(call(host, "tick", &tensor, 1U), "no live tensor");
	tensor = constants(0U, -1);
	expect_exception(call(host, "tick", &tensor, 1U), "shape");
	tensor = constants(0U, 1);
	tensor.data++;
	expect_exception(call(host, "tick", &tensor, 1U), "unaligned");
	CHECK_EQ(host_functions.calls, 0U);
	host_stop(host);
}

TEST(nothing_writes_there)
{
	struct host *host = host_start();
	struct tensor from = tensor_1d(host_alloc(host, 16U), ARG_FLOAT, 32U, 4);
	struct tensor to = constants(0U, 4);
	struct args args = {0};
	struct bytes body = {0};

	expect_exception(call(host, "exp", (struct tensor[]){from, to}, 2U), "no live tensor");
	expect_exception(call(host, "add", (struct tensor[]){from, from, to}, 3U),
			 "no live tensor");
	arg_tensor(&args, V8, &to);
	expect_exception(
		host_call(host, host_global(host, "tvm.contrib.random.random_fill"), &args),
		"no live tensor");
	put_copy(&body, V8, &to, sizeof(host_constants));
	put_fill(&body, 0x77U, sizeof(host_constants));
	expect_exception(host_request(host, RPC_COPY_TO, &body), "no live tensor");
	expect_exception(host_copy_among(host, from.data, 0U, to.data, 0U, 16U), "no live tensor");
	/* In the other direction the constant is a source like any other. */
	expect_void(host_copy_among(host, to.data, 0U, from.data, 0U, 16U));
	(void)expect_returned(call(host, "exp", (struct tensor[]){to, from}, 2U), ARG_NULL);
	host_still_serves(host);
	host_stop(host);
}

TEST(a_device_may_declare_none)
{
	struct host *host = host_start();
	struct tensor tensor = constants(0U, 1);

	host->config.read_only = NULL;
	host->config.read_only_size = 0U;
	expect_exception(call(host, "tick", &tensor, 1U), "no live tensor");
	tensor.data = 0U;
	expect_exception(call(host, "tick", &tensor, 1U), "no live tensor");
	host_stop(host);
}

/* A client can't name a function's own constants, but can name shared constants. */
TEST(blocks_that_functions_keep)
{
	struct host *host = host_start();
	void *own = minrpc_arena_alloc(&host->server.arena, 16U, 1U, MINRPC_ARENA_LIBRARY);
	void *shared = minrpc_arena_alloc(&host->server.arena, 16U, 1U, MINRPC_ARENA_SHARED);
	struct tensor tensor = tensor_1d((uintptr_t)own, ARG_FLOAT, 32U, 4);
	struct bytes body = {0};

	expect_exception(call(host, "tick", &tensor, 1U), "no live tensor");
	put_copy(&body, V8, &tensor, 16U);
	put_fill(&body, 0x77U, 16U);
	expect_exception(host_request(host, RPC_COPY_TO, &body), "no live tensor");
	host_write(host, (uintptr_t)shared, "sixteen bytes ..", 16U);
	CHECK_MEM(shared, "sixteen bytes ..", 16U);
	expect_exception(host_try_free(host, (uintptr_t)shared), "no live tensor");
	host_open(host, 0x24U);
	CHECK_EQ(arena_check(&host->server.arena), 2U);
	host_stop(host);
}

CHECK_MAIN(CASE(they_can_be_arguments_and_be_read), CASE(not_a_byte_outside_of_them),
	   CASE(nothing_writes_there), CASE(a_device_may_declare_none),
	   CASE(blocks_that_functions_keep))
