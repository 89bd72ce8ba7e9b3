/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Finds writes beside arrays. The look follows each call, outside the measured time, and the call's
 * own answer reports the damage.
 */
#include "rpc.h"

#if MINRPC_GUARDS

static bool inspect(struct minrpc_call *call, struct minrpc_arena *arena)
{
	const void *array = arena->base;
	enum minrpc_damage damage = minrpc_arena_inspect(arena, &array);

	switch (damage) {
	case MINRPC_DAMAGE_NONE:
		return true;
	case MINRPC_DAMAGE_HEADERS:
		call->server->damaged = true;
		return minrpc_fail(
			call->server,
			"%s wrote far beside the array at 0x%lx: the device's memory is lost",
			minrpc_callee_name(call->callee), (unsigned long)(uintptr_t)array);
	default:
		return minrpc_fail(call->server, "%s wrote %s the array at 0x%lx",
				   minrpc_callee_name(call->callee),
				   damage == MINRPC_DAMAGE_PAST ? "past" : "before",
				   (unsigned long)(uintptr_t)array);
	}
}

static bool inspect_heap(struct minrpc_call *call)
{
	const struct minrpc_config *config = call->server->config;
	const char *where = "";
	const void *place = config->platform->heap_inspect == NULL
				    ? NULL
				    : config->platform->heap_inspect(config->context, &where);

	return place == NULL ||
	       minrpc_fail(call->server, "%s wrote %s at 0x%lx", minrpc_callee_name(call->callee),
			   where, (unsigned long)(uintptr_t)place);
}

bool minrpc_inspect_memory(struct minrpc_call *call)
{
#if MINRPC_CODE_LOADING
	if (call->server->code.size != 0U && !inspect(call, &call->server->code)) {
		return false;
	}
#endif
	return inspect(call, &call->server->arena) && inspect_heap(call);
}

#endif
