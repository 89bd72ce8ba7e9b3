/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Counters that are read beside a time. There are three lists: the runtime's, the port's and the
 * application's. A counter's number is its position in these lists. The first counters are peaks of
 * memory. They are no differences: a separate, untimed call measures them.
 */
#include <string.h>

#include "rpc.h"

#if MINRPC_COUNTERS

enum own {
	STACK_BYTES, /* of the whole stack: the host subtracts the share of an empty function */
	ARENA_BYTES, /* above the bytes in use before the call */
	HEAP_BYTES,  /* above the bytes in use before the call */
	PEAKS,
	LINK_RECEIVED = PEAKS,
	LINK_SENT,
	OWN,
};

#define PEAK_BITS ((1U << PEAKS) - 1U)
#define MASKED    "interrupts_masked"

static uint64_t received(void *context)
{
	return ((const struct minrpc_server *)context)->link_received;
}

static uint64_t sent(void *context)
{
	return ((const struct minrpc_server *)context)->link_sent;
}

static const struct minrpc_counter own[OWN] = {
	[STACK_BYTES] = {"stack_bytes", "bytes", 32, NULL, NULL, NULL},
	[ARENA_BYTES] = {"arena_bytes", "bytes", 32, NULL, NULL, NULL},
	[HEAP_BYTES] = {"heap_bytes", "bytes", 32, NULL, NULL, NULL},
	[LINK_RECEIVED] = {"link_received", "bytes", 32, received, NULL, NULL},
	[LINK_SENT] = {"link_sent", "bytes", 32, sent, NULL, NULL},
};

/* Copies the counter of this number; false when there is none. */
static bool counter_at(const struct minrpc_server *server, uint32_t number,
		       struct minrpc_counter *counter)
{
	const struct minrpc_counter *lists[] = {server->config->counters, minrpc_own_counters};

	if (number < OWN) {
		*counter = own[number];
		counter->context = (void *)(uintptr_t)server;
		return true;
	}
	number -= OWN;
	for (uint32_t i = 0U; i < 2U; i++) {
		for (const struct minrpc_counter *at = lists[i]; at != NULL && at->name != NULL;
		     at++) {
			if (number-- == 0U) {
				*counter = *at;
				return true;
			}
		}
	}
	return false;
}

/* True when the counter of this number is available on this device. */
static bool is_there(const struct minrpc_server *server, uint32_t number)
{
	const struct minrpc_platform *platform = server->config->platform;

	if (number == STACK_BYTES) {
		return platform->stack_use != NULL && platform->stack_paint != NULL;
	}
	return number != HEAP_BYTES || platform->heap_use != NULL;
}

static bool is_named(const char *counter, const char *name, uint32_t length)
{
	return strlen(counter) == length && memcmp(counter, name, length) == 0;
}

static bool choose(struct minrpc_server *server, const char *name, uint32_t length,
		   uint32_t *chosen)
{
	struct minrpc_counter counter;

	if (is_named(MASKED, name, length) && server->config->platform->interrupts_mask != NULL) {
		*chosen |= MINRPC_MASKED;
		return true;
	}
	for (uint32_t i = 0U; i < MINRPC_COUNTERS_MAX && counter_at(server, i, &counter); i++) {
		if (is_named(counter.name, name, length) && is_there(server, i)) {
			*chosen |= 1U << i;
			return true;
		}
	}
	return minrpc_fail(server, "no counter %s", name);
}

bool minrpc_counters_choose(struct minrpc_server *server, const char *names, uint32_t *chosen)
{
	*chosen = 0U;
	while (*names != '\0') {
		uint32_t length = (uint32_t)strcspn(names, ",");

		if (!choose(server, names, length, chosen)) {
			return false;
		}
		names += length;
		names += *names == ',';
	}
	return true;
}

uint32_t minrpc_counters_count(uint32_t chosen)
{
	return (uint32_t)__builtin_popcount(chosen & ~MINRPC_MASKED);
}

uint32_t minrpc_counters_names(const struct minrpc_server *server, uint32_t chosen, char *to)
{
	struct minrpc_counter counter;
	uint32_t size = 0U;

	for (uint32_t i = 0U; chosen >> i != 0U && i < MINRPC_COUNTERS_MAX; i++) {
		if ((chosen >> i & 1U) != 0U && counter_at(server, i, &counter)) {
			uint32_t length = (uint32_t)strlen(counter.name) + 1U;

			if (to != NULL) {
				memcpy(to + size, counter.name, length);
			}
			size += length;
		}
	}
	return (size + 7U) & ~7U;
}

bool minrpc_counters_enable(struct minrpc_server *server, uint32_t chosen, bool on)
{
	struct minrpc_counter counter;

	for (uint32_t i = 0U; chosen >> i != 0U && i < MINRPC_COUNTERS_MAX; i++) {
		if ((chosen >> i & 1U) != 0U && counter_at(server, i, &counter) &&
		    counter.enable != NULL && !counter.enable(counter.context, on) && on) {
			/* The earlier counters run already. */
			(void)minrpc_counters_enable(server, chosen & ((1U << i) - 1U), false);
			return minrpc_fail(server, "no slot for the counter %s", counter.name);
		}
	}
	return true;
}

void minrpc_counters_read(const struct minrpc_server *server, uint32_t chosen, uint64_t *values,
			  bool begins)
{
	struct minrpc_counter counter;

	for (uint32_t i = 0U; chosen >> i != 0U && i < MINRPC_COUNTERS_MAX; i++) {
		uint64_t now;

		if ((chosen >> i & 1U) == 0U || !counter_at(server, i, &counter)) {
			continue;
		}
		if (i >= PEAKS) {
			now = counter.read(counter.context);
			*values = begins ? now : now - *values;
			if (!begins && counter.bits < 64U) {
				*values &= (1ULL << counter.bits) - 1U;
			}
		}
		values++;
	}
}

/* Bytes in use, and the most bytes in use since the last reset of the peak. */
static void heap_use(const struct minrpc_server *server, uint32_t *used, uint32_t *peak, bool reset)
{
	const struct minrpc_config *config = server->config;

	*used = 0U;
	*peak = 0U;
	if (config->platform->heap_use != NULL) {
		config->platform->heap_use(config->context, used, peak, reset);
	}
}

bool minrpc_counters_peaks(struct minrpc_server *server, uint32_t chosen,
			   const struct minrpc_callee *callee, struct minrpc_call *call,
			   uint64_t *values)
{
	const struct minrpc_config *config = server->config;
	struct minrpc_arena *arena = &server->arena;
	uint32_t before = arena->used; /* Between calls no workspace is in use. */
	uint32_t peak = arena->peak;
	uint32_t peaks[PEAKS] = {0U};
	uint32_t heap_before;
	uint32_t size = 0U;
	uint32_t unused;
	bool done;

	if ((chosen & PEAK_BITS) == 0U) {
		return true;
	}
	heap_use(server, &heap_before, &unused, true);
	arena->peak = before;
	if ((chosen >> STACK_BYTES & 1U) != 0U) {
		config->platform->stack_paint(config->context);
	}
	done = minrpc_invoke(callee, 1U, call);
	if ((chosen >> STACK_BYTES & 1U) != 0U) {
		config->platform->stack_use(config->context, &size, &peaks[STACK_BYTES]);
	}
	if (done && peaks[STACK_BYTES] >= size && size != 0U) {
		done = minrpc_fail(server, "%s used all %u bytes of the stack, or more",
				   minrpc_callee_name(callee), (unsigned int)size);
	}
	peaks[ARENA_BYTES] = arena->peak - before;
	if (arena->peak < peak) {
		arena->peak = peak;
	}
	heap_use(server, &unused, &peaks[HEAP_BYTES], false);
	peaks[HEAP_BYTES] -= peaks[HEAP_BYTES] < heap_before ? peaks[HEAP_BYTES] : heap_before;
	for (uint32_t i = 0U; i < PEAKS; i++) {
		if ((chosen >> i & 1U) != 0U) {
			*values++ = peaks[i];
		}
	}
	return done;
}

/* Returns the largest size of the list of all counters, with a NUL. */
static uint32_t lines_size(const struct minrpc_server *server)
{
	struct minrpc_counter counter;
	uint32_t size = 1U;

	for (uint32_t i = 0U; i < MINRPC_COUNTERS_MAX && counter_at(server, i, &counter); i++) {
		size += (uint32_t)(strlen(counter.name) + strlen(counter.unit)) +
			(uint32_t)sizeof(",,255\n") - 1U;
	}
	return size;
}

/*
 * Answers minrpc.counters: a line "name,unit,bits" for each counter. 0 bits mean that the counter
 * is not available now.
 */
bool minrpc_counters_list(struct minrpc_call *call)
{
	struct minrpc_server *server = call->server;
	struct minrpc_counter counter;
	struct answer {
		TVMByteArray bytes;
		char text[];
	} *answer;
	uint32_t room = lines_size(server);
	uint32_t fill = 0U;

	/* Not in the receive buffer: an application may have many counters. */
	answer = minrpc_server_alloc(server, (uint32_t)sizeof(*answer) + room, 1U,
				     MINRPC_ARENA_RESULT);
	server->result = answer;
	if (answer == NULL) {
		return false;
	}
	for (uint32_t i = 0U; i < MINRPC_COUNTERS_MAX && counter_at(server, i, &counter); i++) {
		bool here = counter.enable == NULL || counter.enable(counter.context, true);

		if (here && counter.enable != NULL) {
			(void)counter.enable(counter.context, false);
		}
		if (is_there(server, i)) {
			minrpc_text(answer->text + fill, room - fill, "%s,%s,%u\n", counter.name,
				    counter.unit, here ? (unsigned int)counter.bits : 0U);
			fill += (uint32_t)strlen(answer->text + fill);
		}
	}
	answer->bytes = (TVMByteArray){answer->text, fill};
	call->value.v_handle = &answer->bytes;
	call->type_code = kTVMBytes;
	return true;
}

/* Answers minrpc.memory: the heap's use and peak. An argument other than 0 resets all peaks. */
bool minrpc_memory(struct minrpc_call *call)
{
	struct minrpc_server *server = call->server;
	const struct minrpc_platform *platform = server->config->platform;
	bool reset = call->args.values[0].v_int64 != 0;
	struct answer {
		TVMByteArray bytes;
		uint32_t heap[2];
	} *answer = server->config->receive_buffer;
	uint32_t used;
	uint32_t peak;

	heap_use(server, &used, &peak, reset);
	answer->heap[0] = used;
	answer->heap[1] = peak;
	if (reset) {
		server->arena.peak = server->arena.used;
		if (platform->stack_paint != NULL) {
			platform->stack_paint(server->config->context);
		}
	}
	answer->bytes = (TVMByteArray){(const char *)answer->heap, sizeof(answer->heap)};
	call->value.v_handle = &answer->bytes;
	call->type_code = kTVMBytes;
	return true;
}

#endif
