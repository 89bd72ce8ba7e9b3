/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * minrpc.device_info: the device's options, memory, build and clocks, and the errors on the link.
 */
#include <string.h>

#include "rpc.h"

#if MINRPC_DEVICE_INFO

/*
 * The first part of the answer, little-endian and without padding. Later versions append fields to
 * each part, whose size this part gives.
 */
struct device_info {
	uint32_t version;
	uint16_t size;          /* bytes of this part; the regions follow */
	uint16_t region_count;  /* number of regions */
	uint16_t region_size;   /* bytes of a region */
	uint16_t options_size;  /* bytes of the names of the options, with commas between */
	uint16_t build_id_size; /* bytes of the image's identification */
	uint16_t clock_bits;
	uint32_t max_packet;
	uint32_t arena_size;
	uint32_t arena_used;
	uint32_t arena_peak;
	uint32_t arena_largest_free;
	uint32_t counters[MINRPC_LINK_COUNTS];
	uint32_t receive_overruns;
	uint32_t stack_size; /* 0: unknown */
	uint32_t stack_peak;
	uint32_t reserved;
	uint64_t cycles_hz;
	uint64_t coarse_hz;
	uint64_t cycles;
	uint64_t coarse;
};

struct region {
	uint64_t base;
	uint64_t size;
	uint32_t kind;
	uint32_t reserved;
};

_Static_assert(sizeof(struct device_info) == 104U && sizeof(struct region) == 24U,
	       "on every machine the same");

enum {
	REGION_ARENA = 1,
	REGION_READ_ONLY = 2,
	REGION_CODE = 3,
	REGION_MEMORY = 4,      /* memory that arrays may use */
	REGION_CODE_MEMORY = 5, /* memory that only code may use */
	REGIONS,
};

#define IF(option, name)  IF_(option, name)
#define IF_(option, name) IF_##option(name)
#define IF_0(name)        ""
#define IF_1(name)        name ","

/* The board that the image was built for, among the options; a port may know none. */
#ifdef MINRPC_BOARD
#define BOARD "board=" MINRPC_BOARD ","
#else
#define BOARD ""
#endif

static const char options[] = BOARD IF(MINRPC_NUMBERED, "numbered") IF(
	MINRPC_STREAMING, "streaming") IF(MINRPC_RANDOM_FILL, "random_fill") IF(MINRPC_FILL, "fill")
	IF(MINRPC_ERROR_TEXTS, "error_texts") IF(MINRPC_GUARDS, "guards")
		IF(MINRPC_COUNTING, "counting") IF(MINRPC_ABANDON, "abandon")
			IF(MINRPC_CONFIG_CHECKS, "config_checks") IF(MINRPC_TESTING, "testing")
				IF(MINRPC_CODE_LOADING, "code_loading") IF(MINRPC_ASK, "ask")
					IF(MINRPC_LAYOUT, "layout") IF(MINRPC_COUNTERS, "counters");

/* The answer is built in the receive buffer, which is free, since the call has no arguments. */
struct answer {
	TVMByteArray bytes;
	struct device_info info;
	struct region regions[REGIONS]; /* two regions are of the kind REGION_MEMORY */
	char texts[sizeof(options) + MINRPC_BUILD_ID_MAX];
};

_Static_assert(sizeof(struct answer) <= MINRPC_RECEIVE_MIN, "the answer fits the smallest buffer");

/* Appends a region, unless it is empty. */
static void add_region(struct answer *answer, uint32_t kind, const void *base, uint32_t size)
{
	if (size != 0U) {
		answer->regions[answer->info.region_count++] =
			(struct region){.base = (uintptr_t)base, .size = size, .kind = kind};
	}
}

static void add_regions(struct answer *answer, const struct minrpc_server *server)
{
	const struct minrpc_config *config = server->config;

	add_region(answer, REGION_ARENA, server->arena.base, server->arena.size);
	add_region(answer, REGION_READ_ONLY, config->read_only, config->read_only_size);
#if MINRPC_CODE_LOADING
	add_region(answer, REGION_CODE, server->code.base, server->code.size);
#endif
#if MINRPC_LAYOUT
	add_region(answer, REGION_MEMORY, config->arena, config->arena_size);
	add_region(answer, REGION_MEMORY, config->more_memory, config->more_memory_size);
#endif
#if MINRPC_LAYOUT && MINRPC_CODE_LOADING
	if (config->code != NULL) {
		add_region(answer, REGION_CODE_MEMORY, config->code, config->code_size);
	}
#endif
}

static void add_platform(struct device_info *info, const struct minrpc_config *config)
{
	const struct minrpc_platform *platform = config->platform;
	struct minrpc_clock_sample now;
	struct minrpc_clock clock;

	platform->clock_describe(config->context, &clock);
	platform->clock_sample(config->context, &now);
	info->clock_bits = 64U;
	info->cycles_hz = clock.cycles_hz;
	info->coarse_hz = clock.coarse_hz;
	info->cycles = now.cycles;
	info->coarse = now.coarse;
	if (platform->receive_overruns != NULL) {
		info->receive_overruns = platform->receive_overruns(config->context);
	}
	if (platform->stack_use != NULL) {
		platform->stack_use(config->context, &info->stack_size, &info->stack_peak);
	}
}

bool minrpc_device_info(struct minrpc_call *call)
{
	const struct minrpc_server *server = call->server;
	const struct minrpc_config *config = server->config;
	struct answer *answer = config->receive_buffer;
	char *end;

	answer->info = (struct device_info){
		.version = 4U,
		.size = sizeof(answer->info),
		.region_size = sizeof(struct region),
		.options_size = sizeof(options) - 1U,
		.build_id_size = config->build_id_size,
		.max_packet = config->receive_size,
		.arena_size = server->arena.size,
		.arena_used = server->arena.used,
		.arena_peak = server->arena.peak,
		.arena_largest_free = minrpc_arena_largest_free(&server->arena),
	};
	memcpy(answer->info.counters, server->counters, sizeof(server->counters));
	add_platform(&answer->info, config);
	add_regions(answer, server);
	end = (char *)&answer->regions[answer->info.region_count];
	memcpy(end, options, sizeof(options) - 1U);
	end += sizeof(options) - 1U;
	if (config->build_id_size != 0U) {
		memcpy(end, config->build_id, config->build_id_size);
		end += config->build_id_size;
	}
	answer->bytes.data = (const char *)&answer->info;
	answer->bytes.size = (size_t)(end - answer->bytes.data);
	call->value.v_handle = &answer->bytes;
	call->type_code = kTVMBytes;
	return true;
}

#endif
