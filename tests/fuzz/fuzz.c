/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fuzz.h"

#include "check.h"
#include "functions.h"
#include "operators.h"

/* Calls of a library function in one input: evaluators with large options are to end. */
#define CALLS_MAX 64U

static uint32_t calls_left;

/* ------------------------------------------------------------------- input */

uint8_t input_u8(struct input *input)
{
	return input->at < input->end ? *input->at++ : 0U;
}

uint16_t input_u16(struct input *input)
{
	uint16_t low = input_u8(input);

	return (uint16_t)(low | input_u8(input) << 8);
}

uint32_t input_u32(struct input *input)
{
	uint32_t low = input_u16(input);

	return low | (uint32_t)input_u16(input) << 16;
}

uint64_t input_u64(struct input *input)
{
	uint64_t low = input_u32(input);

	return low | (uint64_t)input_u32(input) << 32;
}

/* ----------------------------------------------------------------- library */

/* The functions of both libraries, each behind the limit. */
static int guarded(const TVMFuncRegistry *registry, uint32_t index, TVMValue *args, int *codes,
		   int count, TVMValue *value, int *code, void *resource)
{
	if (calls_left == 0U) {
		TVMAPISetLastError("enough calls");
		return -1;
	}
	calls_left--;
	return registry->funcs[index](args, codes, count, value, code, resource);
}

#define GUARD(name, registry, index)                                                               \
	static int name(TVMValue *args, int *codes, int count, TVMValue *value, int *code,         \
			void *resource)                                                            \
	{                                                                                          \
		return guarded(&registry, index, args, codes, count, value, code, resource);       \
	}

GUARD(add, operators_registry, 0U)
GUARD(exp_function, operators_registry, 1U)
GUARD(inc, operators_registry, 2U)
GUARD(mul, operators_registry, 3U)
GUARD(tick, host_registry, 0U)
GUARD(fail_text, host_registry, 2U)
GUARD(leak, host_registry, 3U)
GUARD(workspace, host_registry, 4U)
GUARD(echo, host_registry, 7U)
GUARD(array, host_registry, 8U)
GUARD(talk, host_registry, 10U)

static const TVMBackendPackedCFunc functions[] = {
	inc, add, mul, exp_function, tick, fail_text, leak, workspace, echo, array, talk,
};

static const TVMFuncRegistry registry = {
	.names = "\013\000inc\0add\0mul\0exp\0tick\0fail_text\0leak\0workspace\0echo\0array\0talk\0",
	.funcs = functions,
};

/* ------------------------------------------------------------------ device */

static struct host *boot(void)
{
	static const TVMFuncRegistry *const registries[] = {&registry};
	static struct host *host;

	if (host == NULL) {
		host = host_boot((struct host_sizes){FUZZ_RECEIVE, FUZZ_SEND, FUZZ_ARENA});
		host->config.library = (struct minrpc_library){registries, 1U};
		host->clock.per_sample = 7U;
	}
	return host;
}

struct host *fuzz_start(void)
{
	static int64_t shape[] = {3, 2};
	struct host *host = boot();

	host_reboot(host);
	calls_left = CALLS_MAX;
	host_functions.log_size = 1500U;
	host_functions.array = (DLTensor){.device = {kDLCPU, 0},
					  .ndim = 2,
					  .dtype = {kDLFloat, 32U, 1U},
					  .shape = shape};
	CHECK(host_take(host));
	CHECK_EQ(host->message.type, TYPE_TERMINATE);
	host_open(host, 0x23U);
	return host;
}

static void drain(struct host *host)
{
	while (host_take(host)) {
	}
}

void fuzz_finish(struct host *host)
{
	struct bytes resync = {0};
	struct args args = {0};

	(void)arena_check(&host->server.arena);
	drain(host);
	/* An ff may wait for its second byte; a frame cut short may be told in the log. */
	put_u8(&resync, 0xfeU);
	put_message(&resync, 0U, TYPE_TERMINATE, NULL, 0U);
	host_give(host, &resync);
	drain(host);
	host_open(host, 0x42U);
	calls_left = 1U;
	arg(&args, ARG_INT, 41U);
	CHECK_EQ(get_u64(expect_returned(host_call(host, 0x80008000U, &args), ARG_INT)), 42U);
	CHECK_EQ(arena_check(&host->server.arena), 0U);
	CHECK_EQ(host->clock.begun, host->clock.ended);
}
