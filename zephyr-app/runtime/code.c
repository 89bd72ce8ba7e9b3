/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Code that arrives over the link. The client allocates a block of executable memory, links its
 * code for the address of the block, copies the code there, and registers it as a module.
 */
#include <string.h>

#include "rpc.h"

#if MINRPC_CODE_LOADING

struct code {
	struct minrpc_object object;
	uintptr_t block;
	TVMFuncRegistry registry;          /* number of the two members below */
	TVMBackendPackedCFunc functions[]; /* the names follow the last function */
};

/* A function without arguments of loaded code. */
#define MINRPC_CODE_END "minrpc_unload"

/* The alignment of a block suits instructions and all data. */
#define ALIGNMENT 64U

void minrpc_code_memory(const struct minrpc_config *config, struct minrpc_arena *code)
{
	minrpc_arena_init(code, config->code, config->code != NULL ? config->code_size : 0U);
}

struct minrpc_arena *minrpc_code_arena(struct minrpc_server *server)
{
	return server->code.size != 0U ? &server->code : &server->arena;
}

bool minrpc_code_alloc(struct minrpc_call *call)
{
	uint32_t size = minrpc_size((uint64_t)call->args.values[0].v_int64);
	struct minrpc_arena *arena = minrpc_code_arena(call->server);
	uint32_t page = call->server->config->code_page;
	void *block = NULL;

	if (page > ALIGNMENT && arena->size / 32U >= page) {
		block = minrpc_arena_alloc(arena, size, page, MINRPC_ARENA_CODE);
	}
	if (block == NULL) {
		block = minrpc_arena_alloc(arena, size, ALIGNMENT, MINRPC_ARENA_CODE);
	}
	return block == NULL ? minrpc_fail_memory(call->server, arena, size)
			     : minrpc_return_handle(call, kTVMOpaqueHandle, (uintptr_t)block);
}

/* Code that has changed the processor's state, such as a vector, restores it before it is freed. */
static void end(const struct code *code)
{
	const struct minrpc_library own = {&code->object.module, 1U};
	uint32_t index = minrpc_library_find(&own, MINRPC_CODE_END);
	TVMValue result;
	int kind;

	if (index != MINRPC_NO_FUNCTION) {
		(void)code->functions[index](NULL, NULL, 0, &result, &kind, NULL);
	}
}

static void destroy(struct minrpc_server *server, struct minrpc_object *object)
{
	uintptr_t block = ((struct code *)object)->block;

	end((const struct code *)object);
	/* The block may be older than the separate memory for code. */
	if (!minrpc_arena_free(minrpc_code_arena(server), block, MINRPC_ARENA_CODE_IN_USE)) {
		(void)minrpc_arena_free(&server->arena, block, MINRPC_ARENA_CODE_IN_USE);
	}
}

/* The parts of a registry that was found in a block. */
struct table {
	TVMFuncRegistry registry;
	uint32_t names_size; /* including the count and the last NUL; at least 2 */
	uint32_t count;
};

/* Measures the registry's names. False when the NUL of the last name is not within `room` bytes. */
static bool measure_names(struct table *table, uint32_t room)
{
	const char *start = table->registry.names;
	const char *end = start + room;
	const char *at;

	if (room < 2U) {
		return false;
	}
	at = minrpc_packed_names(&table->registry, &table->count);
	for (uint32_t left = table->count; left != 0U; left--) {
		at = memchr(at, '\0', (size_t)(end - at));
		if (at == NULL) {
			return false;
		}
		at++;
	}
	/* The second byte distinguishes the forms of the count, also when there are no names. */
	table->names_size = table->count == 0U ? 2U : (uint32_t)(at - start);
	return true;
}

/*
 * Finds the registry at `offset` in the block. True only when the block contains all of it: the
 * registry, each name with its NUL, and the address of each function. False also when it has more
 * functions than an object has handles.
 */
static bool find_table(uintptr_t block, uint32_t size, uint32_t offset, struct table *table)
{
	const TVMFuncRegistry *registry = (const TVMFuncRegistry *)(block + offset);
	uintptr_t names;
	uintptr_t functions;

	if (size < sizeof(*registry) || offset > size - sizeof(*registry) ||
	    offset % _Alignof(TVMFuncRegistry) != 0U) {
		return false;
	}
	table->registry = *registry;
	names = (uintptr_t)registry->names - block;
	functions = (uintptr_t)registry->funcs - block;
	return names < size && measure_names(table, size - (uint32_t)names) &&
	       table->count <= MINRPC_OBJECT_FUNCTIONS && functions <= size &&
	       table->count <= (size - functions) / sizeof(*registry->funcs);
}

/*
 * Creates the module. It copies the table, so a later write to the block, by a client or by loaded
 * code, can't affect look-ups.
 */
static struct code *create(struct minrpc_server *server, const struct table *table)
{
	uint32_t functions_size = table->count * (uint32_t)sizeof(*table->registry.funcs);
	struct code *code = minrpc_object_create(server, (uint32_t)sizeof(*code) + functions_size +
								 table->names_size);
	char *names;

	if (code == NULL) {
		return NULL;
	}
	names = (char *)(code->functions + table->count);
	memcpy(code->functions, table->registry.funcs, functions_size);
	memcpy(names, table->registry.names, table->names_size);
	code->registry = (TVMFuncRegistry){names, code->functions};
	code->object.type_code = kTVMModuleHandle;
	code->object.module.packed = &code->registry;
	code->object.destroy = destroy;
	return code;
}

bool minrpc_code_load(struct minrpc_call *call)
{
	struct minrpc_server *server = call->server;
	const struct minrpc_config *config = server->config;
	const TVMValue *values = call->args.values;
	uintptr_t block = minrpc_handle((uint64_t)values[0].v_int64);
	struct table table;
	struct code *code;
	uint32_t size;

	if (!minrpc_arena_find(minrpc_code_arena(server), block, MINRPC_ARENA_CODE, &size)) {
		return minrpc_fail_handle(server, kTVMOpaqueHandle, block);
	}
	if (!find_table(block, size, minrpc_size((uint64_t)values[1].v_int64), &table)) {
		return minrpc_fail(server, "no registry there: linked for another address");
	}
	if (config->platform->code_ready != NULL &&
	    config->platform->code_ready(config->context, (void *)block, size) != 0) {
		return minrpc_fail(server, "can't make 0x%lx executable", (unsigned long)block);
	}
	code = create(server, &table);
	if (code == NULL) {
		return false;
	}
	minrpc_arena_set_kind(block, MINRPC_ARENA_CODE_IN_USE);
	code->block = block;
	call->value.v_int64 = code->object.handle;
	call->type_code = kTVMModuleHandle;
	return true;
}

#endif
