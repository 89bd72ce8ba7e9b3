/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The machine's part of picolibc: a clock, and the end of a program. Each is linked only if the
 * firmware or loaded code may use it.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

#include <minrpc/stack.h>
#include <minrpc/text.h>

#include "machine.h"
#include "port.h"

/*
 * The device restarts; the client's call fails with the last words. They end with the return
 * address of the function that ended the program, since the stack also has return addresses of
 * earlier calls.
 */
#define RETURN_ADDRESS "; lr 0x%lx"
#define end(format, ...)                                                                           \
	end_with("fatal: " format RETURN_ADDRESS, __VA_ARGS__,                                     \
		 (unsigned long)(uintptr_t)__builtin_return_address(0))

__attribute__((noreturn, format(printf, 1, 2))) static void end_with(const char *format, ...)
{
	char text[320];
	va_list list;

	va_start(list, format);
	minrpc_text_list(text, sizeof(text), format, list);
	va_end(list);
	fault_report(text, (uintptr_t)minrpc_stack_pointer());
}

void __assert_func(const char *file, int line_number, const char *function, const char *expression)
{
	end("assertion failed: %s, in %s, at %s:%d", expression, function == NULL ? "?" : function,
	    file, line_number);
}

/* Code that is compiled with -fstack-protector compares a copy of this value on its stack. */
uintptr_t __stack_chk_guard = (uintptr_t)0x5d0fe1b37a2c9e64U;

__attribute__((noreturn)) void __stack_chk_fail(void);

void __stack_chk_fail(void)
{
	end("%s", "stack: a write past an array");
}

void abort(void)
{
	end("%s", "abort()");
}

/*
 * Picolibc's function that calls the functions given to atexit. Linked only if the program uses
 * atexit.
 */
#pragma weak __call_exitprocs
void __call_exitprocs(int status, void *unused);

/* The whole device restarts. */
void exit(int status)
{
	if (__call_exitprocs != NULL) {
		__call_exitprocs(status, NULL);
	}
	end("exit(%d)", status);
}

void _exit(int status)
{
	end("exit(%d)", status);
}

/* A machine has no calendar: time counts from its start. */
int gettimeofday(struct timeval *now, void *zone)
{
	uint64_t cycles = clock_cycles();

	(void)zone;
	now->tv_sec = (time_t)(cycles / MACHINE_CLOCK_HZ);
	now->tv_usec = (suseconds_t)(cycles % MACHINE_CLOCK_HZ * 1000000U / MACHINE_CLOCK_HZ);
	return 0;
}

clock_t clock(void)
{
	return (clock_t)(clock_cycles() * CLOCKS_PER_SEC / MACHINE_CLOCK_HZ);
}
