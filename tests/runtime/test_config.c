/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Tests every size of buffer that a port may have.
 */
#include "check.h"
#include "host.h"

static struct host *start(uint32_t receive, uint32_t send, uint32_t arena)
{
	struct host *host = host_boot((struct host_sizes){receive, send, arena});

	CHECK(host_take(host));
	host_open(host, 0x23U);
	return host;
}

/* A copy in v0.7's form: only this form may exceed the buffer without its own check. */
static void write_whole(struct host *host, uint64_t data, const void *from, uint32_t size)
{
	struct tensor tensor = tensor_1d(data, 0U, 8U, size);
	struct bytes body = {0};

	put_copy(&body, V7, &tensor, size);
	put(&body, from, size);
	expect_void(host_request(host, RPC_COPY_TO, &body));
}

static void read_whole(struct host *host, uint64_t data, void *to, uint32_t size)
{
	struct tensor tensor = tensor_1d(data, 0U, 8U, size);
	struct bytes body = {0};

	put_copy(&body, V7, &tensor, size);
	memcpy(to, host_request(host, RPC_COPY_FROM, &body)->body, size);
}

TEST(receive_buffers)
{
	static const uint32_t sizes[] = {512U, 513U, 514U, 515U, 519U, 520U, 1000U, 8191U, 8192U};

	for (size_t i = 0U; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct host *host = start(sizes[i], 64U, 65536U);
		uint64_t info = host_global(host, "minrpc.device_info");
		uint64_t data = host_alloc(host, 20000U);
		struct args args = {0};
		struct bytes body = {0};
		uint8_t now[20000];
		uint8_t expected[20000];

		host_still_serves(host);
		CHECK_EQ(get_u32(expect_returned(host_call(host, info, &args), ARG_BYTES) + 24),
			 sizes[i]);
		/* The longest message that fits, and the shortest that does not. */
		for (uint32_t size = sizes[i] - 60U; size <= sizes[i] + 8U; size++) {
			memset(expected, (int)size, size);
			write_whole(host, data, expected, size);
			read_whole(host, data, now, size);
			CHECK_MEM(now, expected, size);
		}
		/* Arguments that fill it leave no room for their decoded values. */
		put_u64(&body, 0x80008000U);
		put_u32(&body, 1U);
		put_u32(&body, ARG_STRING);
		put_u64(&body, sizes[i] - 39U);
		for (uint32_t j = 0U; j < sizes[i] - 39U; j++) {
			put_u8(&body, 'x');
		}
		expect_exception(host_request(host, RPC_CALL_FUNC, &body), "receive buffer");
		host_stop(host);
	}
}

TEST(send_buffers)
{
	for (uint32_t size = 1U; size < 70U; size++) {
		struct host *host = start(512U, size, 4096U);

		host_still_serves(host);
		host_stop(host);
	}
}

TEST(arenas)
{
	static const uint32_t sizes[] = {1U,  15U, 16U, 31U,  32U,  33U,
					 47U, 48U, 64U, 100U, 200U, 4096U};

	for (size_t i = 0U; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct host *host = start(512U, 64U, sizes[i]);
		uint64_t create = host_global(host, "runtime.RPCTimeEvaluator");
		uint32_t live = 0U;

		host_still_serves(host);
		for (;;) {
			struct args args = {0};
			const struct answer *answer;

			arg(&args, ARG_MODULE, 0x8000U);
			arg_string(&args, "tick");
			for (int j = 0; j < 5; j++) {
				arg(&args, ARG_INT, 1U);
			}
			arg_string(&args, "");
			answer = host_call(host, create, &args);
			if (answer->code == RPC_EXCEPTION) {
				CHECK_CONTAINS(answer->text, "memory");
				break;
			}
			live++;
		}
		CHECK_EQ(arena_check(&host->server.arena), live);
		host_still_serves(host);
		host_open(host, 0x24U);
		CHECK_EQ(arena_check(&host->server.arena), 0U);
		host_stop(host);
	}
}

TEST(every_seed_of_nonces)
{
	struct host *host = start(512U, 64U, 64U);

	for (uint32_t seed = 0U; seed < 256U; seed++) {
		uint16_t last = 0U;

		host->config.nonce_seed = (uint8_t)seed;
		host_reboot(host);
		CHECK(host_take(host));
		for (int i = 0; i < 20; i++) {
			host_open(host, 0x11U);
			/*
			 * A message of the previous session is never taken for a message of this
			 * session.
			 */
			CHECK(host->session != last);
			last = host->session;
		}
	}
	host_stop(host);
}

/* Every field: a port with a wrong field gets its name, before any byte is sent. */
static void expect_wrong(struct host *host, struct minrpc_config *config, const char *field)
{
	struct minrpc_server *server = &host->server;

	host->sent.size = 0U;
	CHECK(!minrpc_server_init(server, config));
	CHECK_CONTAINS(server->error, field);
	CHECK_EQ(minrpc_server_log(server, "x", 1U), -1);
	minrpc_server_last_words(server, "x", 1U);
	CHECK_EQ(host->sent.size, 0U);
	*config = host->config;
	host->platform.write = host->config.platform->write;
}

#define WRONG(change, field)                                                                       \
	do {                                                                                       \
		config.change;                                                                     \
		expect_wrong(host, &config, field);                                                \
	} while (0)

#define WRONG_PLATFORM(change)                                                                     \
	do {                                                                                       \
		struct minrpc_platform platform = host->platform;                                  \
		platform.change;                                                                   \
		config.platform = &platform;                                                       \
		expect_wrong(host, &config, "platform");                                           \
	} while (0)

TEST(a_wrong_configuration_is_refused)
{
	static const struct minrpc_module no_table = {.count = 1U};
	static const struct minrpc_function no_name[] = {{NULL, NULL, NULL}};
	static const struct minrpc_function nothing[] = {{"nothing", NULL, NULL}};
	static const struct minrpc_module modules[] = {{.functions = no_name, .count = 1U},
						       {.functions = nothing, .count = 1U}};
	struct host *host = start(512U, 64U, 64U);
	struct minrpc_config config = host->config;

	WRONG(platform = NULL, "platform");
	WRONG_PLATFORM(write = NULL);
	WRONG_PLATFORM(clock_describe = NULL);
	WRONG_PLATFORM(clock_sample = NULL);
	WRONG_PLATFORM(sleep_ms = NULL);
	WRONG_PLATFORM(clock_begin = NULL);
	WRONG_PLATFORM(clock_end = NULL);
	WRONG(receive_buffer = NULL, "receive_buffer");
	WRONG(receive_buffer = (uint8_t *)config.receive_buffer + 4, "receive_buffer");
	WRONG(receive_size = 0U, "receive_buffer");
	WRONG(receive_size = MINRPC_RECEIVE_MIN - 1U, "receive_buffer");
	WRONG(receive_size = MINRPC_MAX_PACKET + 1U, "receive_buffer");
	WRONG(send_buffer = NULL, "send_buffer");
	WRONG(send_size = 0U, "send_buffer");
	WRONG(arena = NULL, "arena");
	WRONG(arena_size = 0U, "arena");
	WRONG(arena = (void *)(UINTPTR_MAX - 62U), "arena");
	WRONG(read_only = NULL, "read_only");
	WRONG(read_only = (void *)(UINTPTR_MAX - 14U), "read_only");
	WRONG(code = &config, "code");
	WRONG(build_id_size = MINRPC_BUILD_ID_MAX + 1U, "build_id");
	WRONG(build_id_size = 1U, "build_id");
	WRONG(library.modules = NULL, "library");
	config.library.count = 1U;
	WRONG(library.modules = NULL, "library");
	WRONG(library.modules = &no_table, "library");
	config.library.count = 1U;
	WRONG(library.modules = &modules[0], "library");
	config.library.count = 1U;
	WRONG(library.modules = &modules[1], "library");
	CHECK(minrpc_server_init(&host->server, &config));
	/* A port may leave out any of these fields. */
	config.read_only = NULL;
	config.read_only_size = 0U;
	CHECK(minrpc_server_init(&host->server, &config));
	config.read_only_size = 1U;
	CHECK(!minrpc_server_init(&host->server, &config));
	config = host->config;
	CHECK(minrpc_server_init(&host->server, &config));
	host->sent.size = 0U;
	host_open(host, 0x23U);
	host_still_serves(host);
	host_stop(host);
}

CHECK_MAIN(CASE(receive_buffers), CASE(send_buffers), CASE(arenas), CASE(every_seed_of_nonces),
	   CASE(a_wrong_configuration_is_refused))
