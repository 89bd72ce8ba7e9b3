/*
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE

#include "c_library.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "fault.h"

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
	char text[320];

	(void)snprintf(text, sizeof(text), "fatal: assertion failed: %s, in %s, at %s:%u",
		       expression, function == NULL ? "?" : function, file, line);
	(void)fflush(stdout);
	fault_tell(text, (uintptr_t)__builtin_frame_address(0));
	(void)signal(SIGABRT, SIG_DFL);
	abort();
}
