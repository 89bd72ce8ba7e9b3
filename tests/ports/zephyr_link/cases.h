/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Cases of a program, run one by one. A failed assertion ends the program.
 */
#ifndef CASES_H_
#define CASES_H_

#include <stdio.h>

#include "check.h"

struct check_case {
	const char *name;
	void (*run)(void);
};

/* A case: `TEST(name) { ... }`, listed in the file's `CHECK_MAIN(CASE(name), ...)`. */
#define TEST(name) static void name(void)
#define CASE(name) {#name, name}
#define CHECK_MAIN(...)                                                                            \
	int main(void)                                                                             \
	{                                                                                          \
		static const struct check_case cases[] = {__VA_ARGS__};                            \
                                                                                                   \
		for (size_t i = 0U; i < sizeof(cases) / sizeof(cases[0]); i++) {                   \
			cases[i].run();                                                            \
			(void)printf("ok %s\n", cases[i].name);                                    \
		}                                                                                  \
		return 0;                                                                          \
	}

#endif /* CASES_H_ */
