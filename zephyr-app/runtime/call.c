/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Calls: finds the function of a handle, binds the arguments, runs the function.
 */
#include "rpc.h"

/* ---------------------------------------------------------------------- call */

/* The counter of arrivals, and its value at the last look for bytes. */
struct arrivals {
	const volatile uint32_t *received;
	uint32_t seen;
};

static inline struct arrivals arrivals_of(const struct minrpc_server *server)
{
#if MINRPC_ABANDON
	return (struct arrivals){server->received, server->seen};
#else
	(void)server;
	return (struct arrivals){NULL, 0U};
#endif
}

static inline bool bytes_came(const struct arrivals *arrivals)
{
	return MINRPC_ABANDON && *arrivals->received != arrivals->seen;
}

bool minrpc_invoke_timed(const struct minrpc_callee *callee, uint32_t number,
			 struct minrpc_call *call)
{
	struct minrpc_server *server = call->server;
	struct minrpc_arena *arena = &server->arena;
	uint32_t top = arena->top;
	const struct arrivals arrivals = arrivals_of(server);
	int status = 0;

	call->callee = callee;
	call->resource = callee->resource;
	/*
	 * Gives back workspace that a call has left, before the next call. One store, so it costs
	 * the same for every function.
	 */
	if (callee->function != NULL) {
		bool done = true;

		while (number != 0U) {
			done = callee->function->run(call);
			arena->top = top;
			number--;
			if (!done || bytes_came(&arrivals)) {
				break;
			}
		}
		status = done ? 0 : -1;
	} else {
		TVMBackendPackedCFunc packed = callee->packed->funcs[callee->index];

		while (number != 0U) {
			status = packed(call->args.values, call->args.type_codes, call->args.count,
					&call->value, &call->type_code, call->resource);
			arena->top = top;
			number--;
			if (status != 0 || bytes_came(&arrivals)) {
				break;
			}
		}
	}
#if MINRPC_ABANDON
	server->left = number;
#endif
	if (status != 0 && server->error[0] == '\0') {
		(void)minrpc_fail(server, "%s returned %d, no message", minrpc_callee_name(callee),
				  status);
	}
	return status == 0;
}

#if MINRPC_ASK
bool minrpc_escapable(struct minrpc_server *server, void (*run)(void *context), void *context)
{
	uint32_t top = server->arena.top;
	void **outer = server->escape;
	void *escape[5];
	bool escaped = true;

	if (__builtin_setjmp(escape) == 0) {
		server->escape = escape;
		run(context);
		escaped = false;
	} else {
		server->arena.top = top;
	}
	server->escape = outer;
	if (outer == NULL) {
		/* Before this function restores its caller's registers, the FPU's among them. */
		(void)minrpc_restore(server, false);
	}
	return !escaped;
}
#endif

struct calls {
	const struct minrpc_callee *callee;
	uint32_t number;
	struct minrpc_call *call;
	bool done;
};

static void make_calls(void *context)
{
	struct calls *calls = context;

	calls->done = minrpc_invoke_timed(calls->callee, calls->number, calls->call);
}

bool minrpc_invoke(const struct minrpc_callee *callee, uint32_t number, struct minrpc_call *call)
{
	struct calls calls = {callee, number, call, false};

	return minrpc_escapable(call->server, make_calls, &calls) && calls.done;
}

const char *minrpc_restore(struct minrpc_server *server, bool all)
{
	const struct minrpc_config *config = server->config;

	return config->platform->restore == NULL ? NULL
						 : config->platform->restore(config->context, all);
}

/* -------------------------------------------------------------------- handles */

/*
 * Finds the functions that `handle` may belong to: the functions of an object, the global
 * functions, or the system library.
 */
static struct minrpc_object *find_library(struct minrpc_server *server, uintptr_t handle,
					  struct minrpc_library *library, uint32_t *first)
{
	struct minrpc_object *object = minrpc_object_find(server, handle);

	library->count = 1U;
	if (object != NULL) {
		library->modules = &object->module;
		*first = object->handle + 1U;
	} else if (handle >= MINRPC_HANDLE_GLOBAL) {
		library->modules = &minrpc_globals;
		*first = MINRPC_HANDLE_GLOBAL;
	} else {
		*library = server->config->library;
		*first = MINRPC_HANDLE_FUNCTION;
	}
	return object;
}

bool minrpc_find_module(struct minrpc_server *server, uintptr_t handle,
			struct minrpc_library *library, uint32_t *first)
{
	const struct minrpc_object *object = find_library(server, handle, library, first);

	return handle == MINRPC_HANDLE_MODULE ||
	       (object != NULL && object->handle == handle &&
		object->type_code == kTVMModuleHandle) ||
	       minrpc_fail_handle(server, kTVMModuleHandle, handle);
}

static bool find_callee(struct minrpc_server *server, uintptr_t handle,
			struct minrpc_callee *callee)
{
	struct minrpc_library library;
	uint32_t first;

	(void)find_library(server, handle, &library, &first);
	/* A handle below `first` wraps to a number that no function has. */
	return (handle - first <= UINT16_MAX &&
		minrpc_library_at(&library, (uint32_t)(handle - first), callee)) ||
	       minrpc_fail_handle(server, kTVMPackedFuncHandle, handle);
}

bool minrpc_check_function(struct minrpc_server *server, uintptr_t handle)
{
	struct minrpc_callee callee;

	return find_callee(server, handle, &callee);
}

bool minrpc_bind_arguments(struct minrpc_call *call)
{
	const struct minrpc_function *function = call->callee->function;
	const char *form = function != NULL ? function->arguments : NULL;

	if (form != NULL && !minrpc_check_arguments(call, form)) {
		return false;
	}
	for (int i = 0; i < call->args.count; i++) {
		if (call->args.type_codes[i] == kTVMDLTensorHandle &&
		    !minrpc_bind_tensor(call->server, call->args.values[i].v_handle,
					form != NULL && form[i] == 'w')) {
			return false;
		}
	}
	return true;
}

bool minrpc_call_handle(uintptr_t handle, struct minrpc_call *call)
{
	struct minrpc_callee callee;
	bool done;

	call->callee = &callee;
	call->value.v_int64 = 0;
	call->type_code = kTVMNullptr;
	/*
	 * The evaluator binds its arguments itself: they belong to the function that it times.
	 */
	if (!find_callee(call->server, handle, &callee) ||
	    (callee.function != &minrpc_evaluator_function && !minrpc_bind_arguments(call))) {
		return false;
	}
	done = minrpc_invoke(&callee, 1U, call);
	return minrpc_inspect_memory(call) && done;
}
