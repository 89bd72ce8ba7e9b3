/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* The runtime takes no memory from the heap; leaks of a failed test do not matter. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0:quarantine_size_mb=8:malloc_context_size=8";
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
	(void)fflush(stdout);
	abort();
}

void check_equal(uint64_t actual, uint64_t expected, const char *file, int line, const char *what)
{
	check_that(actual == expected, file, line,
		   "%s is %" PRIu64 " (0x%" PRIx64 "), not %" PRIu64 " (0x%" PRIx64 ")", what,
		   actual, actual, expected, expected);
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
