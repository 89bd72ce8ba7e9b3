/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Functions that write beside their arrays: the call that wrote fails with the reason, and the
 * device goes on.
 */
#include <stdio.h>

#include <minrpc/object.h>

#include "check.h"
#include "functions.h"
#include "host.h"

static const struct answer *call(struct host *host, const char *name)
{
	struct args none = {0};

	return host_call(host, host_function(host, name), &none);
}

static const struct answer *write_at(struct host *host, uint64_t address)
{
	host_functions.where = (uint8_t *)(uintptr_t)address;
	return call(host, "beside");
}

static const char *text(const char *what, uint64_t address)
{
	static char buffer[64];

	(void)snprintf(buffer, sizeof(buffer), "beside wrote %s the array at 0x%llx", what,
		       (unsigned long long)address);
	return buffer;
}

TEST(a_byte_beside_an_array_fails_the_call_that_wrote_it)
{
	struct host *host = host_start();
	uint64_t other = host_alloc(host, 100U);
	uint64_t data = host_alloc(host, 100U);
	uint8_t bytes[100] = {1, 2, 3};

	(void)host_alloc(host, 100U);
	host_write(host, data, bytes, sizeof(bytes));
	expect_exception(write_at(host, data + 100U), text("past", data));
	expect_exception(write_at(host, data - 1U), text("before", data));
	expect_exception(write_at(host, other + 107U), text("past", other));
	/* Nothing is lost: the array is unchanged, and the next call goes well. */
	host_read(host, data, bytes, sizeof(bytes));
	CHECK(bytes[0] == 1 && bytes[1] == 2 && bytes[2] == 3 && bytes[99] == 0);
	(void)expect_returned(write_at(host, data + 99U), ARG_NULL);
	host_still_serves(host);
	host_stop(host);
}

TEST(a_timed_function_is_named)
{
	struct host *host = host_start();
	uint64_t data = host_alloc(host, 100U);
	struct args args = {0};
	struct args none = {0};
	uint64_t evaluator;

	arg(&args, ARG_MODULE, 0x8000U);
	arg_string(&args, "beside");
	arg(&args, ARG_INT, 1U);
	arg(&args, ARG_INT, 0U);
	arg(&args, ARG_INT, 2U); /* and one write before: three writes in all, so the byte stays
	changed */
	arg(&args, ARG_INT, 1U);
	arg(&args, ARG_INT, 0U);
	arg_string(&args, "");
	evaluator = get_u64(expect_returned(
		host_call(host, host_global(host, "runtime.RPCTimeEvaluator"), &args),
		ARG_FUNCTION));
	host_functions.where = (uint8_t *)(uintptr_t)data + 100U;
	expect_exception(host_call(host, evaluator, &none), text("past", data));
	host_still_serves(host);
	host_stop(host);
}

/* The call's answer is an exception with that text, and then the session ends. */
static void expect_last_answer(struct host *host, uint64_t address, const char *part)
{
	uint64_t function = host_function(host, "beside");
	struct bytes wire = {0};
	char answer[200] = "";

	host_functions.where = (uint8_t *)(uintptr_t)address;
	put_call(&wire, host->session, function);
	host_give(host, &wire);
	host_take_next(host);
	CHECK_EQ(get_u32(host->message.body.data + 8), RPC_EXCEPTION);
	memcpy(answer, host->message.body.data + 28, host->message.body.size - 28U);
	CHECK_CONTAINS(answer, part);
	host_take_next(host);
	CHECK_EQ(host->message.type, TYPE_TERMINATE);
	host_expect_silence(host);
}

/* The block after the guard is lost: the device restarts, or frees all memory. */
TEST(damage_beyond_the_guards_restarts_the_device)
{
	struct host *host = host_start();
	uint64_t data = host_alloc(host, 100U);
	uint64_t next = host_alloc(host, 100U);

	expect_last_answer(host, next - 16U, "beside wrote far beside the array at 0x");
	/* This port's reset comes back: everything has been forgotten. */
	CHECK_EQ(host->resets, 1U);
	CHECK_EQ(arena_check(&host->server.arena), 0U);
	host_open(host, 0x24U);
	expect_exception(host_try_free(host, data), "no live tensor");
	host_still_serves(host);
	host_stop(host);
}

/* Overwrites the newest object, and the header that `where` is in. */
static bool spoil(struct minrpc_call *call)
{
	memset(call->server->objects, 0x5a, sizeof(void *));
	*host_functions.where ^= 0x10U;
	return true;
}

/* The objects are lost with their memory: no list refers to them any more. */
TEST(objects_of_lost_memory_are_forgotten)
{
	static const struct minrpc_function functions[] = {{"inc", NULL, spoil}};
	static const struct minrpc_module module = {.functions = functions, .count = 1U};
	struct host *host = host_start();
	struct bytes wire = {0};
	struct args args = {0};
	uint64_t evaluator;

	host->config.library = (struct minrpc_library){&module, 1U};
	arg(&args, ARG_MODULE, 0x8000U);
	arg_string(&args, "inc");
	for (int i = 0; i < 5; i++) {
		arg(&args, ARG_INT, 1U);
	}
	arg_string(&args, "");
	evaluator = get_u64(expect_returned(
		host_call(host, host_global(host, "runtime.RPCTimeEvaluator"), &args),
		ARG_FUNCTION));
	host_functions.where = (uint8_t *)(uintptr_t)host_alloc(host, 100U) - 16U;
	put_call(&wire, host->session, 0x80008000U);
	host_give(host, &wire);
	host_take_next(host);
	CHECK_EQ(get_u32(host->message.body.data + 8), RPC_EXCEPTION);
	host_take_next(host);
	CHECK_EQ(host->message.type, TYPE_TERMINATE);
	CHECK(host->server.objects == NULL);
	host_open(host, 0x24U);
	expect_exception(host_call(host, evaluator, &args), "no live function");
	CHECK_EQ(arena_check(&host->server.arena), 0U);
	host_stop(host);
}

TEST(code_in_memory_of_its_own_is_guarded_too)
{
	static _Alignas(64) uint8_t memory[4096];
	struct host *host = host_start();
	struct args args = {0};
	uint64_t block;

	host->config.code = memory;
	host->config.code_size = sizeof(memory);
	host_reboot(host);
	CHECK(host_take(host));
	host_open(host, 0x23U);
	arg(&args, ARG_INT, 100U);
	block = get_u64(expect_returned(
		host_call(host, host_global(host, "minrpc.code_alloc"), &args), ARG_HANDLE));
	expect_exception(write_at(host, block + 100U), text("past", block));
	(void)expect_returned(write_at(host, block + 50U), ARG_NULL);
	expect_last_answer(host, block - 16U, "far beside");
	host_open(host, 0x24U);
	host_still_serves(host);
	host_stop(host);
}

TEST(workspace_is_looked_at_when_it_is_given_back)
{
	struct host *host = host_start();

	host_functions.log_size = 16U;
	(void)expect_returned(call(host, "overrun"), ARG_NULL);
	host_functions.log_size = 17U;
	expect_exception(call(host, "overrun"), "wrote past its workspace");
	expect_exception(call(host, "crossed"), "not its newest workspace");
	CHECK_EQ(host->server.arena.top, host->server.arena.size);
	host_still_serves(host);
	host_stop(host);
}

/* The same calls with no arrays and with 400: workspace is at the same place. */
TEST(workspace_does_not_depend_on_arrays)
{
	struct host *host = host_start();
	uint32_t used;

	(void)expect_returned(call(host, "leak"), ARG_INT);
	used = host->server.arena.peak - host->server.arena.used;
	for (int i = 0; i < 400; i++) {
		(void)host_alloc(host, 1U);
	}
	host->server.arena.peak = 0U;
	(void)expect_returned(call(host, "leak"), ARG_INT);
	CHECK_EQ(host->server.arena.peak - host->server.arena.used, used);
	CHECK_EQ(host->server.arena.top, host->server.arena.size);
	host_stop(host);
}

CHECK_MAIN(CASE(a_byte_beside_an_array_fails_the_call_that_wrote_it),
	   CASE(a_timed_function_is_named), CASE(damage_beyond_the_guards_restarts_the_device),
	   CASE(objects_of_lost_memory_are_forgotten),
	   CASE(code_in_memory_of_its_own_is_guarded_too),
	   CASE(workspace_is_looked_at_when_it_is_given_back),
	   CASE(workspace_does_not_depend_on_arrays))
