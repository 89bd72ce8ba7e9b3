/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "check.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#define CPU_SECONDS 120

/*
 * Return point of a failed assertion; without a running case it ends the process, as a fuzzer
 * needs.
 */
static jmp_buf end_of_case;
static bool in_case;

/* The runtime takes no memory from the heap; leaks of a failed case do not matter. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0:quarantine_size_mb=8:malloc_context_size=8";
}

static _Noreturn void leave(void)
{
	(void)fflush(stdout);
	if (!in_case) {
		abort();
	}
	longjmp(end_of_case, 1);
}

void check_that(bool holds, const char *file, int line, const char *format, ...)
{
	va_list list;

	if (holds) {
		return;
	}
	(void)printf("%s:%d: ", file, line);
	va_start(list, format);
	(void)vprintf(format, list);
	va_end(list);
	(void)printf("\n");
	leave();
}

void check_equal(uint64_t actual, uint64_t expected, const char *file, int line, const char *what)
{
	check_that(actual == expected, file, line,
		   "%s is %" PRIu64 " (0x%" PRIx64 "), not %" PRIu64 " (0x%" PRIx64 ")", what,
		   actual, actual, expected, expected);
}

void check_text(const char *actual, const char *expected, const char *file, int line,
		const char *what)
{
	check_that(strcmp(actual, expected) == 0, file, line, "%s is\n  \"%s\", not\n  \"%s\"",
		   what, actual, expected);
}

void check_contains(const char *actual, const char *part, const char *file, int line,
		    const char *what)
{
	check_that(strstr(actual, part) != NULL, file, line, "%s is\n  \"%s\", without\n  \"%s\"",
		   what, actual, part);
}

static void print_bytes(const char *label, const uint8_t *bytes, size_t size)
{
	(void)printf("  %s", label);
	for (size_t i = 0U; i < size && i < 64U; i++) {
		(void)printf(" %02x", bytes[i]);
	}
	(void)printf(size > 64U ? " ...\n" : "\n");
}

void check_bytes(const void *actual, const void *expected, size_t size, const char *file, int line,
		 const char *what)
{
	if (size == 0U || memcmp(actual, expected, size) == 0) {
		return;
	}
	print_bytes("actual  ", actual, size);
	print_bytes("expected", expected, size);
	check_that(false, file, line, "%s: %zu bytes differ", what, size);
}

static bool is_wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], name) == 0) {
			return true;
		}
	}
	return argc < 2;
}

static bool run_case(const struct check_case *one)
{
	(void)printf("run %s\n", one->name);
	(void)fflush(stdout);
	in_case = true;
	if (setjmp(end_of_case) != 0) {
		(void)printf("failed %s\n", one->name);
		in_case = false;
		return false;
	}
	one->run();
	in_case = false;
	(void)printf("ok %s\n", one->name);
	return true;
}

/*
 * A case in an endless loop is ended by its CPU time, not by wall time.
 */
static void limit_cpu_time(void)
{
	const struct rlimit limit = {CPU_SECONDS, CPU_SECONDS};

	(void)setrlimit(RLIMIT_CPU, &limit);
}

int check_run(const struct check_case *cases, size_t count, int argc, char **argv)
{
	volatile bool good = true;

	limit_cpu_time();
	for (volatile size_t i = 0U; i < count; i++) {
		if (is_wanted(cases[i].name, argc, argv) && !run_case(&cases[i])) {
			good = false;
		}
	}
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
