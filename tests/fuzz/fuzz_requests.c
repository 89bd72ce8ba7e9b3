/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Sequences of requests, made from the input, against a model of the device's memory: every request
 * that the model calls right succeeds, every other is an exception, and after each the device's
 * memory is the model's.
 */
#include <string.h>

#include <minrpc/object.h>

#include "check.h"
#include "functions.h"
#include "fuzz.h"

#define BLOCKS_MAX     12U
#define EVALUATORS_MAX 6U
#define MODULES_MAX    3U
#define CODE_MAX       400U
#define SIZE_MAX_ASKED 700U
/* Bytes of a message before its body: session header, length, code. */
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

/* Loaded code, with its content when it was loaded. */
struct module {
	uint64_t handle; /* 0: none */
	uint64_t block;
	uint32_t size;
	uint32_t count;
	char names[CODE_MAX]; /* a NUL behind each */
};

struct model {
	struct host *host;
	struct input *input;
	struct block blocks[BLOCKS_MAX];
	struct evaluator evaluators[EVALUATORS_MAX];
	struct module modules[MODULES_MAX];
	uint64_t freed; /* an address that is not live any more */
	enum dialect dialect;
	uint64_t random_fill;
	uint64_t threefry;
	uint64_t pattern_fill;
	uint64_t checksum;
	uint64_t layout;
	uint64_t code_alloc;
	uint64_t code_load;
	uint64_t get_function;
	uint64_t time_evaluator;
	uint64_t counting_evaluator;
	uint64_t counters;
	uint64_t memory;
	uint8_t sequence; /* of the last numbered request */
};

/* ------------------------------------------------------------- requests sent */

static struct block *pick_block(struct model *model)
{
	return &model->blocks[input_u8(model->input) % BLOCKS_MAX];
}

/* Mostly a block's address, else a number near it, or 0. */
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
	/* A longer copy without its own check is accepted in v0.7's sessions only. */
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

/* A function's output is read back; nothing else may have changed, which the end checks. */
static void take_over(struct model *model, const struct tensor *written)
{
	struct block *block = (struct block *)live_at(model, written->data);

	if (block != NULL && block->size != 0U) {
		uint64_t from = written->offset < block->size ? written->offset : block->size;
		uint8_t now[SIZE_MAX_ASKED];

		host_read(model->host, block->data, now, block->size);
		/* No bytes come before the tensor. */
		CHECK_MEM(now, block->bytes, from);
		memcpy(block->bytes, now, block->size);
	}
}

static void call(struct model *model)
{
	/*
	 * The functions by their places in fuzz.c: inc, add, mul, exp, tick, fail_text, leak,
	 * workspace, echo, array, talk.
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
	/* `ask` needs answers: see there. */
	answer =
		host_call(model->host, 0x80008000U + function + (function >= 11U ? 1U : 0U), &args);
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

/* Elements of a seed: of the types that have any, in any memory. */
static void seed(struct model *model)
{
	struct tensor tensor = pick_tensor(model);
	struct args args = {0};

	arg_tensor(&args, model->dialect, &tensor);
	arg(&args, ARG_INT, input_u64(model->input));
	if (host_call(model->host, model->threefry, &args)->code == RPC_RETURN) {
		take_over(model, &tensor);
	}
}

/* A pattern over bytes of a block, whose checksum is then the model's. */
static void fill_pattern(struct model *model)
{
	struct block *block = pick_block(model);
	struct tensor tensor = tensor_1d(block->data, 1U, 8U, 0);
	uint64_t size = pick_number(model) % SIZE_MAX_ASKED;
	uint64_t offset = model->dialect == V8 ? pick_number(model) : 0U;
	uint32_t length = input_u8(model->input) % 20U;
	uint8_t pattern[20] = {0};
	struct args args = {0};
	bool taken = block->data != 0U && fits(block, offset, size) && length != 0U &&
		     size % length == 0U;

	tensor.shape[0] = (int64_t)size;
	for (uint32_t i = 0U; i < length; i++) {
		pattern[i] = input_u8(model->input);
	}
	/*
	 * In v0.7's form, bytes that begin with their own size less 8 are v0.8's offset and fewer
	 * bytes: the device takes them so while it does not know the dialect. An allocation without
	 * a scope, which v0.7's clients make, lets it read v0.8's offset as v0.7's length of bytes.
	 */
	pattern[7] |= 1U;
	offset += offset == length + 8U ? 1U : 0U;
	tensor.offset = offset;
	taken = taken && fits(block, offset, size);
	arg_tensor(&args, model->dialect, &tensor);
	arg_bytes(&args, pattern, length);
	CHECK_EQ(host_call(model->host, model->pattern_fill, &args)->code,
		 taken ? RPC_RETURN : RPC_EXCEPTION);
	if (!taken) {
		return;
	}
	for (uint32_t i = 0U; i < size; i++) {
		block->bytes[offset + i] = pattern[i % length];
	}
	tensor.offset = 0U;
	tensor.shape[0] = block->size;
	arg_tensor(&args, model->dialect, &tensor);
	CHECK_EQ(get_u64(expect_returned(host_call(model->host, model->checksum, &args), ARG_INT)),
		 wire_crc32(block->bytes, block->size));
}

/* ---------------------------------------------------------------- layouts */

/* All of the configuration's memory, a part of it, the other memory, or anything. */
static uint64_t pick_place(struct model *model, uint64_t *size)
{
	uint64_t arena = (uintptr_t)model->host->config.arena;
	uint8_t how = input_u8(model->input);

	*size = input_u16(model->input) % (FUZZ_ARENA + 32U);
	if (how < 60U) {
		*size = FUZZ_ARENA;
		return arena;
	}
	if (how < 120U) {
		return arena;
	}
	if (how < 180U) {
		return arena + input_u16(model->input) % FUZZ_ARENA;
	}
	if (how < 240U) {
		return (uintptr_t)fuzz_more_memory + input_u8(model->input);
	}
	*size = pick_number(model);
	return input_u64(model->input);
}

/* In any case blocks keep their content, and the next request can be answered. */
static void lay_out(struct model *model)
{
	struct minrpc_arena *arena = &model->host->server.arena;
	struct args args = {0};
	const struct answer *answer;
	uint64_t code_size = 0U;
	uint64_t size;
	uint64_t place = pick_place(model, &size);

	arg(&args, ARG_HANDLE, place);
	arg(&args, ARG_INT, size);
	place = input_u8(model->input) & 1U ? pick_place(model, &code_size) : 0U;
	arg(&args, ARG_HANDLE, place);
	arg(&args, ARG_INT, code_size);
	answer = host_call(model->host, model->layout, &args);
	if (answer->code == RPC_RETURN) {
		if (get_u64(expect_returned(answer, ARG_INT)) == 1U) {
			CHECK(minrpc_arena_largest_free(arena) >= 512U);
			CHECK(arena->size <= size);
		}
	} else {
		CHECK(strstr(answer->text, "memory for") != NULL ||
		      strstr(answer->text, "overlap") != NULL);
	}
	if (model->host->server.code.size != 0U) {
		(void)arena_check(&model->host->server.code);
	}
}

/* ------------------------------------------------------------------- code */

/*
 * True if a whole registry is at `offset` of the block: a second implementation, on the sent bytes.
 * Its names are then the module's.
 */
static bool is_registry(struct module *module, const uint8_t *code, uint64_t offset)
{
	TVMFuncRegistry registry;
	uint64_t names;
	uint64_t functions;
	uint32_t first;
	uint32_t at;

	if (offset % sizeof(void *) != 0U || offset + sizeof(registry) > module->size) {
		return false;
	}
	memcpy(&registry, code + offset, sizeof(registry));
	names = (uintptr_t)registry.names - module->block;
	functions = (uintptr_t)registry.funcs - module->block;
	if (names + 2U > module->size || names > module->size || functions > module->size) {
		return false;
	}
	module->count = code[names];
	first = (uint32_t)names + 1U;
	if (code[first] < (uint8_t)' ') {
		module->count += 256U * code[first];
		first++;
	}
	at = first;
	for (uint32_t i = 0U; i < module->count; i++) {
		while (at < module->size && code[at] != 0U) {
			at++;
		}
		if (at++ >= module->size) {
			return false;
		}
	}
	memcpy(module->names, code + first, at - first);
	return functions + module->count * sizeof(void *) <= module->size;
}

/* Mostly a registry as a linker makes it, else one with mistakes. */
static uint64_t make_code(struct model *model, const struct module *module, uint8_t *code)
{
	uint64_t offset = input_u8(model->input) % 8U * 8U;
	uint64_t names = 64U + input_u8(model->input);
	uint64_t functions = input_u8(model->input);
	TVMFuncRegistry registry;

	for (uint32_t i = 0U; i < module->size; i++) {
		code[i] = input_u8(model->input) % 3U == 0U ? 0U : (uint8_t)('a' + i % 4U);
	}
	if (names + 1U < module->size) {
		code[names] = input_u8(model->input) % 12U;
		code[names + 1U] = 0U;
	}
	if (input_u8(model->input) > 230U) {
		names = pick_number(model);
		functions = pick_number(model);
		offset = pick_number(model);
	}
	registry.names = (const char *)(uintptr_t)(module->block + names);
	registry.funcs = (const TVMBackendPackedCFunc *)(uintptr_t)(module->block + functions);
	if (offset <= module->size && sizeof(registry) <= module->size - offset) {
		memcpy(code + offset, &registry, sizeof(registry));
	}
	return offset;
}

static int loaded_function(TVMValue *args, int *codes, int count, TVMValue *value, int *code,
			   void *resource)
{
	(void)args;
	(void)codes;
	(void)count;
	(void)resource;
	value->v_int64 = 77;
	*code = kTVMArgInt;
	return 0;
}

static void load_code(struct model *model)
{
	struct module *module = &model->modules[input_u8(model->input) % MODULES_MAX];
	struct args args = {0};
	uint8_t code[CODE_MAX];
	const struct answer *answer;
	uint64_t offset;
	bool good;

	if (module->handle != 0U) {
		return;
	}
	module->size = 1U + input_u16(model->input) % (CODE_MAX - 1U);
	arg(&args, ARG_INT, module->size);
	answer = host_call(model->host, model->code_alloc, &args);
	if (answer->code == RPC_EXCEPTION) {
		CHECK_CONTAINS(answer->text, "memory");
		return;
	}
	module->block = get_u64(expect_returned(answer, ARG_HANDLE));
	offset = make_code(model, module, code);
	host_write(model->host, module->block, code, module->size);
	good = is_registry(module, code, offset);
	arg(&args, ARG_HANDLE, module->block);
	arg(&args, ARG_INT, offset);
	answer = host_call(model->host, model->code_load, &args);
	if (answer->code == RPC_EXCEPTION) {
		CHECK_CONTAINS(answer->text, good ? "memory" : "another address");
		host_free_data(model->host, module->block);
		return;
	}
	CHECK(good);
	module->handle = get_u64(expect_returned(answer, ARG_MODULE));
	/* The block's bytes there are no code; the table that is looked up is the object's. */
	for (uint32_t i = 0U; i < module->count; i++) {
		((TVMBackendPackedCFunc *)(uintptr_t)
			 model->host->server.objects->module.packed->funcs)[i] = loaded_function;
	}
}

/* The first function of that name. */
static uint32_t index_of(const struct module *module, const char *name)
{
	const char *at = module->names;
	uint32_t index = 0U;

	while (strcmp(at, name) != 0) {
		at += strlen(at) + 1U;
		index++;
	}
	return index;
}

/* Its block is overwritten; the module's functions are found and called all the same. */
static void use_code(struct model *model)
{
	struct module *module = &model->modules[input_u8(model->input) % MODULES_MAX];
	const char *name = module->names;
	uint8_t code[CODE_MAX];
	struct args args = {0};

	if (module->handle == 0U) {
		return;
	}
	memset(code, input_u8(model->input), sizeof(code));
	host_write(model->host, module->block, code, module->size);
	for (uint32_t i = 0U; i < module->count; i++, name += strlen(name) + 1U) {
		uint64_t handle;

		arg(&args, ARG_MODULE, module->handle);
		arg_string(&args, name);
		arg(&args, ARG_INT, 0U);
		handle = get_u64(expect_returned(host_call(model->host, model->get_function, &args),
						 ARG_FUNCTION));
		CHECK_EQ(handle, module->handle + 1U + index_of(module, name));
		CHECK_EQ(get_u64(expect_returned(host_call(model->host, handle, &args), ARG_INT)),
			 77U);
	}
	CHECK_EQ(host_call(model->host, module->handle + 1U + module->count, &args)->code,
		 RPC_EXCEPTION);
	if (input_u8(model->input) & 1U) {
		arg(&args, ARG_HANDLE, module->handle);
		arg(&args, ARG_INT, ARG_MODULE);
		expect_void(host_syscall(model->host, RPC_FREE_HANDLE, &args));
		module->handle = 0U;
	}
}

/* -------------------------------------------------------------- evaluators */

static void make_evaluator(struct model *model)
{
	static const char *const names[] = {"inc",     "add",  "tick", "fail_text", "leak",
					    "nothing", "talk", "",     "echo"};
	/* The last argument of a counting evaluator. */
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
		"own0,own22,interrupts_masked",
		"own22,own23",
		"narrow,full,scarce,own0,own1,own2,own3,own4,own5,own6,own7,own8,own9,own10,own11,"
		"own12,own13,own14,own15,own16,own17,own18,own19,own20,own21,own22,arena_bytes,"
		"stack_bytes,heap_bytes,link_received,link_sent",
	};
	static const uint64_t limits[] = {0x08000000U, 0x08000001U, 0x07ffffffU, 0x05555556U};
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

		/* A repeat at its limit. */
		number =
			i == 1U && number >= 236U && number < 240U ? limits[number - 236U] : number;
		repeat = i == 1U ? number : repeat;
		arg(&args, input_u8(model->input) == 255U ? ARG_BOOL : ARG_INT, number);
	}
	arg_string(&args, counting ? columns[input_u8(model->input) % 14U] : "");
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
	memset(model->modules, 0, sizeof(model->modules));
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
	/* Not any number: a function that asks would wait for its answer. */
	put_call(&wire, model->host->session,
		 evaluator->handle != 0U ? evaluator->handle : 0xc0000000U + pick_number(model));
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

/* The counters present, and the memory used; with peaks reset or not. */
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

/* An incomplete frame between two requests. */
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

/* It runs once, with any damage on the way, and its answer comes. */
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

/* An answer in the receive buffer is kept, with any bytes that arrive before it is asked for. */
static void numbered_echo(struct model *model)
{
	struct bytes body = {0};
	struct bytes wire = {0};
	struct args args = {0};
	uint8_t text[400];
	uint32_t size = input_u16(model->input) % sizeof(text);
	uint8_t value = input_u8(model->input);

	for (uint32_t i = 0U; i < size; i++) {
		text[i] = (uint8_t)(value + i);
	}
	model->sequence++;
	put_u64(&body, 0x80008008U); /* echo */
	arg_bytes(&args, text, size);
	put_args(&body, &args);
	put_numbered_request(&wire, model->host->session, model->sequence, RPC_CALL_FUNC, &body);
	host_give(model->host, &wire);
	for (uint32_t times = 0U; times < 2U; times++) {
		const struct bytes *reply = &model->host->message.body;

		while (host_take(model->host)) {
		}
		CHECK_EQ(model->host->message.type, TYPE_NUMBERED);
		CHECK_EQ(open_numbered(&model->host->message), model->sequence);
		if (get_u32(reply->data + 8) == RPC_RETURN) {
			CHECK_MEM(reply->data + reply->size - size, text, size);
		}
		disturb(model);
		put_message(&wire, model->host->session, TYPE_PROBE, &model->sequence, 1U);
		host_give(model->host, &wire);
	}
	while (host_take(model->host)) {
	}
}

/* --------------------------------------------------------------- questions */

/* A running function that has asked, and the end that the client's last message is to bring. */
struct question {
	struct model *model;
	enum {
		ASKED,
		ANSWERED,
		ENDED,    /* by an empty answer: the call is an exception */
		LEFT,     /* the session ended: the call has no reply */
		RESTARTED /* the same, and the next session has begun */
	} end;
	uint8_t value; /* the answer's first byte, or the new session's nonce */
	bool numbered; /* all messages of the call */
};

static struct question question;

static void put_asked(struct model *model, struct bytes *wire, uint32_t code, struct bytes *body)
{
	if (question.numbered) {
		put_numbered_request(wire, model->host->session, ++model->sequence, code, body);
	} else {
		put_request(wire, model->host->session, code, body);
	}
}

/* A message that the waiting function outlasts: refused, damaged, or of a type without a meaning.
 */
static void put_other(struct model *model, struct bytes *wire, uint8_t how)
{
	struct bytes body = {0};
	uint32_t size = input_u16(model->input) % 900U;

	if (how % 4U == 0U && question.numbered) { /* the last reply, once more */
		put_message(wire, model->host->session, TYPE_PROBE, &model->sequence, 1U);
		return;
	}
	if (how % 4U == 0U) {
		put_call(wire, model->host->session, pick_number(model));
		return;
	}
	put_counting(&body, how, size);
	if (how % 4U == 1U) {
		/* A longer numbered message might not fit, and would be asked for again. */
		if (question.numbered) {
			body.size %= 100U;
		}
		put_asked(model, wire, input_u8(model->input) % 64U, &body);
	} else {
		put_message(wire, model->host->session, how % 4U == 2U ? TYPE_LOG : TYPE_NORMAL,
			    body.data, body.size);
		wire->data[wire->size - 1U] ^= 0x40U;
		wire->size -= how & 8U ? wire->size / 2U : 0U;
		put_u8(wire, 0xfeU);
	}
	bytes_free(&body);
}

static void put_end(struct model *model, struct bytes *wire, uint8_t how)
{
	struct bytes body = {0};

	question.value = (uint8_t)(1U + input_u8(model->input) % 255U);
	if (how < 180U) {
		question.end = ANSWERED;
		put_counting(&body, question.value, 1U + input_u16(model->input) % 100U);
		put_asked(model, wire, RPC_ANSWER, &body);
	} else if (how < 210U) {
		question.end = ENDED;
		put_asked(model, wire, RPC_ANSWER, &body);
	} else if (how < 230U) {
		question.end = LEFT;
		put_message(wire, model->host->session, TYPE_TERMINATE, NULL, 0U);
	} else {
		question.end = RESTARTED;
		put_message(wire, question.value, TYPE_INIT, (const uint8_t[]){1}, 1U);
	}
}

/* The RPC code of the message that was taken; a numbered message is opened. */
static uint32_t code_taken(struct model *model)
{
	struct message *message = &model->host->message;

	if (message->type == TYPE_NUMBERED) {
		CHECK_EQ(open_numbered(message), model->sequence);
	}
	return get_u32(message->body.data + 8U);
}

/* Bytes that the port receives while a function waits; the last of an input is an answer. */
static void meanwhile(struct host *host, uint32_t turn, struct bytes *wire)
{
	struct model *model = question.model;
	uint8_t how = input_left(model->input) == 0U ? 100U : input_u8(model->input);

	(void)turn;
	CHECK_EQ(question.end, ASKED);
	while (host_take(host)) {
		if (host->message.type != TYPE_LOG && host->message.type != TYPE_RESEND) {
			uint32_t code = code_taken(model);

			CHECK(code == RPC_ASK || code == RPC_EXCEPTION);
		}
	}
	if (how < 100U) {
		put_other(model, wire, how);
	} else {
		put_end(model, wire, how);
	}
}

/* The last message of the call: its reply, or the answer to a new session's start. */
static bool last_message(struct model *model)
{
	bool came = false;

	while (host_take(model->host)) {
		came = came || model->host->message.type != TYPE_LOG;
	}
	return came;
}

/* The function goes on with the client's answer, or ends as the client says. */
static void ask(struct model *model, uint32_t tensors, bool is_numbered)
{
	uint32_t calls = host_functions.calls;
	const struct message *message = &model->host->message;
	struct bytes body = {0};
	struct bytes wire = {0};
	struct args args = {0};

	put_u64(&body, 0x8000800bU);
	/* A numbered message that does not fit is asked for again. */
	arg_bytes(&args, (const uint8_t[400]){0},
		  input_u16(model->input) % (is_numbered ? 200U : 400U));
	for (uint32_t i = 0U; i < tensors; i++) {
		struct tensor tensor = pick_tensor(model);

		arg_tensor(&args, model->dialect, &tensor);
	}
	put_args(&body, &args);
	question = (struct question){.model = model, .numbered = is_numbered};
	put_asked(model, &wire, RPC_CALL_FUNC, &body);
	model->host->waiting = meanwhile;
	host_give(model->host, &wire);
	CHECK_EQ(last_message(model), question.end != LEFT);
	CHECK_EQ(host_functions.calls, calls + (question.end == ANSWERED ? 1U : 0U));
	switch (question.end) {
	case ANSWERED:
		CHECK_EQ(code_taken(model), RPC_RETURN);
		CHECK_EQ(get_u64(message->body.data + message->body.size - 8U), question.value);
		break;
	case RESTARTED:
		CHECK_EQ(message->type, TYPE_REPLY);
		CHECK_EQ(message->session & 0xffU, question.value);
		model->host->session = message->session;
		forget(model);
		break;
	case LEFT:
		restart(model);
		break;
	default: /* ended, a wrong tensor, too many calls, or no room for an answer */
		CHECK_EQ(code_taken(model), RPC_EXCEPTION);
		break;
	}
}

static void (*const steps[])(struct model *model) = {
	allocate,       allocate,      release,     copy_to,   copy_to,  copy_from,
	copy_among,     call,          call,        fill,      restart,  disturb,
	make_evaluator, run_evaluator, free_handle, numbered,  abandon,  ask_memory,
	seed,           fill_pattern,  lay_out,     load_code, use_code, numbered_echo,
};

/* Questions came last: bytes of inputs that are kept have the meaning that they had. */
#define STEP_ASK 240U

static void step(struct model *model, uint8_t which)
{
	if (which >= STEP_ASK) {
		ask(model, which % 4U, which % 8U >= 4U);
	} else {
		steps[which % (sizeof(steps) / sizeof(steps[0]))](model);
	}
}

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
	fuzz_let_code_run();
	model.host = fuzz_start();
	host_functions.log_size = 20U;
	model.input = &input;
	model.dialect = input_u8(&input) & 1U ? V7 : V8;
	model.random_fill = host_global(model.host, "tvm.contrib.random.random_fill");
	model.threefry = host_global(model.host, "minrpc.threefry");
	model.pattern_fill = host_global(model.host, "minrpc.fill");
	model.checksum = host_global(model.host, "minrpc.checksum");
	model.layout = host_global(model.host, "minrpc.layout");
	model.code_alloc = host_global(model.host, "minrpc.code_alloc");
	model.code_load = host_global(model.host, "minrpc.code_load");
	model.get_function = host_global(model.host, "tvm.rpc.server.ModuleGetFunction");
	model.time_evaluator = host_global(model.host, "runtime.RPCTimeEvaluator");
	model.counting_evaluator = host_global(model.host, "minrpc.time_evaluator");
	model.counters = host_global(model.host, "minrpc.counters");
	model.memory = host_global(model.host, "minrpc.memory");
	while (input_left(&input) != 0U) {
		step(&model, input_u8(&input));
		(void)arena_check(&model.host->server.arena);
	}
	check_memory(&model);
	fuzz_finish(model.host);
	return 0;
}
