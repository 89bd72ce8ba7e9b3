/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Functions that a client can call, and modules: tables of them.
 *
 *     static bool negate(struct minrpc_call *call)
 *     {
 *             return minrpc_return_int(call, -call->args.values[0].v_int64);
 *     }
 *
 *     static const struct minrpc_function functions[] = {
 *             {"negate", "i", negate},
 *     };
 */
#ifndef MINRPC_FUNCTION_H_
#define MINRPC_FUNCTION_H_

#include <stdbool.h>
#include <stdint.h>

#include <minrpc/minrpc_config.h>
#include <minrpc/packed.h>
#include <tvm/runtime/crt/func_registry.h>

#ifdef __cplusplus
extern "C" {
#endif

struct minrpc_server;
struct minrpc_call;
struct minrpc_callee;

struct minrpc_function {
	const char *name;

	/**
	 * One letter for each argument:
	 *   i  int or bool      f  float            y  dtype            d  device
	 *   s  string           z  string or null   b  bytes            h  handle or null
	 *   t  tensor           w  tensor in memory that can be written
	 *   m  module, also as a handle
	 *
	 * "": none. NULL: any number of any kind. Arguments are checked before the function runs,
	 * so that its time does not include the check.
	 */
	const char *arguments;

	/**
	 * Returns true, with the result in `call`; or `return minrpc_fail(call->server, "...")`.
	 */
	bool (*run)(struct minrpc_call *call);
};

/** A call in progress. `args` points to memory that is valid until the function returns. */
struct minrpc_call {
	struct minrpc_server *server;
	/** the called function; minrpc_callee_name gives its name */
	const struct minrpc_callee *callee;
	void *resource; /**< of the function's module */
	struct minrpc_args args;
	TVMValue value; /**< the result; null unless the function sets value and type_code */
	int type_code;
};

static inline bool minrpc_return_int(struct minrpc_call *call, int64_t value)
{
	call->value.v_int64 = value;
	call->type_code = kTVMArgInt;
	return true;
}

/**
 * A table of functions: first `count` functions of ours, then the functions of a registry in the
 * form of TVM's code generator, which may be NULL. Names are looked up in this order, and the first
 * match wins.
 */
struct minrpc_module {
	const struct minrpc_function *functions;
	uint32_t count;
	const TVMFuncRegistry *packed;
	void *resource; /**< passed to each function: call->resource, or resource_handle */
};

/** Modules that are searched in order. Function numbers continue from module to module. */
struct minrpc_library {
	const struct minrpc_module *modules;
	uint32_t count;
};

/** A function that was looked up, in a table of ours or in a registry. */
struct minrpc_callee {
	/** NULL: the function is funcs[index] of the registry */
	const struct minrpc_function *function;
	const TVMFuncRegistry *packed;
	uint32_t index;
	void *resource;
};

/** Returns the function's name, which lies in its table. */
const char *minrpc_callee_name(const struct minrpc_callee *callee);

#define MINRPC_NO_FUNCTION UINT32_MAX

/** Returns the number of the function with this name; MINRPC_NO_FUNCTION when there is none. */
uint32_t minrpc_library_find(const struct minrpc_library *library, const char *name);

/**
 * Looks a function up by its number.
 *
 * @param callee  set to the function; points into the library's tables, which must outlive it
 * @return false when no function has the number `index`
 */
bool minrpc_library_at(const struct minrpc_library *library, uint32_t index,
		       struct minrpc_callee *callee);

/**
 * Checks the number and types of the arguments.
 *
 * @param arguments  a letter for each: see struct minrpc_function
 * @return false when they differ; the failure's text names the expected and the actual arguments
 */
bool minrpc_check_arguments(struct minrpc_call *call, const char *arguments);

/**
 * Calls a function whose arguments have been checked. The time evaluator times this loop.
 *
 * @param number  of calls, may be 0. The loop ends early when bytes arrive: server->left is then
 *                the number of calls that were not made.
 * @return false when a call failed, which ends the loop. The text is the function's, or a general
 *         text if the function has set none.
 */
bool minrpc_invoke(const struct minrpc_callee *callee, uint32_t number, struct minrpc_call *call);

#ifdef __cplusplus
}
#endif

#endif /* MINRPC_FUNCTION_H_ */
