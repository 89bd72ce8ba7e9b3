/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Functions that tests of a harness need of a device: one with a side effect, one that faults, one that hangs.
 */
#include "testing.h"

#include "operators.h"

/* () -> int: how often it has been called since the device started. */
int testing_count(TVMValue *args, int *type_codes, int count, TVMValue *value, int *value_code,
		  void *resource)
{
	static int64_t calls;

	(void)args;
	(void)type_codes;
	(void)count;
	(void)resource;
	value->v_int64 = ++calls;
	*value_code = kTVMArgInt;
	return 0;
}

/* Writes where there is no memory on any port. The device reports that as it reports every fault. */
int testing_crash(TVMValue *args, int *type_codes, int count, TVMValue *value, int *value_code,
		  void *resource)
{
	(void)args;
	(void)type_codes;
	(void)count;
	(void)value;
	(void)value_code;
	(void)resource;
	*(volatile uint32_t *)(uintptr_t)0xfffffff0U = 0U;
	return operator_fail("crash: the device let a bad write pass");
}

/* Never returns. */
int testing_hang(TVMValue *args, int *type_codes, int count, TVMValue *value, int *value_code,
		 void *resource)
{
	(void)args;
	(void)type_codes;
	(void)count;
	(void)value;
	(void)value_code;
	(void)resource;
	for (;;) {
		__asm__ volatile("");
	}
}
