/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Functions that an exported model's operators call while they run. The state is in a structure of
 * the caller's, so that several runs can go on at a time, each in a workspace of its own.
 */
#ifndef TVMGEN_STACK_H_
#define TVMGEN_STACK_H_

#include <stddef.h>
#include <stdint.h>

#include "tvm/runtime/c_backend_api.h"

#define TVMGEN_STACK_ALIGNMENT 16U

/* The free part of a workspace. */
struct tvmgen_stack {
	uint8_t *top;
	size_t room;
};

/* NULL if there is no room. */
static inline void *tvmgen_stack_take(struct tvmgen_stack *stack, uint64_t size)
{
	uint8_t *taken = stack->top;
	size_t rounded;

	if (size > stack->room) {
		return NULL;
	}
	rounded = ((size_t)size + TVMGEN_STACK_ALIGNMENT - 1U) / TVMGEN_STACK_ALIGNMENT *
		  TVMGEN_STACK_ALIGNMENT;
	if (rounded > stack->room) {
		return NULL;
	}
	stack->top = taken + rounded;
	stack->room -= rounded;
	return taken;
}

/* Gives back the memory taken at `taken` and after it. */
static inline int tvmgen_stack_give(struct tvmgen_stack *stack, void *taken)
{
	if ((uintptr_t)taken > (uintptr_t)stack->top) {
		return -1;
	}
	stack->room += (size_t)((uintptr_t)stack->top - (uintptr_t)taken);
	stack->top = taken;
	return 0;
}

/* Runs the tasks one after another. */
static inline int tvmgen_launch(FTVMParallelLambda task, void *data, int task_count)
{
	int count = task_count > 0 ? task_count : 1;
	TVMParallelGroupEnv environment = {NULL, count};

	for (int number = 0; number < count; number++) {
		int status = task(number, &environment, data);

		if (status != 0) {
			return status;
		}
	}
	return 0;
}

/* TVMGEN_STACK is the stack, as the including file's functions know it. */
#define TVMBackendAllocWorkspace(device_type, device_id, size, dtype_code, dtype_bits)             \
	tvmgen_stack_take(TVMGEN_STACK, (size))
#define TVMBackendFreeWorkspace(device_type, device_id, pointer)                                   \
	tvmgen_stack_give(TVMGEN_STACK, (pointer))
#define TVMBackendParallelLaunch(task, data, task_count) tvmgen_launch((task), (data), (task_count))

#endif /* TVMGEN_STACK_H_ */
