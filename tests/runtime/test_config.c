/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every size of buffer that a port may hand in.
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
		CHECK_EQ(get_u32(expect_returned(host_call(host, info, &args), ARG_BYTES) + 12), sizes[i]);
		/* The longest message that fits, and the shortest that does not. */
		for (uint32_t size = sizes[i] - 40U; size <= sizes[i] + 8U; size++) {
			memset(expected, (int)size, size);
			host_write(host, data, expected, size);
			host_read(host, data, now, size);
			CHECK_MEM(now, expected, size);
		}
		/* Arguments that fill it leave no room for what they are decoded to. */
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
	static const uint32_t sizes[] = {1U, 15U, 16U, 31U, 32U, 33U, 47U, 48U, 64U, 100U, 200U, 4096U};

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
			/* A message of the session before is never taken for one of this. */
			CHECK(host->session != last);
			last = host->session;
		}
	}
	host_stop(host);
}

CHECK_MAIN(CASE(receive_buffers), CASE(send_buffers), CASE(arenas), CASE(every_seed_of_nonces))
