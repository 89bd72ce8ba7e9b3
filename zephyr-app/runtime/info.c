/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * minrpc.device_info: memory, clocks, and what went wrong on the link.
 */
#include <string.h>

#include "rpc.h"

/* All little-endian; later versions append. */
struct device_info {
	uint32_t version;
	uint32_t max_packet;
	uint32_t arena_size;
	uint32_t arena_used;
	uint32_t arena_peak;
	uint32_t arena_largest_free;
	uint64_t timer_hz;
	uint32_t counters[MINRPC_COUNTERS];
	uint32_t receive_overruns;
	uint32_t stack_size; /* 0: not known */
	uint32_t stack_peak;
	struct minrpc_clock_sample now; /* since version 2 */
	struct minrpc_clock clock;      /* last: what pads its end differs between ABIs */
};

/* No arguments, so the receive buffer is free to hold the answer. */
bool minrpc_device_info(struct minrpc_call *call)
{
	struct minrpc_server *server = call->server;
	struct reply {
		TVMByteArray bytes;
		struct device_info info;
	} *reply = server->config->receive_buffer;
	const struct minrpc_platform *platform = server->config->platform;
	struct minrpc_clock clock;

	platform->clock_describe(server->config->context, &clock);
	reply->info = (struct device_info){
		.version = 3U,
		.max_packet = server->config->receive_size,
		.arena_size = server->arena.size,
		.arena_used = server->arena.used,
		.arena_peak = server->arena.peak,
		.arena_largest_free = minrpc_arena_largest_free(&server->arena),
		.timer_hz = clock.cycles_hz,
		.clock = clock,
	};
	memcpy(reply->info.counters, server->counters, sizeof(server->counters));
	platform->clock_sample(server->config->context, &reply->info.now);
	if (platform->receive_overruns != NULL) {
		reply->info.receive_overruns = platform->receive_overruns(server->config->context);
	}
	reply->bytes = (TVMByteArray){(const char *)&reply->info, sizeof(reply->info)};
	if (platform->stack_use != NULL) {
		platform->stack_use(server->config->context, &reply->info.stack_size,
				    &reply->info.stack_peak);
	}
	call->value.v_handle = &reply->bytes;
	call->type_code = kTVMBytes;
	return true;
}
