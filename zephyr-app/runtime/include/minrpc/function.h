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
	 * "": none. NULL: any number of any kind. What was checked is checked before the function
	 * runs, so that a function's time has no part of it.
	 */
	const char *arguments;

	/** True, with the result in `call`; or `return minrpc_fail(call->server, "...")`. */
	bool (*run)(struct minrpc_call *call);
};

/** A call under way. What `args` points to lives until the function returns. */
struct minrpc_call {
	struct minrpc_server *server;
	const struct minrpc_callee *callee; /**< the function; minrpc_callee_name is for texts */
	void *resource;                     /**< of its module */
	struct minrpc_args args;
	TVMValue value; /**< the result: nothing, unless the function sets both */
	int type_code;
};

static inline bool minrpc_return_int(struct minrpc_call *call, int64_t value)
{
	call->value.v_int64 = value;
	call->type_code = kTVMArgInt;
	return true;
}

/**
 * A table of functions: `count` of ours, and behind them those of a registry as TVM's code
 * generator writes it, which may be NULL. Names are looked up in that order, the first one wins.
 */
struct minrpc_module {
	const struct minrpc_function *functions;
	uint32_t count;
	const TVMFuncRegistry *packed;
	void *resource; /**< what each gets: call->resource, or resource_handle */
};

/** Modules that are searched one after another; functions are numbered through all of them. */
struct minrpc_library {
	const struct minrpc_module *modules;
	uint32_t count;
};

/** A function that was looked up: one of ours, or one of a registry. */
struct minrpc_callee {
	const struct minrpc_function *function; /**< NULL: it is funcs[index] of the registry */
	const TVMFuncRegistry *packed;
	uint32_t index;
	void *resource;
};

/** Its name, in the table that it is from. */
const char *minrpc_callee_name(const struct minrpc_callee *callee);

#define MINRPC_NO_FUNCTION UINT32_MAX

/** The number of the function of that name; MINRPC_NO_FUNCTION when there is none. */
uint32_t minrpc_library_find(const struct minrpc_library *library, const char *name);

/**
 * Looks a function up by its number.
 *
 * @param callee  filled; points into the library's tables, which must outlive it
 * @return false when `index` is no function's
 */
bool minrpc_library_at(const struct minrpc_library *library, uint32_t index,
		       struct minrpc_callee *callee);

/**
 * Checks number and kinds of the arguments.
 *
 * @param arguments  a letter for each: see struct minrpc_function
 * @return false, and the call has failed with what was expected and what came, when they are others
 */
bool minrpc_check_arguments(struct minrpc_call *call, const char *arguments);

/**
 * Calls a function whose arguments have been checked. This is the loop that the time evaluator
 * times.
 *
 * @param number  of calls; 0: none. Where bytes come in, no more are made: server->left says how
 * many were not
 * @return false when a call failed; then no more were made, and the text is the function's own, or
 * one that says so
 */
bool minrpc_invoke(const struct minrpc_callee *callee, uint32_t number, struct minrpc_call *call);

#ifdef __cplusplus
}
#endif

#endif /* MINRPC_FUNCTION_H_ */
