/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Assertions of the programs for tests and of the fuzzers.
 */
#ifndef CHECK_H_
#define CHECK_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Each ends the process if its condition is false. */
#define CHECK(condition) check_that(condition, __FILE__, __LINE__, "%s", #condition)
#define CHECK_EQ(actual, expected)                                                                 \
	check_equal((uint64_t)(actual), (uint64_t)(expected), __FILE__, __LINE__, #actual)
#define CHECK_CONTAINS(actual, part) check_contains(actual, part, __FILE__, __LINE__, #actual)
#define CHECK_MEM(actual, expected, size)                                                          \
	check_bytes(actual, expected, size, __FILE__, __LINE__, #actual)
#define CHECK_FAIL(...) check_that(false, __FILE__, __LINE__, __VA_ARGS__)

__attribute__((format(printf, 4, 5))) void check_that(bool holds, const char *file, int line,
						      const char *format, ...);
void check_equal(uint64_t actual, uint64_t expected, const char *file, int line, const char *what);
void check_contains(const char *actual, const char *part, const char *file, int line,
		    const char *what);
void check_bytes(const void *actual, const void *expected, size_t size, const char *file, int line,
		 const char *what);

#endif /* CHECK_H_ */
