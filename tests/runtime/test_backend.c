/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * TVM's C ABI as generated code calls it: workspace, functions by name, errors, parallel launch.
 */
#include <tvm/runtime/c_backend_api.h>

#include "check.h"
#include "functions.h"
#include "host.h"

TEST(the_last_error_is_the_text_of_the_exception)
{
	struct host *host = host_start();

	TVMAPISetLastError("out of luck");
	CHECK_STR(TVMGetLastError(), "out of luck");
	CHECK_STR(host->server.error, "out of luck");
	host_stop(host);
}

TEST(workspace_that_no_memory_holds)
{
	static const uint64_t sizes[] = {100000U, UINT32_MAX, 1ULL << 32, (1ULL << 32) + 16U,
					 UINT64_MAX};
	struct host *host = host_start();

	for (size_t i = 0U; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		host->server.error[0] = '\0';
		CHECK(TVMBackendAllocWorkspace(1, 0, sizes[i], 0, 8) == NULL);
		CHECK_CONTAINS(TVMGetLastError(), "out of device memory");
	}
	host_stop(host);
}

TEST(writes_beside_workspace_are_told_when_it_is_given_back)
{
	static const int beside[] = {-1, -4, 16, 23};
	struct host *host = host_start();
	uint32_t top = host->server.arena.top;

	for (size_t i = 0U; i < sizeof(beside) / sizeof(beside[0]); i++) {
		uint8_t *block = TVMBackendAllocWorkspace(1, 0, 16U, 0, 8);

		CHECK(block != NULL);
		block[beside[i]] ^= 1U;
		CHECK_EQ(TVMBackendFreeWorkspace(1, 0, block), -1);
		CHECK_STR(TVMGetLastError(), beside[i] < 0
						     ? "the function wrote before its workspace"
						     : "the function wrote past its workspace");
		/* Workspace that a call leaves is given back when it returns. */
		host->server.arena.top = top;
	}
	CHECK_EQ(TVMBackendFreeWorkspace(1, 0, &host), -1);
	CHECK_CONTAINS(TVMGetLastError(), "not its newest workspace");
	host_stop(host);
}

TEST(functions_are_named_and_called)
{
	static const uintptr_t bad[] = {0U, 1000U, UINT32_MAX};
	struct host *host = host_start();
	TVMFunctionHandle inc;
	TVMFunctionHandle none = &inc;
	TVMValue argument = {.v_int64 = 41};
	TVMValue value = {.v_int64 = 0};
	int code = kTVMArgInt;
	int result = kTVMStr;

	CHECK_EQ(TVMFuncGetGlobal("inc", &inc), 0);
	CHECK(inc != NULL);
	CHECK_EQ(TVMFuncCall(inc, &argument, &code, 1, &value, &result), 0);
	CHECK_EQ(value.v_int64, 42);
	CHECK_EQ(result, kTVMArgInt);
	CHECK_EQ(TVMFuncFree(inc), 0);
	CHECK_EQ(TVMFuncCall(inc, &argument, &code, 0, &value, &result), -1);
	CHECK_STR(TVMGetLastError(), "inc: expected 1 argument, got 0");
	for (size_t i = 0U; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK_EQ(TVMFuncCall((TVMFunctionHandle)bad[i], &argument, &code, 1, &value,
				     &result),
			 -1);
		CHECK_CONTAINS(TVMGetLastError(), "names no function");
	}
	CHECK_EQ(TVMFuncGetGlobal("nobody", &none), -1);
	CHECK(none == NULL);
	CHECK_CONTAINS(TVMGetLastError(), "nobody");
	CHECK_EQ(TVMBackendRegisterSystemLibSymbol("late", NULL), -1);
	CHECK_CONTAINS(TVMGetLastError(), "TVMFuncRegistry");
	host_stop(host);
}

struct launched {
	int tasks;
	int of;
	int fails_at;
};

static int task(int id, TVMParallelGroupEnv *group, void *context)
{
	struct launched *launched = context;

	CHECK_EQ(id, launched->tasks);
	launched->tasks++;
	launched->of = group->num_task;
	return id == launched->fails_at ? -7 : 0;
}

/* One core runs them one after another, and stops at the first failing task. */
TEST(parallel_tasks_run_in_turn)
{
	struct launched launched = {.fails_at = -1};

	CHECK_EQ(TVMBackendParallelLaunch(task, &launched, 3), 0);
	CHECK_EQ(launched.tasks, 3);
	CHECK_EQ(launched.of, 3);
	/* One task for each core. */
	for (int number = 0; number > -2; number--) {
		launched.tasks = 0;
		CHECK_EQ(TVMBackendParallelLaunch(task, &launched, number), 0);
		CHECK_EQ(launched.tasks, 1);
		CHECK_EQ(launched.of, 1);
	}
	launched = (struct launched){.fails_at = 1};
	CHECK_EQ(TVMBackendParallelLaunch(task, &launched, 3), -7);
	CHECK_EQ(launched.tasks, 2);
}

CHECK_MAIN(CASE(the_last_error_is_the_text_of_the_exception), CASE(workspace_that_no_memory_holds),
	   CASE(writes_beside_workspace_are_told_when_it_is_given_back),
	   CASE(functions_are_named_and_called), CASE(parallel_tasks_run_in_turn))
