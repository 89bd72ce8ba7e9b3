/*
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE

#include "c_library.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "../heap_guard.h"
#include "../host/fault.h"

static bool is_told;

static void tell_exit(int status, void *context)
{
	char text[40];

	(void)context;
	if (is_told) {
		(void)snprintf(text, sizeof(text), "fatal: exit(%d)", status);
		fault_tell(text, (uintptr_t)__builtin_frame_address(0));
	}
}

void ends_are_told(bool told)
{
	static bool registered;

	registered = registered || on_exit(tell_exit, NULL) == 0;
	is_told = told;
}

/* Replaces glibc's function, to write the same line as all ports. */
void __assert_fail(const char *expression, const char *file, unsigned int line,
		   const char *function)
{
	fault_assertion(expression, file, line, function);
}

static pthread_mutex_t heap = PTHREAD_MUTEX_INITIALIZER;

void heap_guard_lock(void)
{
	(void)pthread_mutex_lock(&heap);
}

void heap_guard_unlock(void)
{
	(void)pthread_mutex_unlock(&heap);
}

void heap_guard_damaged(const void *block, const char *what, const void *caller)
{
	char text[128];

	(void)caller;
	heap_guard_unlock();
	(void)snprintf(text, sizeof(text), "fatal: heap: the block at %p %s", block, what);
	fault_abort(text);
}
