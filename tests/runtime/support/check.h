/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Assertions, and a main that runs a file's cases one by one. This project has its own since the
 * same files are also built for 32 bits, for which no test library is installed.
 */
#ifndef CHECK_H_
#define CHECK_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct check_case {
	const char *name;
	void (*run)(void);
};

/* A case: `TEST(name) { ... }`, listed in the file's `CHECK_MAIN(CASE(name), ...)`. */
#define TEST(name) static void name(void)
#define CASE(name) {#name, name}
#define CHECK_MAIN(...)                                                                            \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		static const struct check_case cases[] = {__VA_ARGS__};                            \
                                                                                                   \
		return check_run(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);             \
	}

/* Each ends the running case if its condition is false. */
#define CHECK(condition) check_that(condition, __FILE__, __LINE__, "%s", #condition)
#define CHECK_EQ(actual, expected)                                                                 \
	check_equal((uint64_t)(actual), (uint64_t)(expected), __FILE__, __LINE__, #actual)
#define CHECK_STR(actual, expected)  check_text(actual, expected, __FILE__, __LINE__, #actual)
#define CHECK_CONTAINS(actual, part) check_contains(actual, part, __FILE__, __LINE__, #actual)
#define CHECK_MEM(actual, expected, size)                                                          \
	check_bytes(actual, expected, size, __FILE__, __LINE__, #actual)
#define CHECK_FAIL(...) check_that(false, __FILE__, __LINE__, __VA_ARGS__)

__attribute__((format(printf, 4, 5))) void check_that(bool holds, const char *file, int line,
						      const char *format, ...);
void check_equal(uint64_t actual, uint64_t expected, const char *file, int line, const char *what);
void check_text(const char *actual, const char *expected, const char *file, int line,
		const char *what);
void check_contains(const char *actual, const char *part, const char *file, int line,
		    const char *what);
void check_bytes(const void *actual, const void *expected, size_t size, const char *file, int line,
		 const char *what);

/*
 * Runs all cases, or those named; prints "ok NAME" or "failed NAME" a line. Returns main's status.
 */
int check_run(const struct check_case *cases, size_t count, int argc, char **argv);

#endif /* CHECK_H_ */
