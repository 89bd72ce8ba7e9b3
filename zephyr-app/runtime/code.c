/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Code that arrives over the link: a block of executable memory that the client copies it to, and a
 * module of its functions once it is there. The client has linked it for the block's address.
 */
#include "rpc.h"

#if MINRPC_CODE_LOADING

struct code {
	struct minrpc_object object;
	uintptr_t block;
};

/* A block starts where both an instruction and any datum may. */
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
	void *block = minrpc_arena_alloc(arena, size, ALIGNMENT, MINRPC_ARENA_CODE);

	return block == NULL ? minrpc_fail_memory(call->server, arena, size)
			     : minrpc_return_handle(call, kTVMOpaqueHandle, (uintptr_t)block);
}

static void destroy(struct minrpc_server *server, struct minrpc_object *object)
{
	uintptr_t block = ((struct code *)object)->block;

	/* It may be from before code had memory of its own. */
	if (!minrpc_arena_free(minrpc_code_arena(server), block, MINRPC_ARENA_CODE_IN_USE)) {
		(void)minrpc_arena_free(&server->arena, block, MINRPC_ARENA_CODE_IN_USE);
	}
}

/*
 * The registry at `offset` in the block of `size` bytes; NULL unless it and its tables lie in the
 * block.
 */
static const TVMFuncRegistry *registry_in(uintptr_t block, uint32_t size, uint32_t offset)
{
	const TVMFuncRegistry *registry = (const TVMFuncRegistry *)(block + offset);

	if (size < sizeof(*registry) || offset > size - sizeof(*registry) ||
	    offset % _Alignof(TVMFuncRegistry) != 0U ||
	    (uintptr_t)registry->names - block >= size ||
	    (uintptr_t)registry->funcs - block >= size) {
		return NULL;
	}
	return registry;
}

bool minrpc_code_load(struct minrpc_call *call)
{
	struct minrpc_server *server = call->server;
	const struct minrpc_config *config = server->config;
	const TVMValue *values = call->args.values;
	uintptr_t block = minrpc_handle((uint64_t)values[0].v_int64);
	const TVMFuncRegistry *registry;
	struct code *code;
	uint32_t size;

	if (!minrpc_arena_find(minrpc_code_arena(server), block, MINRPC_ARENA_CODE, &size)) {
		return minrpc_fail_handle(server, kTVMOpaqueHandle, block);
	}
	registry = registry_in(block, size, minrpc_size((uint64_t)values[1].v_int64));
	if (registry == NULL) {
		return minrpc_fail(server, "no registry there: linked for another address");
	}
	if (config->platform->code_ready != NULL &&
	    config->platform->code_ready(config->context, (void *)block, size) != 0) {
		return minrpc_fail(server, "can't make 0x%x executable", (unsigned int)block);
	}
	code = minrpc_object_create(server, sizeof(*code));
	if (code == NULL) {
		return false;
	}
	minrpc_arena_set_kind(block, MINRPC_ARENA_CODE_IN_USE);
	code->block = block;
	code->object.type_code = kTVMModuleHandle;
	code->object.module.packed = registry;
	code->object.destroy = destroy;
	call->value.v_int64 = code->object.handle;
	call->type_code = kTVMModuleHandle;
	return true;
}

#endif
