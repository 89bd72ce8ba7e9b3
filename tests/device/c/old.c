/* SPDX-License-Identifier: Apache-2.0 */
#include "kept.h"

void hal_nop(void);
void hal_init();
int hal_log(int level, const char *format, ...);
int hal_sum(int count, ...);
int hal_open(struct context *context);

int used(struct context *context)
{
	hal_nop();
	return context_value(context) + 1;
}

int began(void)
{
	hal_init();
	return 5;
}

int logged(int a, double b)
{
	return hal_log(3, "%d%% %s %5.2f %c %llu %ld %hhu %.*s %p\n", a, "text", b, 'x', 1ULL << 40,
		       -3L, 511, 2, "abc", (void *)0);
}

int broken(void)
{
	return hal_log(0, "%y");
}

int summed(void)
{
	return hal_sum(3, 1, 2, 3);
}

int opened(struct context *context)
{
	return hal_open(context);
}
