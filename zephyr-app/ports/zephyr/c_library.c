/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The end of a program by its own code: an assertion, abort, exit. Zephyr's own functions print
 * less, and its exit hangs. The linker replaces them by these functions (--wrap), and links loaded
 * code to these. The same applies to clock.
 */
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

#include <minrpc/server.h>
#include <minrpc/stack.h>
#include <minrpc/text.h>
#include <minrpc/zephyr.h>

#include "../heap_guard.h"
#include "server.h"
#include "link.h"
#include "log_console.h"
#include "restart.h"

#define TEXT_SIZE 320U

/*
 * The last words end with the return address of the function that ended the program, since the
 * stack also has return addresses of earlier calls.
 */
#define end(format, ...)                                                                           \
	end_with("fatal: " format "; lr 0x%lx", __VA_ARGS__,                                       \
		 (unsigned long)(uintptr_t)__builtin_return_address(0))

static FUNC_NORETURN __printf_like(1, 2) void end_with(const char *format, ...)
{
	char text[TEXT_SIZE];
	va_list list;

	va_start(list, format);
	minrpc_text_list(text, sizeof(text), format, list);
	va_end(list);
	minrpc_log_console_send(true);
	printk("%s\n", text);
	minrpc_link_poll_only();
	minrpc_device_last_words(text, strlen(text));
	minrpc_device_callers((uintptr_t)minrpc_stack_pointer());
	minrpc_restart();
}

FUNC_NORETURN void __wrap_abort(void);
FUNC_NORETURN void __wrap_exit(int status);
FUNC_NORETURN void __wrap___assert_func(const char *file, int line, const char *function,
					const char *expression);
FUNC_NORETURN void __wrap___assert_no_args(void);

void __wrap_abort(void)
{
	end("%s", "abort()");
}

void __wrap_exit(int status)
{
	end("exit(%d)", status);
}

FUNC_NORETURN void __wrap__exit(int status) __attribute__((alias("__wrap_exit")));

void __wrap___assert_func(const char *file, int line, const char *function, const char *expression)
{
	end("assertion failed: %s, in %s, at %s:%d", expression, function == NULL ? "?" : function,
	    file, line);
}

/* The smallest C library has no clock_t. */
#if !defined(CONFIG_MINIMAL_LIBC)

clock_t __wrap_clock(void);

/* Counts since the start; the C library's own clock needs times(), which Zephyr lacks. */
clock_t __wrap_clock(void)
{
	return (clock_t)(k_ticks_to_us_floor64((uint64_t)k_uptime_ticks()) * CLOCKS_PER_SEC /
			 1000000U);
}

#endif

/* Called without CONFIG_PICOLIBC_ASSERT_VERBOSE. */
void __wrap___assert_no_args(void)
{
	end("%s", "assertion failed: CONFIG_PICOLIBC_ASSERT_VERBOSE is off");
}

#if defined(CONFIG_CPU_CORTEX_M)

int __wrap___aeabi_idiv0(int result);
long long __wrap___aeabi_ldiv0(long long result);

/* The compiler's library divides by zero: a fault, as that of the divide instruction. */
int __wrap___aeabi_idiv0(int result)
{
	(void)result;
	__builtin_trap();
}

long long __wrap___aeabi_ldiv0(long long result)
{
	(void)result;
	__builtin_trap();
}

#endif

#if defined(CONFIG_MINRPC_HEAP_GUARD)

static K_MUTEX_DEFINE(heap);

void heap_guard_lock(void)
{
	(void)k_mutex_lock(&heap, K_FOREVER);
}

void heap_guard_unlock(void)
{
	(void)k_mutex_unlock(&heap);
}

void heap_guard_damaged(const void *block, const char *what, const void *caller)
{
	end_with("fatal: heap: the block at 0x%lx %s; lr 0x%lx", (unsigned long)(uintptr_t)block,
		 what, (unsigned long)(uintptr_t)caller);
}

#endif
