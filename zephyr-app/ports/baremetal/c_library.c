/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The machine's part of picolibc: a console for printf, a clock, and the end of a program. Each is
 * linked only if the firmware or loaded code may use it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

#include <minrpc/baremetal.h>
#include <minrpc/stack.h>
#include <minrpc/text.h>

#include "machine.h"
#include "port.h"

#ifdef MACHINE_CONSOLE

void console_flush(void)
{
}

static int put(char c, FILE *stream)
{
	(void)stream;
	console_put(c);
	return (unsigned char)c;
}

#else

/* Text goes to the client, one message for each line. */
static char line[80];
static uint32_t line_size;

void console_flush(void)
{
	(void)minrpc_server_log(minrpc_device(), line, line_size);
	line_size = 0U;
}

static int put(char c, FILE *stream)
{
	(void)stream;
	if (c == '\n' || line_size == sizeof(line)) {
		console_flush();
	}
	if (c != '\n') {
		line[line_size++] = c;
	}
	return (unsigned char)c;
}

#endif

static FILE console = FDEV_SETUP_STREAM(put, NULL, NULL, _FDEV_SETUP_WRITE);
/* Each read of standard input is the end of a file. */
static FILE nothing = FDEV_SETUP_STREAM(NULL, NULL, NULL, 0);

FILE *const stdin = &nothing;
FILE *const stdout = &console;
FILE *const stderr = &console;

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
