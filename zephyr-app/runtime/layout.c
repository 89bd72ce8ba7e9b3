/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * minrpc.layout: moves the memory for arrays and for code while the device runs. A layout lasts
 * until the session ends. The next session begins with the layout of the configuration.
 */
#include "rpc.h"

#if MINRPC_LAYOUT

static bool lies_in(const struct minrpc_arena *arena, const void *memory, uint32_t size)
{
	uintptr_t from = (uintptr_t)arena->base - (uintptr_t)memory;

	return from <= size && arena->size <= size - from;
}

static bool is_for_arrays(const struct minrpc_config *config, const struct minrpc_arena *arena)
{
	return lies_in(arena, config->arena, config->arena_size) ||
	       lies_in(arena, config->more_memory, config->more_memory_size);
}

#if MINRPC_CODE_LOADING
/* Code may use the port's memory for code or, without such memory, wherever arrays may lie. */
static bool is_for_code(const struct minrpc_config *config, const struct minrpc_arena *arena)
{
	return config->code != NULL ? lies_in(arena, config->code, config->code_size)
				    : is_for_arrays(config, arena);
}
#else
#define is_for_code(config, arena)       false
#define minrpc_code_memory(config, code) (*(code) = (struct minrpc_arena){0})
#endif

static bool overlap(const struct minrpc_arena *left, const struct minrpc_arena *right)
{
	uintptr_t first = (uintptr_t)left->base;
	uintptr_t second = (uintptr_t)right->base;

	return first < second ? second - first < left->size : first - second < right->size;
}

/*
 * Transfers the live blocks of `arena` to its new place. Blocks keep their addresses: returns
 * false, without a change, when a block would lie outside of the new place.
 */
static bool take_blocks(struct minrpc_arena *moved, const struct minrpc_arena *arena)
{
	if (arena->end != 0U && (moved->base != arena->base || moved->size < arena->end)) {
		return false;
	}
	moved->end = arena->end;
	return true;
}

/*
 * True when a numbered request will find memory for its answer: without it the session could not go
 * on.
 */
static bool has_spare(const struct minrpc_arena *arena)
{
	return !MINRPC_NUMBERED || minrpc_arena_largest_free(arena) >= MINRPC_SPARE_MIN;
}

static void move(struct minrpc_arena *arena, const struct minrpc_arena *moved)
{
	if (moved->base != arena->base) {
		*arena = *moved;
	} else if (moved->size != arena->size) {
		arena->size = moved->size;
		arena->top = moved->size;
		arena->peak = arena->used;
	}
}

void minrpc_layout_take(struct minrpc_server *server)
{
	if (server->laid_out) {
		server->laid_out = false;
		move(&server->arena, &server->next_arena);
		move(&server->code, &server->next_code);
	}
}

void minrpc_layout_restore(struct minrpc_server *server)
{
	const struct minrpc_config *config = server->config;

	minrpc_arena_init(&server->next_arena, config->arena, config->arena_size);
	minrpc_code_memory(config, &server->next_code);
	/* When blocks that functions keep between calls are in the way, the layout stays. */
	server->laid_out = take_blocks(&server->next_arena, &server->arena) &&
			   take_blocks(&server->next_code, &server->code);
	minrpc_layout_take(server);
}

bool minrpc_layout(struct minrpc_call *call)
{
	struct minrpc_server *server = call->server;
	const struct minrpc_config *config = server->config;
	const TVMValue *values = call->args.values;
	void *arena_at = (void *)minrpc_handle((uint64_t)values[0].v_int64);
	uint32_t arena_size = minrpc_size((uint64_t)values[1].v_int64);
	void *code_at = (void *)minrpc_handle((uint64_t)values[2].v_int64);
	uint32_t code_size = minrpc_size((uint64_t)values[3].v_int64);
	struct minrpc_arena arena;
	struct minrpc_arena code;

	minrpc_arena_init(&arena, arena_at, arena_size);
	minrpc_arena_init(&code, code_at, code_size);
	if (code_size == 0U) {
		minrpc_code_memory(config, &code);
	} else if (code.size == 0U || !is_for_code(config, &code)) {
		return minrpc_fail(server, "no memory for code: %u bytes at 0x%lx",
				   (unsigned int)code_size, (unsigned long)(uintptr_t)code_at);
	}
	if (arena.size == 0U || !is_for_arrays(config, &arena)) {
		return minrpc_fail(server, "no memory for arrays: %u bytes at 0x%lx",
				   (unsigned int)arena_size, (unsigned long)(uintptr_t)arena_at);
	}
	if (!has_spare(&arena)) {
		return minrpc_fail(server, "too little memory for arrays: %u bytes",
				   (unsigned int)arena_size);
	}
	if (overlap(&arena, &code)) {
		return minrpc_fail(server, "arrays and code would overlap");
	}
	/*
	 * The answer has no text, so it does not need the memory for texts, which would be in the
	 * way.
	 */
	minrpc_free_spare(server);
	/*
	 * The new layout takes effect after this call, which still restores the arena's workspace.
	 */
	server->laid_out = take_blocks(&arena, &server->arena) && has_spare(&arena) &&
			   take_blocks(&code, &server->code);
	server->next_arena = arena;
	server->next_code = code;
	return minrpc_return_int(call, server->laid_out);
}

#endif
