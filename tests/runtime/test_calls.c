/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Calls: arguments and results, handles, workspace, logs, the global functions, the other requests.
 */
#include <math.h>

#include "check.h"
#include "functions.h"
#include "host.h"
#include "operators.h"

/* ------------------------------------------------------------------ results */

static const struct answer *call_ret(struct host *host, int type_code, TVMValue value)
{
	struct args args = {0};

	host_functions.type_code = type_code;
	host_functions.value = value;
	return host_call(host, host_function(host, "ret"), &args);
}

/* The wire's type code of the value, which follows the code of its real type. */
static uint32_t wire_code(const struct answer *answer)
{
	return get_u32(answer->body + 8);
}

TEST(scalars_are_returned)
{
	static const struct {
		int type_code;
		uint32_t real;
		uint32_t wire;
	} cases[] = {
		{kTVMArgInt, ARG_INT, ARG_INT},
		{kTVMArgUInt, ARG_UINT, ARG_UINT},
		{kTVMArgFloat, ARG_FLOAT, ARG_FLOAT},
		{kTVMOpaqueHandle, ARG_HANDLE, ARG_HANDLE},
		{kTVMModuleHandle, ARG_MODULE, ARG_HANDLE},
		{kTVMPackedFuncHandle, ARG_FUNCTION, ARG_HANDLE},
		{kTVMDataType, ARG_DTYPE, ARG_DTYPE},
		{kDLDevice, ARG_DEVICE, ARG_DEVICE},
		{kTVMArgBool, ARG_INT, ARG_INT}, /* a code that only the newest clients know */
	};
	struct host *host = host_start();

	for (size_t i = 0U; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct answer *answer = call_ret(host, cases[i].type_code,
						       (TVMValue){.v_int64 = 0x1122334455667788});
		const uint8_t *value = expect_returned(answer, cases[i].real);

		CHECK_EQ(wire_code(answer), cases[i].wire);
		CHECK_EQ(answer->size, 28U);
		CHECK_EQ(get_u64(value), 0x1122334455667788U);
	}
	host_stop(host);
}

TEST(nothing_strings_and_bytes_are_returned)
{
	TVMByteArray bytes = {"a\0b", 3U};
	struct host *host = host_start();
	const struct answer *answer = call_ret(host, kTVMNullptr, (TVMValue){.v_int64 = 7});
	const uint8_t *value;

	(void)expect_returned(answer, ARG_NULL);
	CHECK_EQ(wire_code(answer), ARG_NULL);
	CHECK_EQ(answer->size, 20U);
	answer = call_ret(host, kTVMStr, (TVMValue){.v_str = "text"});
	value = expect_returned(answer, ARG_STRING);
	CHECK_EQ(wire_code(answer), ARG_STRING);
	CHECK_EQ(get_u64(value), 4U);
	CHECK_MEM(value + 8, "text", 4U);
	CHECK_EQ(answer->size, 32U);
	answer = call_ret(host, kTVMStr, (TVMValue){.v_str = ""});
	CHECK_EQ(get_u64(expect_returned(answer, ARG_STRING)), 0U);
	answer = call_ret(host, kTVMBytes, (TVMValue){.v_handle = &bytes});
	value = expect_returned(answer, ARG_BYTES);
	CHECK_EQ(wire_code(answer), ARG_BYTES);
	CHECK_EQ(get_u64(value), 3U);
	CHECK_MEM(value + 8, "a\0b", 3U);
	host_stop(host);
}

TEST(a_reply_of_any_length_is_one_message)
{
	static char data[60000];
	TVMByteArray bytes = {data, sizeof(data)};
	struct host *host = host_start();
	const uint8_t *value;

	memset(data, 0xff, sizeof(data));
	value = expect_returned(call_ret(host, kTVMBytes, (TVMValue){.v_handle = &bytes}),
				ARG_BYTES);
	CHECK_EQ(get_u64(value), sizeof(data));
	CHECK_MEM(value + 8, data, sizeof(data));
	host_stop(host);
}

TEST(what_can_not_travel_is_an_exception)
{
	static const int codes[] = {
		kTVMDLTensorHandle, kTVMObjectHandle, kTVMObjectRValueRefArg, 16, 99, -1};
	struct host *host = host_start();
	DLTensor tensor = {0};

	for (size_t i = 0U; i < sizeof(codes) / sizeof(codes[0]); i++) {
		expect_exception(call_ret(host, codes[i], (TVMValue){.v_handle = &tensor}),
				 "can't be sent");
	}
	expect_exception(call_ret(host, kTVMStr, (TVMValue){.v_str = NULL}), "returned str");
	expect_exception(call_ret(host, kTVMBytes, (TVMValue){.v_handle = NULL}), "returned bytes");
	for (size_t size = 0U; size < 2U; size++) {
		TVMByteArray bytes = {NULL, size};
		const struct answer *answer =
			call_ret(host, kTVMBytes, (TVMValue){.v_handle = &bytes});

		if (size == 0U) {
			(void)expect_returned(answer, ARG_BYTES);
		} else {
			expect_exception(answer, "returned bytes");
		}
	}
	/* An array that the arena does not know: the client could never name it again. */
	expect_exception(call_ret(host, kTVMNDArrayHandle, (TVMValue){.v_handle = &tensor}),
			 "can't be sent");
	host_stop(host);
}

static void check_array(enum dialect dialect)
{
	static int64_t shape[] = {3, 2};
	struct host *host = host_start();
	uint64_t data;
	struct args args = {0};
	struct tensor whole;
	const struct answer *answer;
	const uint8_t *value;
	uint64_t handle;

	/* The first allocation shows the client's dialect. */
	if (dialect == V8) {
		struct tensor tensor = tensor_1d(0U, 0U, 8U, 24);

		arg_tensor(&args, V8, &tensor);
		arg(&args, ARG_NULL, 0U);
		data = expect_handle(host_syscall(host, RPC_ALLOC_SCOPE, &args));
	} else {
		data = host_alloc(host, 24U);
	}
	host_functions.array = (DLTensor){.data = (void *)(uintptr_t)data,
					  .device = {kDLCPU, 0},
					  .ndim = 2,
					  .dtype = {kDLFloat, 32U, 1U},
					  .shape = shape};
	answer = host_call(host, host_function(host, "array"), &args);
	value = expect_returned(answer, ARG_NDARRAY);
	CHECK_EQ(get_u32(answer->body + 8), ARG_TENSOR);
	CHECK_EQ(get_u32(answer->body + 12), ARG_HANDLE);
	CHECK_EQ(get_u64(value), data);
	CHECK_EQ(get_u32(value + 8), 1U);
	CHECK_EQ(get_u32(value + 12), 0U);
	CHECK_EQ(get_u32(value + 16), 2U);
	CHECK_EQ(get_u32(value + 20), 0x00012002U);
	CHECK_EQ(get_u64(value + 24), 3U);
	CHECK_EQ(get_u64(value + 32), 2U);
	CHECK_EQ(answer->size, 24U + 48U + (dialect == V8 ? 8U : 0U));
	handle = get_u64(answer->body + answer->size - 8U);
	/* It reads back, and is freed once. */
	whole = tensor_1d(data, 0U, 8U, 24);
	{
		struct bytes body = {0};

		put_copy(&body, dialect, &whole, 24U);
		CHECK_EQ(host_request(host, RPC_COPY_FROM, &body)->code, RPC_COPY_ACK);
	}
	arg(&args, ARG_HANDLE, handle);
	arg(&args, ARG_INT, ARG_NDARRAY);
	expect_void(host_syscall(host, RPC_FREE_HANDLE, &args));
	arg(&args, ARG_HANDLE, handle);
	arg(&args, ARG_INT, ARG_NDARRAY);
	expect_exception(host_syscall(host, RPC_FREE_HANDLE, &args), "0x");
	host_stop(host);
}

TEST(an_array_is_returned_in_the_clients_dialect)
{
	check_array(V7);
	check_array(V8);
}

/* A client that has sent no tensor yet gets an answer that all clients except v0.7's understand. */
TEST(an_array_for_a_client_of_unknown_dialect_has_a_byte_offset)
{
	static int64_t shape[] = {3};
	struct host *host = host_start();
	struct args args = {0};
	const struct answer *answer;

	host_functions.array = (DLTensor){.ndim = 1, .dtype = {kDLInt, 8U, 1U}, .shape = shape};
	answer = host_call(host, host_function(host, "array"), &args);
	(void)expect_returned(answer, ARG_NDARRAY);
	CHECK_EQ(answer->size, 24U + 32U + 8U + 8U);
	CHECK_EQ(get_u64(answer->body + answer->size - 16U), 0U);
	host_stop(host);
}

/* ---------------------------------------------------------------- handles */

TEST(handles_that_nobody_gave_out_are_exceptions)
{
	static const uint64_t handles[] = {
		0U,           1U,
		0x7fffU,      0x8000U,
		0x80007fffU,  0x80008100U,
		0x8000ffffU,  0x80028100U,
		0x8002ffffU,  0x8003U << 16,
		0xbfffffffU,  0xc0000000U,
		0xffffffffU,  0x100000000U,
		0x180008000U, 0xffffffff80008000U,
		UINT64_MAX,
	};
	struct host *host = host_start();

	for (size_t i = 0U; i < sizeof(handles) / sizeof(handles[0]); i++) {
		struct args args = {0};

		expect_exception(host_call(host, handles[i], &args), "0x");
	}
	host_still_serves(host);
	host_stop(host);
}

TEST(freeing_what_is_not_live_is_an_exception)
{
	static const struct {
		uint64_t handle;
		uint64_t type;
	} bad[] = {
		{0U, ARG_NDARRAY},
		{1U, ARG_NDARRAY},
		{UINT64_MAX, ARG_NDARRAY},
		{0xc0000000U, ARG_FUNCTION},
		{0xffffffffU, ARG_FUNCTION},
		{1ULL << 40, ARG_FUNCTION},
		{0x8000U, ARG_INT},
		{0x8000U, ARG_STRING},
		{0x8000U, 16U},
		{0x8000U, UINT64_MAX},
		{0x8000U, (1ULL << 32) + ARG_MODULE},
	};
	struct host *host = host_start();

	for (size_t i = 0U; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct args args = {0};

		arg(&args, ARG_HANDLE, bad[i].handle);
		arg(&args, ARG_INT, bad[i].type);
		expect_exception(host_syscall(host, RPC_FREE_HANDLE, &args), "");
	}
	host_still_serves(host);
	host_stop(host);
}

/* An array's header can't be freed as data, nor data as an array. */
TEST(kinds_of_memory_are_kept_apart)
{
	struct host *host = host_start();
	uint64_t data = host_alloc(host, 16U);
	struct args args = {0};
	uint64_t array;

	host_functions.array =
		(DLTensor){.data = (void *)(uintptr_t)data, .dtype = {kDLInt, 8U, 1U}};
	(void)expect_returned(host_call(host, host_function(host, "array"), &args), ARG_NDARRAY);
	array = get_u64(host->answer.body + host->answer.size - 8U);
	expect_exception(host_try_free(host, array), "0x");
	arg(&args, ARG_HANDLE, data);
	arg(&args, ARG_INT, ARG_NDARRAY);
	expect_exception(host_syscall(host, RPC_FREE_HANDLE, &args), "0x");
	host_free_data(host, data);
	host_stop(host);
}

/* -------------------------------------------------------------- workspace */

TEST(workspace_is_given_back)
{
	struct host *host = host_start();
	uint64_t workspace = host_function(host, "workspace");
	uint64_t leak = host_function(host, "leak");

	for (int i = 0; i < 300; i++) {
		struct args args = {0};

		(void)expect_returned(host_call(host, workspace, &args), ARG_NULL);
		CHECK_EQ(host->server.arena.used, 0U);
		/* Objects that a function leaves behind are freed for it. */
		(void)expect_returned(host_call(host, leak, &args), ARG_INT);
		CHECK_EQ(host->server.arena.used, 0U);
	}
	host_stop(host);
}

TEST(workspace_that_does_not_fit_says_so)
{
	struct host *host = host_start();
	uint64_t leak = host_function(host, "leak");
	struct args args = {0};

	(void)host_alloc(host, host->server.arena.size - 512U);
	expect_exception(host_call(host, leak, &args), "memory");
	CHECK_CONTAINS(host->answer.text, "1000");
	host_still_serves(host);
	host_stop(host);
}

TEST(workspace_that_is_not_live_is_an_exception)
{
	struct host *host = host_start();
	struct args args = {0};

	expect_exception(host_call(host, host_function(host, "bad_free"), &args), "workspace");
	host_stop(host);
}

TEST(functions_call_each_other_by_name)
{
	struct host *host = host_start();
	struct args args = {0};

	arg(&args, ARG_INT, 9U);
	CHECK_EQ(get_u64(expect_returned(host_call(host, host_function(host, "call_inc"), &args),
					 ARG_INT)),
		 10U);
	/* A function that returns nothing: the value of an earlier call is not its result. */
	host_functions.nested = "spin";
	arg(&args, ARG_INT, 1U);
	(void)expect_returned(host_call(host, host_function(host, "call_inc"), &args), ARG_NULL);
	/* There, arguments and names are checked, too. */
	arg_string(&args, "text");
	expect_exception(host_call(host, host_function(host, "call_inc"), &args),
			 "spin: argument 0");
	host_functions.nested = "nobody";
	expect_exception(host_call(host, host_function(host, "call_inc"), &args),
			 "no function \"nobody\"");
	host_functions.nested = "fail_text";
	expect_exception(host_call(host, host_function(host, "call_inc"), &args), "no luck");
	host_stop(host);
}

/* -------------------------------------------------------------------- logs */

TEST(an_exceptions_text_is_cut_at_its_buffer)
{
	static char name[4000];
	struct host *host = host_start();
	struct args args = {0};

	memset(name, 'n', sizeof(name) - 1U);
	arg_string(&args, name);
	CHECK_EQ(expect_handle(host_syscall(host, RPC_GET_GLOBAL, &args)), 0U);
	arg(&args, ARG_MODULE, 0x8000U);
	arg_string(&args, name);
	for (int i = 0; i < 5; i++) {
		arg(&args, ARG_INT, 1U);
	}
	arg_string(&args, "");
	expect_exception(host_call(host, host_global(host, "runtime.RPCTimeEvaluator"), &args),
			 "nnn");
	CHECK(strlen(host->answer.text) < MINRPC_ERROR_TEXT);
	host_stop(host);
}

/* -------------------------------------------------------- global functions */

TEST(unknown_names_are_not_errors)
{
	struct host *host = host_start();
	struct args args = {0};

	CHECK_EQ(host_global(host, "nothing"), 0U);
	CHECK_EQ(host_global(host, ""), 0U);
	arg(&args, ARG_MODULE, 0x8000U);
	arg_string(&args, "nothing");
	arg(&args, ARG_BOOL, 1U);
	(void)expect_returned(
		host_call(host, host_global(host, "tvm.rpc.server.ModuleGetFunction"), &args),
		ARG_NULL);
	host_stop(host);
}

TEST(functions_of_the_library_are_named_after_a_colon)
{
	struct host *host = host_start();

	CHECK_EQ(host_global(host, ":inc"), host_function(host, "inc"));
	CHECK_EQ(host_global(host, ":nothing"), 0U);
	CHECK_EQ(host_global(host, ":"), 0U);
	CHECK_EQ(host_global(host, ":runtime.SystemLib"), 0U);
	host_stop(host);
}

/* Two successive sessions give the same values, and no float is nan. */
TEST(random_fill_is_repeatable)
{
	float first[64];
	float again[64];
	struct host *host = host_start();

	for (int i = 0; i < 2; i++) {
		uint64_t data;
		struct tensor tensor;
		struct args args = {0};

		host_open(host, 0x19U);
		data = host_alloc(host, sizeof(first));
		tensor = tensor_1d(data, 2U, 32U, 64);
		arg_tensor(&args, V8, &tensor);
		(void)expect_returned(
			host_call(host, host_global(host, "tvm.contrib.random.random_fill"), &args),
			ARG_NULL);
		host_read(host, data, i == 0 ? first : again, sizeof(first));
	}
	CHECK_MEM(again, first, sizeof(first));
	CHECK(first[0] != first[1]);
	for (int i = 0; i < 64; i++) {
		CHECK(isnormal(first[i]) && fabsf(first[i]) < 2.0F);
	}
	host_stop(host);
}

TEST(random_fill_stays_inside_for_every_dtype)
{
	static const uint8_t bits[] = {1U,  4U,  7U,  8U,  12U, 16U,  17U,
				       24U, 32U, 33U, 64U, 80U, 128U, 255U};
	struct host *host = host_start();
	uint64_t fill = host_global(host, "tvm.contrib.random.random_fill");

	for (uint8_t code = 0U; code < 6U; code++) {
		for (size_t i = 0U; i < sizeof(bits); i++) {
			for (uint16_t lanes = 1U; lanes < 4U; lanes++) {
				uint32_t size = ((uint32_t)bits[i] * lanes + 7U) / 8U * 3U;
				uint64_t before = host_alloc(host, 16U);
				uint64_t data = host_alloc(host, size);
				uint64_t after = host_alloc(host, 16U);
				uint8_t guard[16];
				struct tensor tensor = {.data = data,
							.code = code,
							.bits = bits[i],
							.lanes = lanes,
							.ndim = 1U,
							.shape = {3}};
				struct args args = {0};

				host_write(host, before, "0123456789abcdef", 16U);
				host_write(host, after, "0123456789abcdef", 16U);
				arg_tensor(&args, V8, &tensor);
				(void)expect_returned(host_call(host, fill, &args), ARG_NULL);
				host_read(host, before, guard, 16U);
				CHECK_MEM(guard, "0123456789abcdef", 16U);
				host_read(host, after, guard, 16U);
				CHECK_MEM(guard, "0123456789abcdef", 16U);
				host_free_data(host, before);
				host_free_data(host, data);
				host_free_data(host, after);
			}
		}
	}
	host_stop(host);
}

static const uint8_t *ask_info(struct host *host, uint32_t *size)
{
	struct args args = {0};
	const uint8_t *bytes = expect_returned(
		host_call(host, host_global(host, "minrpc.device_info"), &args), ARG_BYTES);

	*size = (uint32_t)get_u64(bytes);
	return bytes + 8;
}

TEST(device_info_tells_the_arena_and_the_clock)
{
	struct host *host = host_start();
	struct args args = {0};
	const uint8_t *info;
	uint32_t size;

	(void)host_alloc(host, 1000U);
	host->clock.now = 77U;
	info = ask_info(host, &size);
	CHECK_EQ(get_u32(info), 4U);
	CHECK_EQ(get_u32(info + 16), 8192U);
	CHECK_EQ(get_u32(info + 20), host->server.arena.size);
	CHECK_EQ(get_u32(info + 24), host->server.arena.used);
	CHECK_EQ(get_u32(info + 28), host->server.arena.peak);
	CHECK_EQ(get_u32(info + 32), minrpc_arena_largest_free(&host->server.arena));
	CHECK_EQ(get_u64(info + 72), 1000000U);
	CHECK_EQ(get_u64(info + 88), 77U);
	arg_string(&args, "what");
	expect_exception(host_call(host, host_global(host, "minrpc.device_info"), &args),
			 "minrpc.device_info: expected 0 arguments, got 1");
	host_still_serves(host);
	host_stop(host);
}

TEST(device_info_tells_regions_options_and_build)
{
	static const char options[] =
		"numbered,streaming,random_fill,fill,error_texts,guards,counting,abandon,"
		"config_checks,testing,code_loading,ask,layout,counters,";
	static const uint8_t id[MINRPC_BUILD_ID_MAX] = {1, 2, 3, 0xff, 0};
	struct host *host = host_start();
	const uint8_t *info;
	uint32_t size;

	host->config.build_id = id;
	host->config.build_id_size = sizeof(id);
	info = ask_info(host, &size);
	/* Its own size, three regions of 24 bytes, the options, the build id. */
	CHECK_EQ(get_u32(info + 4), 104U | 3U << 16);
	CHECK_EQ(get_u32(info + 8), 24U | (uint32_t)strlen(options) << 16);
	CHECK_EQ(get_u32(info + 12), MINRPC_BUILD_ID_MAX | 64U << 16);
	CHECK_EQ(size, 104U + 3U * 24U + strlen(options) + sizeof(id));
	CHECK_EQ(get_u64(info + 104), (uintptr_t)host->server.arena.base);
	CHECK_EQ(get_u64(info + 112), host->server.arena.size);
	CHECK_EQ(get_u32(info + 120), 1U);
	CHECK_EQ(get_u64(info + 128), (uintptr_t)host_constants);
	CHECK_EQ(get_u64(info + 136), sizeof(host_constants));
	CHECK_EQ(get_u32(info + 144), 2U);
	CHECK_EQ(get_u64(info + 152), (uintptr_t)host->config.arena);
	CHECK_EQ(get_u64(info + 160), host->config.arena_size);
	CHECK_EQ(get_u32(info + 168), 4U);
	CHECK_MEM(info + 176, options, strlen(options));
	CHECK_MEM(info + 176 + strlen(options), id, sizeof(id));
	host->config.build_id_size = 0U;
	host->config.read_only_size = 0U;
	(void)ask_info(host, &size);
	CHECK_EQ(size, 104U + 2U * 24U + strlen(options));
	host_stop(host);
}

TEST(a_device_that_can_not_reset_says_so)
{
	struct host *host = host_start();
	uint64_t reset = host_global(host, "tvm.testing.reset_server");
	struct args args = {0};

	(void)host_call(host, reset, &args);
	CHECK_EQ(host->resets, 1U);
	host->platform.reset = NULL;
	expect_exception(host_call(host, reset, &args), "reset");
	host_stop(host);
}

TEST(global_functions_check_their_arguments)
{
	static const char *const names[] = {
		"tvm.rpc.server.ModuleGetFunction", "runtime.RPCTimeEvaluator",
		"tvm.contrib.random.random_fill", "minrpc.time_evaluator"};
	struct host *host = host_start();

	for (size_t i = 0U; i < sizeof(names) / sizeof(names[0]); i++) {
		uint64_t function = host_global(host, names[i]);
		struct args args = {0};

		expect_exception(host_call(host, function, &args), "argument");
		for (int j = 0; j < 20; j++) {
			arg(&args, ARG_NULL, 0U);
		}
		expect_exception(host_call(host, function, &args), "argument");
	}
	host_stop(host);
}

/* ---------------------------------------------------------- other requests */

TEST(system_calls_check_their_arguments)
{
	struct host *host = host_start();

	for (uint32_t code = RPC_GET_GLOBAL; code <= RPC_CURRENT_STREAM; code++) {
		for (uint32_t count = 0U; count < 10U; count++) {
			struct args args = {0};

			for (uint32_t i = 0U; i < count; i++) {
				arg_float(&args, 1.5);
			}
			expect_exception(host_syscall(host, code, &args), "");
		}
	}
	host_still_serves(host);
	host_stop(host);
}

TEST(streams_are_one)
{
	static const uint32_t void_codes[] = {RPC_STREAM_SYNC, RPC_FREE_STREAM, RPC_SET_STREAM};
	static const uint32_t handle_codes[] = {RPC_CREATE_STREAM, RPC_CURRENT_STREAM};
	struct host *host = host_start();
	struct args args = {0};

	for (int i = 0; i < 3; i++) {
		arg_device(&args);
		arg(&args, ARG_HANDLE, 0U);
		expect_void(host_syscall(host, void_codes[i], &args));
	}
	for (int i = 0; i < 2; i++) {
		arg_device(&args);
		CHECK_EQ(expect_handle(host_syscall(host, handle_codes[i], &args)), 0U);
	}
	host_stop(host);
}

TEST(a_link_that_is_gone_does_not_stop_the_device)
{
	struct host *host = host_start();
	struct bytes wire = {0};

	put_call(&wire, host->session, host_function(host, "tick"));
	host->link_gone = true;
	host_receive(host, &wire);
	host_receive(host, &wire);
	CHECK_EQ(host_functions.calls, 2U);
	CHECK_EQ(minrpc_server_log(&host->server, "x", 1U), -1);
	host->link_gone = false;
	/* The next frame starts with a byte that ends the cut frame. */
	host_give(host, &wire);
	CHECK(host->sent.size > 1U && host->sent.data[0] == 0xfeU);
	CHECK(host_take(host));
	host_still_serves(host);
	host_stop(host);
}

static void init_server(struct host *host, const char *version)
{
	struct bytes body = {0};

	put_u64(&body, strlen(version));
	put(&body, version, (uint32_t)strlen(version));
	put_u64(&body, 0U);
	expect_void(host_request(host, RPC_INIT_SERVER, &body));
}

/*
 * f(tensor, an int of 0) of v0.7: 8 bytes that could also be the byte offset of v0.8's tensor
 * without an int.
 */
TEST(the_dialect_of_a_session_is_kept)
{
	struct host *host = host_start();
	uint64_t echo = host_function(host, "echo");
	uint64_t data = host_alloc(host, 64U);
	struct tensor tensor = tensor_1d(data, 0U, 8U, 64);
	struct args args = {0};

	init_server(host, "0.7.0");
	CHECK_EQ(host->server.dialect, MINRPC_DIALECT_0_7);
	arg(&args, ARG_INT, 7U);
	arg_tensor(&args, V7, &tensor);
	CHECK_EQ(get_u64(expect_returned(host_call(host, echo, &args), ARG_INT)), 7U);
	CHECK_EQ(host->server.dialect, MINRPC_DIALECT_0_7);
	init_server(host, "0.8.0");
	CHECK_EQ(host->server.dialect, MINRPC_DIALECT_0_8);
	host_open(host, 0x24U);
	CHECK_EQ(host->server.dialect, MINRPC_DIALECT_UNKNOWN);
	host_stop(host);
}

CHECK_MAIN(CASE(scalars_are_returned), CASE(nothing_strings_and_bytes_are_returned),
	   CASE(a_reply_of_any_length_is_one_message), CASE(what_can_not_travel_is_an_exception),
	   CASE(an_array_is_returned_in_the_clients_dialect),
	   CASE(an_array_for_a_client_of_unknown_dialect_has_a_byte_offset),
	   CASE(handles_that_nobody_gave_out_are_exceptions),
	   CASE(freeing_what_is_not_live_is_an_exception), CASE(kinds_of_memory_are_kept_apart),
	   CASE(workspace_is_given_back), CASE(workspace_that_does_not_fit_says_so),
	   CASE(workspace_that_is_not_live_is_an_exception),
	   CASE(functions_call_each_other_by_name), CASE(an_exceptions_text_is_cut_at_its_buffer),
	   CASE(unknown_names_are_not_errors),
	   CASE(functions_of_the_library_are_named_after_a_colon), CASE(random_fill_is_repeatable),
	   CASE(random_fill_stays_inside_for_every_dtype),
	   CASE(device_info_tells_the_arena_and_the_clock),
	   CASE(device_info_tells_regions_options_and_build),
	   CASE(a_device_that_can_not_reset_says_so), CASE(global_functions_check_their_arguments),
	   CASE(system_calls_check_their_arguments), CASE(streams_are_one),
	   CASE(a_link_that_is_gone_does_not_stop_the_device),
	   CASE(the_dialect_of_a_session_is_kept))
