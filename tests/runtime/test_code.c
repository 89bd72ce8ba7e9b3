/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Code that arrives over the link: a module of the session. The loaded block is a registry as a
 * linker lays it out, whose functions lie in the test.
 */
#include <stddef.h>

#include "check.h"
#include "functions.h"
#include "host.h"

static uint32_t readied;
static int ready_result;

static int code_ready(void *context, void *block, uint32_t size)
{
	(void)context;
	(void)block;
	readied = size;
	return ready_result;
}

static struct host *start(void)
{
	struct host *host = host_start();

	readied = 0U;
	ready_result = 0;
	host->platform.code_ready = code_ready;
	return host;
}

static int answer_42(TVMValue *args, int *codes, int count, TVMValue *value, int *code,
		     void *resource)
{
	(void)args;
	(void)codes;
	(void)count;
	value->v_int64 = resource == NULL ? 42 : 0;
	*code = kTVMArgInt;
	return 0;
}

/* The block that the client uploads. */
struct image {
	uint8_t before[16];
	TVMFuncRegistry registry;
	TVMBackendPackedCFunc functions[2];
	char names[16];
};

static struct image linked_at(uint64_t address)
{
	struct image image = {
		.registry = {.names = (const char *)(uintptr_t)address +
				      offsetof(struct image, names),
			     .funcs = (const TVMBackendPackedCFunc *)((uintptr_t)address +
								      offsetof(struct image,
									       functions))},
		.functions = {answer_42, host_registry.funcs[0]},
		.names = "\002\000answer\0tick",
	};

	return image;
}

static const struct answer *code_alloc(struct host *host, uint64_t size)
{
	struct args args = {0};

	arg(&args, ARG_INT, size);
	return host_call(host, host_global(host, "minrpc.code_alloc"), &args);
}

static const struct answer *code_load(struct host *host, uint64_t block, uint64_t offset)
{
	struct args args = {0};

	arg(&args, ARG_HANDLE, block);
	arg(&args, ARG_INT, offset);
	return host_call(host, host_global(host, "minrpc.code_load"), &args);
}

static uint64_t upload(struct host *host)
{
	uint64_t block =
		get_u64(expect_returned(code_alloc(host, sizeof(struct image)), ARG_HANDLE));
	struct image image = linked_at(block);

	CHECK_EQ(block % 64U, 0U);
	host_write(host, block, &image, sizeof(image));
	return block;
}

static uint64_t load(struct host *host, uint64_t block)
{
	const struct answer *answer = code_load(host, block, offsetof(struct image, registry));

	return get_u64(expect_returned(answer, ARG_MODULE));
}

static const struct answer *get_function(struct host *host, uint64_t module, const char *name)
{
	struct args args = {0};

	arg(&args, ARG_MODULE, module);
	arg_string(&args, name);
	arg(&args, ARG_INT, 0U);
	return host_call(host, host_global(host, "tvm.rpc.server.ModuleGetFunction"), &args);
}

static uint64_t function(struct host *host, uint64_t module, const char *name)
{
	return get_u64(expect_returned(get_function(host, module, name), ARG_FUNCTION));
}

static const struct answer *free_handle(struct host *host, uint64_t handle, uint32_t type)
{
	struct args args = {0};

	arg(&args, ARG_HANDLE, handle);
	arg(&args, ARG_INT, type);
	return host_syscall(host, RPC_FREE_HANDLE, &args);
}

static const struct answer *call(struct host *host, uint64_t handle)
{
	struct args none = {0};

	return host_call(host, handle, &none);
}

static const struct answer *make_evaluator(struct host *host, uint64_t module, const char *name)
{
	struct args args = {0};

	arg(&args, ARG_MODULE, module);
	arg_string(&args, name);
	for (int i = 0; i < 5; i++) {
		arg(&args, ARG_INT, 1U);
	}
	arg_string(&args, "");
	return host_call(host, host_global(host, "runtime.RPCTimeEvaluator"), &args);
}

TEST(a_loaded_module_works_like_the_system_library)
{
	struct host *host = start();
	uint64_t module = load(host, upload(host));
	uint64_t evaluator;

	CHECK_EQ(readied, sizeof(struct image));
	CHECK_EQ(get_u64(expect_returned(call(host, function(host, module, "answer")), ARG_INT)),
		 42U);
	(void)expect_returned(call(host, function(host, module, "tick")), ARG_NULL);
	CHECK_EQ(host_functions.calls, 1U);
	(void)expect_returned(get_function(host, module, "nothing"), ARG_NULL);
	evaluator = get_u64(expect_returned(make_evaluator(host, module, "tick"), ARG_FUNCTION));
	(void)expect_returned(call(host, evaluator), ARG_BYTES);
	/* The module is no part of the system library. */
	CHECK_EQ(host_global(host, ":answer"), 0U);
	expect_void(free_handle(host, function(host, module, "answer"), ARG_FUNCTION));
	expect_void(free_handle(host, evaluator, ARG_FUNCTION));
	expect_void(free_handle(host, module, ARG_MODULE));
	CHECK_EQ(arena_check(&host->server.arena), 0U);
	host_stop(host);
}

TEST(what_is_freed_takes_its_functions_and_evaluators_along)
{
	struct host *host = start();
	uint64_t block = upload(host);
	uint64_t module = load(host, block);
	uint64_t answer = function(host, module, "answer");
	uint64_t evaluator =
		get_u64(expect_returned(make_evaluator(host, module, "tick"), ARG_FUNCTION));
	uint64_t other = load(host, upload(host));

	expect_void(free_handle(host, module, ARG_MODULE));
	expect_exception(call(host, answer), "no live function");
	expect_exception(call(host, evaluator), "no live function");
	expect_exception(free_handle(host, answer, ARG_FUNCTION), "no live function");
	expect_exception(free_handle(host, module, ARG_MODULE), "no live module");
	expect_exception(get_function(host, module, "answer"), "no live module");
	expect_exception(make_evaluator(host, module, "answer"), "no live module");
	expect_exception(host_try_free(host, block), "no live tensor");
	CHECK_EQ(get_u64(expect_returned(call(host, function(host, other, "answer")), ARG_INT)),
		 42U);
	host_still_serves(host);
	host_stop(host);
}

TEST(the_session_end_frees_it)
{
	struct host *host = start();
	uint64_t answer = function(host, load(host, upload(host)), "answer");

	(void)upload(host);
	host_open(host, 0x24U);
	CHECK_EQ(arena_check(&host->server.arena), 0U);
	expect_exception(call(host, answer), "no live function");
	host_stop(host);
}

TEST(its_memory_can_be_read_and_written_at_any_offset)
{
	struct host *host = start();
	uint64_t block = upload(host);
	struct tensor tensor = tensor_1d(block, 0U, 8U, 4);
	struct bytes body = {0};
	struct args args = {0};

	(void)load(host, block);
	tensor.offset = 4U;
	put_copy(&body, V8, &tensor, 4U);
	put_fill(&body, 0x5aU, 4U);
	expect_void(host_request(host, RPC_COPY_TO, &body));
	put_copy(&body, V8, &tensor, 4U);
	CHECK_MEM(host_request(host, RPC_COPY_FROM, &body)->body, "ZZZZ", 4U);
	arg_tensor(&args, V8, &tensor);
	(void)expect_returned(host_call(host, host_function(host, "tick"), &args), ARG_NULL);
	host_stop(host);
}

TEST(a_block_that_is_not_loaded_is_freed_like_data)
{
	struct host *host = start();
	uint64_t block = upload(host);

	host_free_data(host, block);
	expect_exception(host_try_free(host, block), "no live tensor");
	expect_exception(code_load(host, block, 16U), "no live handle");
	/* A loaded function is freed with its module only. */
	block = upload(host);
	(void)load(host, block);
	expect_exception(host_try_free(host, block), "no live tensor");
	expect_exception(code_load(host, block, 16U), "no live handle");
	host_stop(host);
}

TEST(what_is_no_registry_is_refused)
{
	static const uint64_t offsets[] = {
		1U,         8U,         0U,         sizeof(struct image), sizeof(struct image) - 8U,
		UINT32_MAX, 1ULL << 32, UINT64_MAX, (uint64_t)1 << 63};
	struct host *host = start();
	uint64_t block = upload(host);
	struct image image = linked_at(block + 4096U);
	uint64_t data = host_alloc(host, 64U);

	for (size_t i = 0U; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		expect_exception(code_load(host, block, offsets[i]), "another address");
	}
	expect_exception(code_load(host, data, 0U), "no live handle");
	host_write(host, block, &image, sizeof(image));
	expect_exception(code_load(host, block, offsetof(struct image, registry)),
			 "another address");
	expect_exception(
		code_load(host, get_u64(expect_returned(code_alloc(host, 2U), ARG_HANDLE)), 0U),
		"another address");
	host_stop(host);
}

TEST(no_room_and_no_permission)
{
	struct host *host = start();
	uint64_t block = upload(host);

	expect_exception(code_alloc(host, 1U << 30), "asked for 1073741824 bytes");
	expect_exception(code_alloc(host, UINT64_MAX), "asked for");
	ready_result = -1;
	expect_exception(code_load(host, block, offsetof(struct image, registry)), "executable");
	ready_result = 0;
	(void)load(host, block);
	/* An arena that is full has no room for the module; the block stays the client's. */
	block = upload(host);
	while (host_try_alloc(host, 1U, 1U)->code == RPC_RETURN) {
	}
	expect_exception(code_load(host, block, offsetof(struct image, registry)), "memory");
	host_free_data(host, block);
	host_stop(host);
}

TEST(a_port_may_have_memory_of_its_own_for_code)
{
	static _Alignas(64) uint8_t memory[4096];
	struct host *host = start();
	uint64_t block;
	uint64_t module;

	host->config.code = memory;
	host->config.code_size = sizeof(memory);
	host_reboot(host);
	CHECK(host_take(host));
	host_open(host, 0x23U);
	block = upload(host);
	CHECK(block - (uintptr_t)memory < sizeof(memory));
	module = load(host, block);
	CHECK_EQ(get_u64(expect_returned(call(host, function(host, module, "answer")), ARG_INT)),
		 42U);
	CHECK_EQ(arena_check(&host->server.code), 1U);
	expect_exception(code_alloc(host, 4096U), "of 4096");
	expect_void(free_handle(host, module, ARG_MODULE));
	CHECK_EQ(arena_check(&host->server.code), 0U);
	(void)load(host, upload(host));
	host_free_data(host, upload(host));
	host_open(host, 0x24U);
	CHECK_EQ(arena_check(&host->server.code), 0U);
	CHECK_EQ(arena_check(&host->server.arena), 0U);
	host_stop(host);
}

/* Handles go round after 2^18 objects; a handle in use is left out. */
TEST(handles_of_what_is_gone_are_not_given_out_again_soon)
{
	struct host *host = start();
	uint64_t kept =
		get_u64(expect_returned(make_evaluator(host, 0x8000U, "tick"), ARG_FUNCTION));
	uint64_t first =
		get_u64(expect_returned(make_evaluator(host, 0x8000U, "tick"), ARG_FUNCTION));
	uint64_t next;

	expect_void(free_handle(host, first, ARG_FUNCTION));
	next = get_u64(expect_returned(make_evaluator(host, 0x8000U, "tick"), ARG_FUNCTION));
	CHECK(next != first && next != kept);
	expect_void(free_handle(host, next, ARG_FUNCTION));
	host->server.object_serial = (uint32_t)(kept - 1U) & 0x3fffffffU;
	next = get_u64(expect_returned(make_evaluator(host, 0x8000U, "tick"), ARG_FUNCTION));
	CHECK_EQ(next, first);
	host->server.object_serial = 0xfffff000U;
	for (int i = 0; i < 3; i++) {
		next = get_u64(
			expect_returned(make_evaluator(host, 0x8000U, "tick"), ARG_FUNCTION));
		CHECK(next >= 0xc0000000U);
		(void)expect_returned(call(host, next), ARG_BYTES);
	}
	host_stop(host);
}

TEST(functions_get_their_resource)
{
	struct host *host = start();
	uint64_t resource = host_function(host, "resource");

	CHECK_EQ(get_u64(expect_returned(call(host, resource), ARG_INT)), 1U);
	host_stop(host);
}

/* Code loaded among the arrays is given back, also when code has had memory of its own since. */
TEST(code_from_before_a_layout_is_given_back)
{
	struct host *host = start();
	uint64_t module = load(host, upload(host));
	uint64_t at = (uintptr_t)host->config.arena;
	struct args args = {0};

	arg(&args, ARG_HANDLE, at);
	arg(&args, ARG_INT, 16384U);
	arg(&args, ARG_HANDLE, at + 16384U);
	arg(&args, ARG_INT, 16384U);
	CHECK_EQ(get_u64(expect_returned(host_call(host, host_global(host, "minrpc.layout"), &args),
					 ARG_INT)),
		 1U);
	expect_void(free_handle(host, load(host, upload(host)), ARG_MODULE));
	CHECK_EQ(arena_check(&host->server.code), 0U);
	CHECK_EQ(get_u64(expect_returned(call(host, function(host, module, "answer")), ARG_INT)),
		 42U);
	expect_void(free_handle(host, module, ARG_MODULE));
	CHECK_EQ(arena_check(&host->server.arena), 0U);
	CHECK_EQ(host->server.arena.used, 0U);
	host_stop(host);
}

/* An object is freed by the handle and the type that it was given out with, and by no other. */
TEST(nothing_is_freed_by_a_wrong_handle)
{
	struct host *host = start();
	uint64_t module = load(host, upload(host));
	uint64_t evaluator =
		get_u64(expect_returned(make_evaluator(host, 0x8000U, "tick"), ARG_FUNCTION));
	uint32_t used = host->server.arena.used;

	expect_exception(free_handle(host, module + 1U, ARG_MODULE), "no live module");
	expect_exception(free_handle(host, module, ARG_FUNCTION), "no live function");
	expect_exception(free_handle(host, module + 3U, ARG_FUNCTION), "no live function");
	expect_exception(free_handle(host, evaluator - 1U, ARG_FUNCTION), "no live function");
	expect_exception(free_handle(host, evaluator + 1U, ARG_FUNCTION), "no live function");
	expect_exception(free_handle(host, evaluator, ARG_MODULE), "no live module");
	expect_exception(free_handle(host, evaluator - 1U, ARG_MODULE), "no live module");
	expect_exception(free_handle(host, module, ARG_NDARRAY), "no live tensor");
	expect_exception(free_handle(host, module, 3U), "bad type code 3");
	/* A function is freed with its module. */
	expect_void(free_handle(host, module + 1U, ARG_FUNCTION));
	CHECK_EQ(host->server.arena.used, used);
	(void)expect_returned(call(host, evaluator), ARG_BYTES);
	(void)expect_returned(call(host, module + 1U), ARG_INT);
	host_stop(host);
}

/* Without functions a registry has a count, in either form. */
TEST(a_registry_without_functions)
{
	static const char *const names[] = {"\000\000", "\000A"};

	for (size_t i = 0U; i < 2U; i++) {
		struct host *host = start();
		uint64_t block = upload(host);
		struct image image = linked_at(block);
		uint64_t used = host_alloc(host, 8192U);
		uint64_t module;

		/* Memory in which a count would go on. */
		memset((void *)(uintptr_t)used, 1, 8192U);
		host_free_data(host, used);
		image.registry.funcs = (const TVMBackendPackedCFunc *)(uintptr_t)block;
		memcpy(image.names, names[i], 2U);
		image.registry.names = (const char *)(uintptr_t)block + sizeof(image) - 2U;
		memcpy((char *)&image + sizeof(image) - 2U, names[i], 2U);
		host_write(host, block, &image, sizeof(image));
		module = load(host, block);
		(void)expect_returned(get_function(host, module, "answer"), ARG_NULL);
		(void)expect_returned(get_function(host, module, ""), ARG_NULL);
		expect_exception(call(host, module + 1U), "no live function");
		host_still_serves(host);
		host_stop(host);
	}
}

/* In the form of TVM up to v0.8, the count is one byte. */
TEST(a_registry_whose_count_is_a_byte)
{
	struct host *host = start();
	uint64_t block = upload(host);
	struct image image = linked_at(block);
	uint64_t module;

	memcpy(image.names, "\002answer\0tick", 13U);
	host_write(host, block, &image, sizeof(image));
	module = load(host, block);
	CHECK_EQ(get_u64(expect_returned(call(host, function(host, module, "answer")), ARG_INT)),
		 42U);
	(void)expect_returned(call(host, function(host, module, "tick")), ARG_NULL);
	expect_exception(call(host, module + 3U), "no live function");
	host_stop(host);
}

/* A registry that ends beyond the block, by a byte or by far, is refused. */
TEST(a_registry_lies_in_its_block_as_a_whole)
{
	struct host *host = start();
	uint64_t block = upload(host);
	const struct image good = linked_at(block);
	const uint64_t end = block + sizeof(good);

	for (int i = 0; i < 15; i++) {
		struct image image = good;
		char *last = image.names + sizeof(image.names);
		uintptr_t names = 0U;
		uintptr_t functions = 0U;

		switch (i) {
		case 0: /* the last name has no NUL */
			memset(image.names + 9, 'x', sizeof(image.names) - 9U);
			break;
		case 1: /* nor has any */
			memset(image.names + 2, 'x', sizeof(image.names) - 2U);
			break;
		case 2: /* more names than there are */
			image.names[0] = 6;
			break;
		case 3:
			image.names[0] = 5;
			image.names[1] = 1;
			break;
		case 4: /* the count's second byte is outside */
			names = (uintptr_t)end - 1U;
			break;
		case 5:
			names = (uintptr_t)end;
			break;
		case 6:
			names = (uintptr_t)block - 1U;
			break;
		case 7:
			names = 8U;
			break;
		case 8:
			names = UINTPTR_MAX;
			break;
		case 9: /* half of the last address is outside */
			functions = (uintptr_t)end - 3U * sizeof(void *) / 2U;
			break;
		case 10:
			functions = (uintptr_t)end - sizeof(void *);
			break;
		case 11:
			functions = (uintptr_t)end;
			break;
		case 12:
			functions = (uintptr_t)block - sizeof(void *);
			break;
		case 13:
			functions = 8U;
			break;
		default:
			functions = UINTPTR_MAX & ~(uintptr_t)7U;
			break;
		}
		last[-1] = i < 2 ? 'x' : '\0';
		image.registry.names = names != 0U ? (const char *)names : good.registry.names;
		image.registry.funcs = functions != 0U ? (const TVMBackendPackedCFunc *)functions
						       : good.registry.funcs;
		host_write(host, block, &image, sizeof(image));
		expect_exception(code_load(host, block, offsetof(struct image, registry)),
				 "another address");
		CHECK_EQ(readied, 0U);
	}
	host_write(host, block, &good, sizeof(good));
	CHECK_EQ(get_u64(expect_returned(call(host, function(host, load(host, block), "answer")),
					 ARG_INT)),
		 42U);
	host_still_serves(host);
	host_stop(host);
}

/* An object has 4095 handles for functions: with more, the next object would be meant. */
TEST(a_registry_has_as_many_functions_as_there_are_handles)
{
	enum {
		MOST = 4095,
	};
	static struct {
		TVMFuncRegistry registry;
		TVMBackendPackedCFunc functions[MOST + 1];
		char names[2U + 2U * (MOST + 1U)];
	} image;

	for (uint32_t count = MOST; count <= MOST + 1U; count++) {
		struct host *host = host_boot((struct host_sizes){8192U, 256U, 1U << 17});
		uint64_t block;

		CHECK(host_take(host));
		host_open(host, 0x23U);
		block = get_u64(expect_returned(code_alloc(host, sizeof(image)), ARG_HANDLE));
		image.registry.names =
			(const char *)(uintptr_t)block + ((char *)image.names - (char *)&image);
		image.registry.funcs =
			(const TVMBackendPackedCFunc *)((uintptr_t)block + sizeof(TVMFuncRegistry));
		for (uint32_t i = 0U; i < count; i++) {
			image.functions[i] = i == count - 1U ? answer_42 : host_registry.funcs[0];
			memcpy(image.names + 2U + 2U * i, i == count - 1U ? "b" : "a", 2U);
		}
		image.names[0] = (char)(count & 0xffU);
		image.names[1] = (char)(count >> 8);
		memcpy((void *)(uintptr_t)block, &image, sizeof(image));
		if (count > MOST) {
			expect_exception(code_load(host, block, 0U), "another address");
		} else {
			uint64_t module =
				get_u64(expect_returned(code_load(host, block, 0U), ARG_MODULE));
			uint64_t last = function(host, module, "b");

			CHECK_EQ(last, module + MOST);
			CHECK_EQ(get_u64(expect_returned(call(host, last), ARG_INT)), 42U);
		}
		host_stop(host);
	}
}

/*
 * Once a module is there the block's table is no longer read: overwritten by a copy, or by a
 * function, it changes neither look-ups nor calls nor the names in texts.
 */
TEST(what_overwrites_a_loaded_table_changes_nothing)
{
	struct host *host = start();
	uint64_t block = upload(host);
	uint64_t module = load(host, block);
	uint64_t answer = function(host, module, "answer");
	uint64_t evaluator =
		get_u64(expect_returned(make_evaluator(host, module, "tick"), ARG_FUNCTION));
	uint8_t bytes[sizeof(struct image)];

	for (int value = 0; value < 256; value += 51) {
		memset(bytes, value, sizeof(bytes));
		host_write(host, block, bytes, sizeof(bytes));
		CHECK_EQ(function(host, module, "answer"), answer);
		CHECK_EQ(get_u64(expect_returned(call(host, answer), ARG_INT)), 42U);
		(void)expect_returned(call(host, function(host, module, "tick")), ARG_NULL);
		(void)expect_returned(get_function(host, module, "nothing"), ARG_NULL);
		(void)expect_returned(call(host, evaluator), ARG_BYTES);
		expect_exception(call(host, module + 3U), "no live function");
		expect_void(
			free_handle(host,
				    get_u64(expect_returned(make_evaluator(host, module, "answer"),
							    ARG_FUNCTION)),
				    ARG_FUNCTION));
	}
	expect_void(free_handle(host, module, ARG_MODULE));
	CHECK_EQ(arena_check(&host->server.arena), 0U);
	host_stop(host);
}

/* The name in the text of a failure is of the copied table, too. */
TEST(a_loaded_functions_failure_has_its_name)
{
	struct host *host = start();
	uint64_t block = upload(host);
	struct image image = linked_at(block);
	uint64_t module;

	image.functions[1] = host_registry.funcs[1]; /* fail_at */
	host_write(host, block, &image, sizeof(image));
	module = load(host, block);
	memset(&image, 0xff, sizeof(image));
	host_write(host, block, &image, sizeof(image));
	host_functions.fail_at = 1U;
	expect_exception(call(host, function(host, module, "tick")),
			 "tick returned -1, no message");
	host_stop(host);
}

CHECK_MAIN(CASE(a_loaded_module_works_like_the_system_library),
	   CASE(code_from_before_a_layout_is_given_back), CASE(nothing_is_freed_by_a_wrong_handle),
	   CASE(a_registry_without_functions), CASE(a_registry_whose_count_is_a_byte),
	   CASE(a_registry_lies_in_its_block_as_a_whole),
	   CASE(a_registry_has_as_many_functions_as_there_are_handles),
	   CASE(what_overwrites_a_loaded_table_changes_nothing),
	   CASE(a_loaded_functions_failure_has_its_name),
	   CASE(what_is_freed_takes_its_functions_and_evaluators_along),
	   CASE(the_session_end_frees_it), CASE(its_memory_can_be_read_and_written_at_any_offset),
	   CASE(a_block_that_is_not_loaded_is_freed_like_data),
	   CASE(what_is_no_registry_is_refused), CASE(no_room_and_no_permission),
	   CASE(a_port_may_have_memory_of_its_own_for_code),
	   CASE(handles_of_what_is_gone_are_not_given_out_again_soon),
	   CASE(functions_get_their_resource))
