/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fuzz.h"

#include <minrpc/counter.h>

#include "check.h"
#include "functions.h"
#include "operators.h"

/*
 * Largest number of calls of a library function in one input, so that evaluators with large options
 * end.
 */
#define CALLS_MAX 64U

static uint32_t calls_left;

/* Bytes that wait on the link while functions run. */
static struct bytes waiting;
static uint32_t noticed;

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

void put_counting(struct bytes *bytes, uint8_t value, uint32_t size)
{
	uint32_t start = bytes->size;

	put_fill(bytes, value, size);
	for (uint32_t i = 0U; i < size; i++) {
		bytes->data[start + i] = (uint8_t)(value + i);
	}
}

/* ----------------------------------------------------------------- library */

static bool may_call(void)
{
	noticed += waiting.size != 0U;
	return calls_left != 0U && calls_left-- != 0U;
}

/* Functions of both libraries, each behind the limit. */
static int guarded(uint32_t index, TVMValue *args, int *codes, int count, TVMValue *value,
		   int *code, void *resource)
{
	if (!may_call()) {
		TVMAPISetLastError("enough calls");
		return -1;
	}
	return host_registry.funcs[index](args, codes, count, value, code, resource);
}

#define PACKED(name, index)                                                                        \
	static int name(TVMValue *args, int *codes, int count, TVMValue *value, int *code,         \
			void *resource)                                                            \
	{                                                                                          \
		return guarded(index, args, codes, count, value, code, resource);                  \
	}

#define OPERATOR(name, index)                                                                      \
	static bool name(struct minrpc_call *call)                                                 \
	{                                                                                          \
		return may_call() ? minrpc_operators.functions[index].run(call)                    \
				  : minrpc_fail(call->server, "enough calls");                     \
	}

OPERATOR(add, 0U)
OPERATOR(exp_function, 1U)
OPERATOR(inc, 2U)
OPERATOR(mul, 3U)
PACKED(tick, 0U)
PACKED(fail_text, 2U)
PACKED(leak, 3U)
PACKED(workspace, 4U)
PACKED(echo, 7U)
PACKED(array, 8U)
PACKED(talk, 10U)
PACKED(ask, 15U)

static const struct minrpc_function operators[] = {
	{"inc", "i", inc},
	{"add", "ttw", add},
	{"mul", "ttw", mul},
	{"exp", "tw", exp_function},
};

static const TVMBackendPackedCFunc packed[] = {
	tick, fail_text, leak, workspace, echo, array, talk, ask,
};

static const TVMFuncRegistry registry = {
	.names = "\010\000tick\0fail_text\0leak\0workspace\0echo\0array\0talk\0ask\0",
	.funcs = packed,
};

/* -------------------------------------------------------------------- port */

/* In two pieces, as in a ring. */
static uint32_t port_pending(void *context, uint32_t from, const uint8_t **data)
{
	uint32_t half = waiting.size / 2U;

	(void)context;
	*data = waiting.data + from;
	return (from < half ? half : waiting.size) - from;
}

void fuzz_waiting(const struct bytes *bytes)
{
	waiting = *bytes;
}

static void port_stack_paint(void *context)
{
	(void)context;
}

static void port_stack_use(void *context, uint32_t *size, uint32_t *peak)
{
	(void)context;
	*size = 4096U;
	*peak = 1000U;
}

static void port_heap_use(void *context, uint32_t *used, uint32_t *peak, bool reset)
{
	(void)context;
	*used = 100U;
	*peak = reset ? 100U : 300U;
}

/* Each reading is smaller than the reading before by more than its width. */
static uint64_t read_back(void *context)
{
	uint64_t *now = context;

	return *now -= 0x123456789ULL;
}

static bool enable_half(void *context, bool on)
{
	uint64_t *count = context;

	*count += on;
	return *count % 2U == 0U;
}

static uint64_t counted;
static uint64_t tries;

static uint64_t read_standing(void *context)
{
	(void)context;
	return 5U;
}

#define OWN(number) {"own" #number, "", 32U, read_standing, NULL, NULL}

/* Together with the runtime's five and the port's three these exceed the limit. */
const struct minrpc_counter minrpc_own_counters[] = {
	OWN(0),  OWN(1),  OWN(2),  OWN(3),  OWN(4),  OWN(5),  OWN(6),         OWN(7),
	OWN(8),  OWN(9),  OWN(10), OWN(11), OWN(12), OWN(13), OWN(14),        OWN(15),
	OWN(16), OWN(17), OWN(18), OWN(19), OWN(20), OWN(21), OWN(22),        OWN(23),
	OWN(24), OWN(25), OWN(26), OWN(27), OWN(28), OWN(29), {.name = NULL},
};

static bool masked;

static void port_interrupts_mask(void *context, bool mask)
{
	(void)context;
	CHECK(masked != mask);
	masked = mask;
}

static bool code_runs;

static int port_code_ready(void *context, void *block, uint32_t size)
{
	(void)context;
	(void)block;
	(void)size;
	return code_runs ? 0 : -1;
}

void fuzz_let_code_run(void)
{
	code_runs = true;
}

static const struct minrpc_counter counters[] = {
	{"narrow", "cycles", 8U, read_back, NULL, &counted},
	{"full", "", 64U, read_back, NULL, &counted},
	{"scarce", "", 32U, read_back, enable_half, &tries},
	{.name = NULL},
};

/* ------------------------------------------------------------------ device */

_Alignas(64) uint8_t fuzz_more_memory[FUZZ_MORE];

static struct host *boot(void)
{
	static const struct minrpc_module module = {operators, 4U, &registry, NULL};
	static struct host *host;

	if (host == NULL) {
		host = host_boot((struct host_sizes){FUZZ_RECEIVE, FUZZ_SEND, FUZZ_ARENA});
		host->config.library = (struct minrpc_library){&module, 1U};
		host->config.counters = counters;
		host->config.more_memory = fuzz_more_memory;
		host->config.more_memory_size = FUZZ_MORE;
		host->clock.per_sample = 7U;
		host->platform.pending = port_pending;
		host->platform.received = &noticed;
		host->platform.stack_paint = port_stack_paint;
		host->platform.stack_use = port_stack_use;
		host->platform.heap_use = port_heap_use;
		host->platform.interrupts_mask = port_interrupts_mask;
		host->platform.code_ready = port_code_ready;
	}
	return host;
}

struct host *fuzz_start(void)
{
	static int64_t shape[] = {3, 2};
	struct host *host = boot();

	waiting = (struct bytes){0};
	counted = 0U;
	tries = 0U;
	host_reboot(host);
	calls_left = CALLS_MAX;
	host_functions.log_size = 1500U;
	host_functions.array = (DLTensor){
		.device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat, 32U, 1U}, .shape = shape};
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
	/* An ff may wait for its second byte; the log may report a frame that was cut short. */
	put_u8(&resync, 0xfeU);
	put_message(&resync, 0U, TYPE_TERMINATE, NULL, 0U);
	host_give(host, &resync);
	drain(host);
	host_open(host, 0x42U);
	calls_left = 1U;
	arg(&args, ARG_INT, 41U);
	CHECK_EQ(get_u64(expect_returned(host_call(host, 0x80008000U, &args), ARG_INT)), 42U);
	CHECK_EQ(arena_check(&host->server.arena), 0U);
	CHECK_EQ(host->server.code.size, 0U);
	CHECK_EQ(host->server.arena.size, FUZZ_ARENA);
	CHECK_EQ(host->clock.begun, host->clock.ended);
	CHECK(!masked);
}
