/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Sequences of requests, made from the input, against a model of what the device must hold: every
 * request that the model calls right succeeds, every other is an exception, and after each the
 * device's memory is the model's.
 */
#include <string.h>

#include "check.h"
#include "functions.h"
#include "fuzz.h"

#define BLOCKS_MAX     12U
#define EVALUATORS_MAX 6U
#define SIZE_MAX_ASKED 700U
/* Of a message up to its body: session header, length, code. */
#define FRONT          15U

struct block {
	uint64_t data; /* 0: none */
	uint32_t size;
	uint8_t bytes[SIZE_MAX_ASKED];
};

struct evaluator {
	uint64_t handle; /* 0: none */
	uint64_t repeat;
	bool counting;
};

struct model {
	struct host *host;
	struct input *input;
	struct block blocks[BLOCKS_MAX];
	struct evaluator evaluators[EVALUATORS_MAX];
	uint64_t freed; /* an address that is not live any more */
	enum dialect dialect;
	uint64_t random_fill;
	uint64_t time_evaluator;
	uint64_t counting_evaluator;
	uint64_t counters;
	uint64_t memory;
	uint8_t sequence; /* of the last numbered request */
};

/* ------------------------------------------------------------- what is sent */

static struct block *pick_block(struct model *model)
{
	return &model->blocks[input_u8(model->input) % BLOCKS_MAX];
}

/* Mostly a block's address, else something near it or nothing at all. */
static uint64_t pick_address(struct model *model, const struct block *block)
{
	uint8_t how = input_u8(model->input);

	switch (how) {
	case 255U:
		return input_u64(model->input);
	case 254U:
		return block->data + (uint64_t)(int8_t)input_u8(model->input);
	case 253U:
		return model->freed;
	case 252U:
		return block->data + (1ULL << 32);
	default:
		return block->data;
	}
}

/* Mostly small. */
static uint64_t pick_number(struct model *model)
{
	uint8_t first = input_u8(model->input);

	if (first < 240U) {
		return first;
	}
	if (first < 253U) {
		return input_u16(model->input);
	}
	return input_u64(model->input);
}

static const struct block *live_at(const struct model *model, uint64_t data)
{
	for (uint32_t i = 0U; data != 0U && i < BLOCKS_MAX; i++) {
		if (model->blocks[i].data == data) {
			return &model->blocks[i];
		}
	}
	return NULL;
}

static bool fits(const struct block *block, uint64_t offset, uint64_t size)
{
	return block != NULL && offset <= block->size && size <= block->size - offset;
}

/* A tensor of bytes, of floats, or of anything; of a block or not. */
static struct tensor pick_tensor(struct model *model)
{
	const struct block *block = pick_block(model);
	uint8_t how = input_u8(model->input);
	struct tensor tensor = {.data = pick_address(model, block),
				.code = how & 1U ? 2U : 0U,
				.bits = how & 1U ? 32U : 8U,
				.lanes = 1U,
				.ndim = (how >> 1) % 4U};

	if (how >= 0xf0U) {
		tensor.code = input_u8(model->input);
		tensor.bits = input_u8(model->input);
		tensor.lanes = input_u16(model->input);
	}
	if (how & 0x40U && model->dialect == V8) {
		tensor.offset = pick_number(model);
	}
	for (uint32_t i = 0U; i < tensor.ndim; i++) {
		tensor.shape[i] = (int64_t)pick_number(model);
	}
	return tensor;
}

/* ----------------------------------------------------------------- requests */

static void allocate(struct model *model)
{
	struct block *block = pick_block(model);
	uint32_t size = input_u16(model->input) % SIZE_MAX_ASKED;
	const struct answer *answer;

	if (block->data != 0U) {
		return;
	}
	if (input_u8(model->input) & 1U) {
		struct tensor tensor = tensor_1d(0U, 0U, 8U, size);
		struct args args = {0};

		arg_tensor(&args, V8, &tensor);
		arg(&args, ARG_NULL, 0U);
		answer = host_syscall(model->host, RPC_ALLOC_SCOPE, &args);
	} else {
		answer = host_try_alloc(model->host, size, 1ULL << input_u8(model->input) % 10U);
	}
	if (answer->code == RPC_EXCEPTION) {
		CHECK_CONTAINS(answer->text, "memory");
		return;
	}
	block->data = expect_handle(answer);
	CHECK(block->data != 0U);
	block->size = size;
	memset(block->bytes, (int)(block->data >> 4), size);
	if (size != 0U) {
		host_write(model->host, block->data, block->bytes, size);
	}
}

static void release(struct model *model)
{
	uint64_t data = pick_address(model, pick_block(model));
	struct block *block = (struct block *)live_at(model, data);
	const struct answer *answer = host_try_free(model->host, data);

	CHECK_EQ(answer->code, block != NULL ? RPC_RETURN : RPC_EXCEPTION);
	if (block != NULL) {
		model->freed = block->data;
		block->data = 0U;
	}
}

static void copy_to(struct model *model)
{
	uint64_t data = pick_address(model, pick_block(model));
	struct block *block = (struct block *)live_at(model, data);
	struct tensor tensor = tensor_1d(data, 0U, 8U, 0);
	uint64_t size = pick_number(model) % SIZE_MAX_ASKED;
	uint8_t value = input_u8(model->input);
	uint8_t bytes[SIZE_MAX_ASKED];
	struct bytes body = {0};
	const struct answer *answer;
	bool taken;

	tensor.offset = pick_number(model);
	tensor.shape[0] = (int64_t)size;
	put_copy(&body, model->dialect, &tensor, size);
	put_counting(&body, value, (uint32_t)size);
	memcpy(bytes, body.data + body.size - size, size);
	/* A longer one without a check of its own is taken in v0.7's sessions only. */
	taken = FRONT + body.size <= FUZZ_RECEIVE ||
		model->host->server.dialect == MINRPC_DIALECT_0_7;
	taken = taken && fits(block, tensor.offset, size);
	answer = host_request(model->host, RPC_COPY_TO, &body);
	CHECK_EQ(answer->code, taken ? RPC_RETURN : RPC_EXCEPTION);
	if (taken) {
		memcpy(block->bytes + tensor.offset, bytes, size);
	}
}

static void copy_from(struct model *model)
{
	uint64_t data = pick_address(model, pick_block(model));
	const struct block *block = live_at(model, data);
	struct tensor tensor = tensor_1d(data, 0U, 8U, 0);
	uint64_t size = pick_number(model);
	struct bytes body = {0};
	const struct answer *answer;

	tensor.offset = pick_number(model);
	tensor.shape[0] = (int64_t)(size & INT32_MAX);
	put_copy(&body, model->dialect, &tensor, size);
	answer = host_request(model->host, RPC_COPY_FROM, &body);
	CHECK_EQ(answer->code, fits(block, tensor.offset, size) ? RPC_COPY_ACK : RPC_EXCEPTION);
	if (answer->code == RPC_COPY_ACK) {
		CHECK_EQ(answer->size, size);
		CHECK_MEM(answer->body, block->bytes + tensor.offset, size);
	}
}

static void copy_among(struct model *model)
{
	uint64_t from = pick_address(model, pick_block(model));
	uint64_t to = pick_address(model, pick_block(model));
	uint64_t from_offset = pick_number(model);
	uint64_t to_offset = pick_number(model);
	uint64_t size = pick_number(model);
	struct block *source = (struct block *)live_at(model, from);
	struct block *target = (struct block *)live_at(model, to);
	const struct answer *answer =
		host_copy_among(model->host, from, from_offset, to, to_offset, size);

	CHECK_EQ(answer->code, fits(source, from_offset, size) && fits(target, to_offset, size)
				       ? RPC_RETURN
				       : RPC_EXCEPTION);
	if (answer->code == RPC_RETURN) {
		memmove(target->bytes + to_offset, source->bytes + from_offset, size);
	}
}

/* What a function wrote is read back; nothing else may have changed, which the end checks. */
static void take_over(struct model *model, const struct tensor *written)
{
	struct block *block = (struct block *)live_at(model, written->data);

	if (block != NULL && block->size != 0U) {
		uint64_t from = written->offset < block->size ? written->offset : block->size;
		uint8_t now[SIZE_MAX_ASKED];

		host_read(model->host, block->data, now, block->size);
		/* Nothing in front of the tensor. */
		CHECK_MEM(now, block->bytes, from);
		memcpy(block->bytes, now, block->size);
	}
}

static void call(struct model *model)
{
	/*
	 * By their places in fuzz.c: inc, add, mul, exp, tick, fail_text, leak, workspace, echo,
	 * array, talk.
	 */
	uint32_t function = input_u8(model->input) % 14U;
	uint32_t count = input_u8(model->input) % 5U;
	struct tensor last = {0};
	struct args args = {0};
	const struct answer *answer;

	for (uint32_t i = 0U; i < count; i++) {
		if (input_u8(model->input) < 230U) {
			last = pick_tensor(model);
			arg_tensor(&args, model->dialect, &last);
		} else {
			arg(&args, ARG_INT, pick_number(model));
		}
	}
	answer = host_call(model->host, 0x80008000U + function, &args);
	CHECK(function < 11U || answer->code == RPC_EXCEPTION);
	if (answer->code == RPC_RETURN && (function == 1U || function == 2U || function == 3U)) {
		take_over(model, &last);
	}
}

static void fill(struct model *model)
{
	struct tensor tensor = pick_tensor(model);
	struct args args = {0};

	arg_tensor(&args, model->dialect, &tensor);
	if (host_call(model->host, model->random_fill, &args)->code == RPC_RETURN) {
		take_over(model, &tensor);
	}
}

static void make_evaluator(struct model *model)
{
	static const char *const names[] = {"inc",     "add",  "tick", "fail_text", "leak",
					    "nothing", "talk", "",     "echo"};
	/* The last argument of a counting one. */
	static const char *const columns[] = {
		"",
		"narrow",
		"full,narrow",
		"arena_bytes",
		"stack_bytes,heap_bytes,link_sent",
		"scarce",
		"narrow,scarce,link_received",
		",",
		"nonesuch",
		"full,",
		"stack_bytes,,full",
	};
	static const uint32_t arities[] = {8U, 10U, 11U, 12U};
	struct evaluator *made = &model->evaluators[input_u8(model->input) % EVALUATORS_MAX];
	uint32_t options = arities[input_u8(model->input) % 4U] - 5U;
	struct args args = {0};
	const struct answer *answer;
	uint64_t repeat = 0U;
	bool counting;
	uint8_t name;

	if (made->handle != 0U) {
		return;
	}
	arg(&args, ARG_MODULE, 0x8000U);
	name = input_u8(model->input);
	counting = name >= 128U;
	arg_string(&args, names[name % (counting ? 9U : 7U)]);
	arg(&args, ARG_INT, 1U);
	arg(&args, ARG_INT, 0U);
	for (uint32_t i = 0U; i < options; i++) {
		uint64_t number = pick_number(model);

		repeat = i == 1U ? number : repeat;
		arg(&args, input_u8(model->input) == 255U ? ARG_BOOL : ARG_INT, number);
	}
	arg_string(&args, counting ? columns[input_u8(model->input) % 11U] : "");
	answer = host_call(model->host,
			   counting ? model->counting_evaluator : model->time_evaluator, &args);
	if (answer->code == RPC_RETURN) {
		made->handle = get_u64(expect_returned(answer, ARG_FUNCTION));
		made->repeat = repeat;
		made->counting = counting;
	}
}

static void check_result(const struct evaluator *evaluator, const uint8_t *result)
{
	uint64_t size = get_u64(result);
	uint32_t header;
	uint32_t stride;

	if (!evaluator->counting) {
		CHECK_EQ(size, evaluator->repeat * 8U);
		for (uint64_t i = 0U; i < evaluator->repeat; i++) {
			CHECK(get_f64(result + 8 + 8 * i) >= 0.0);
		}
		return;
	}
	header = get_u32(result + 8) >> 16;
	stride = get_u32(result + 12);
	CHECK_EQ(stride & 0xffffU, 16U + 8U * (stride >> 16));
	CHECK_EQ(size, header + evaluator->repeat * (stride & 0xffffU));
}

static void forget(struct model *model)
{
	memset(model->blocks, 0, sizeof(model->blocks));
	memset(model->evaluators, 0, sizeof(model->evaluators));
	model->sequence = 0U;
}

static void run_evaluator(struct model *model)
{
	const struct evaluator *evaluator =
		&model->evaluators[input_u8(model->input) % EVALUATORS_MAX];
	uint64_t handle = evaluator->handle;
	struct args args = {0};
	const struct answer *answer;

	if (handle == 0U) {
		handle = 0xc0000000U + pick_number(model);
	}
	arg(&args, ARG_INT, pick_number(model));
	answer = host_call(model->host, handle, &args);
	if (answer->code == RPC_RETURN && evaluator->handle != 0U) {
		check_result(evaluator, expect_returned(answer, ARG_BYTES));
	}
}

/*
 * While it runs, a new session's start waits on the link: where it is noticed there is no answer,
 * and the new client is served.
 */
static void abandon(struct model *model)
{
	const struct evaluator *evaluator =
		&model->evaluators[input_u8(model->input) % EVALUATORS_MAX];
	uint8_t nonce = (uint8_t)(1U + input_u8(model->input) % 255U);
	struct bytes waiting = {0};
	struct bytes wire = {0};

	put_fill(&waiting, 0x55U, input_u8(model->input) % 8U);
	put_message(&waiting, nonce, TYPE_INIT, (const uint8_t[]){1}, 1U);
	fuzz_waiting(&waiting);
	put_call(&wire, model->host->session,
		 evaluator->handle != 0U ? evaluator->handle : pick_number(model));
	host_give(model->host, &wire);
	while (host_take(model->host)) {
		CHECK(model->host->message.type == TYPE_NORMAL ||
		      model->host->message.type == TYPE_LOG);
	}
	fuzz_waiting(&(struct bytes){0});
	host_give(model->host, &waiting);
	host_take_next(model->host);
	CHECK_EQ(model->host->message.type, TYPE_REPLY);
	CHECK_EQ(model->host->message.session & 0xffU, nonce);
	model->host->session = model->host->message.session;
	forget(model);
}

/* What counters there are, and what memory is used; with peaks reset or not. */
static void ask_memory(struct model *model)
{
	struct args args = {0};
	struct args none = {0};
	const struct answer *answer;

	arg(&args, ARG_INT, input_u8(model->input) % 2U);
	CHECK_EQ(get_u64(expect_returned(host_call(model->host, model->memory, &args), ARG_BYTES)),
		 8U);
	answer = host_call(model->host, model->counters, &none);
	if (answer->code == RPC_EXCEPTION) {
		CHECK_CONTAINS(answer->text, "memory");
	} else {
		CHECK(get_u64(expect_returned(answer, ARG_BYTES)) > 100U);
	}
}

static void free_handle(struct model *model)
{
	struct evaluator *evaluator = &model->evaluators[input_u8(model->input) % EVALUATORS_MAX];
	uint8_t how = input_u8(model->input);
	uint64_t handle = how < 200U ? evaluator->handle : pick_number(model);
	struct args args = {0};
	const struct answer *answer;

	if (handle == 0U) {
		return;
	}
	arg(&args, ARG_HANDLE, handle);
	arg(&args, ARG_INT, how < 200U ? (uint64_t)ARG_FUNCTION : pick_number(model));
	answer = host_syscall(model->host, RPC_FREE_HANDLE, &args);
	if (how < 200U) {
		expect_void(answer);
		evaluator->handle = 0U;
	}
}

static void restart(struct model *model)
{
	host_open(model->host, (uint8_t)(1U + input_u8(model->input) % 255U));
	forget(model);
	model->dialect = input_u8(model->input) & 1U ? V7 : V8;
}

/* A frame that comes to nothing, between two requests. */
static void disturb(struct model *model)
{
	struct bytes wire = {0};
	uint8_t how = input_u8(model->input);
	uint32_t size = input_u16(model->input) % 1500U;
	struct bytes body = {0};

	put_counting(&body, how, size);
	put_message(&wire, model->host->session, how & 1U ? TYPE_NORMAL : how, body.data,
		    body.size);
	wire.data[wire.size - 1U] ^= 0x40U;
	wire.size -= how & 2U ? wire.size / 2U : 0U;
	put_u8(&wire, 0xfeU);
	bytes_free(&body);
	host_give(model->host, &wire);
	while (host_take(model->host)) {
		CHECK(model->host->message.type == TYPE_LOG ||
		      model->host->message.type == TYPE_RESEND);
	}
}

/* Copies of a numbered request, damaged or whole, and probes between them, as the input says. */
static void disturb_numbered(struct model *model, const struct bytes *good)
{
	for (uint8_t copies = input_u8(model->input) % 5U; copies != 0U; copies--) {
		uint8_t how = input_u8(model->input);
		struct bytes wire = {0};

		put(&wire, good->data, good->size);
		if (how < 100U) {
			wire.data[how % wire.size] ^= (uint8_t)(1U << input_u8(model->input) % 8U);
		} else if (how < 150U) {
			wire.size = how % wire.size;
		} else if (how < 200U) {
			wire.size = 0U;
			put_message(&wire, model->host->session, TYPE_PROBE, &model->sequence, 1U);
		}
		put_u8(&wire, 0xfeU);
		host_give(model->host, &wire);
	}
}

/* Whatever happens to it on the way, it runs once, and its answer comes. */
static void numbered(struct model *model)
{
	struct bytes body = {0};
	struct bytes wire = {0};
	uint32_t calls = host_functions.calls;
	uint32_t code = 0U;

	model->sequence++;
	put_u64(&body, 0x80008004U); /* tick */
	put_u32(&body, 0U);
	put_numbered_request(&wire, model->host->session, model->sequence, RPC_CALL_FUNC, &body);
	disturb_numbered(model, &wire);
	host_give(model->host, &wire);
	while (host_take(model->host)) {
		const uint8_t *reply = model->host->message.body.data;

		if (model->host->message.type == TYPE_NUMBERED && reply[0] == model->sequence) {
			code = get_u32(reply + 9);
		}
	}
	CHECK(code == RPC_RETURN || code == RPC_EXCEPTION);
	CHECK_EQ(host_functions.calls, calls + (code == RPC_RETURN ? 1U : 0U));
}

static void (*const steps[])(struct model *model) = {
	allocate,       allocate,      release,     copy_to,  copy_to, copy_from,
	copy_among,     call,          call,        fill,     restart, disturb,
	make_evaluator, run_evaluator, free_handle, numbered, abandon, ask_memory,
};

static void check_memory(struct model *model)
{
	for (uint32_t i = 0U; i < BLOCKS_MAX; i++) {
		const struct block *block = &model->blocks[i];

		if (block->data != 0U && block->size != 0U) {
			uint8_t now[SIZE_MAX_ASKED];

			host_read(model->host, block->data, now, block->size);
			CHECK_MEM(now, block->bytes, block->size);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct model model;
	struct input input = {data, data + size};

	memset(&model, 0, sizeof(model));
	model.host = fuzz_start();
	host_functions.log_size = 20U;
	model.input = &input;
	model.dialect = input_u8(&input) & 1U ? V7 : V8;
	model.random_fill = host_global(model.host, "tvm.contrib.random.random_fill");
	model.time_evaluator = host_global(model.host, "runtime.RPCTimeEvaluator");
	model.counting_evaluator = host_global(model.host, "minrpc.time_evaluator");
	model.counters = host_global(model.host, "minrpc.counters");
	model.memory = host_global(model.host, "minrpc.memory");
	while (input_left(&input) != 0U) {
		steps[input_u8(&input) % (sizeof(steps) / sizeof(steps[0]))](&model);
		(void)arena_check(&model.host->server.arena);
	}
	check_memory(&model);
	fuzz_finish(model.host);
	return 0;
}
