/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Of the system library: "testing.count", "testing.crash", "testing.hang".
 */
#ifndef TESTING_H_
#define TESTING_H_

#include <tvm/runtime/c_backend_api.h>

int testing_count(TVMValue *args, int *type_codes, int count, TVMValue *value, int *value_code,
		  void *resource);
int testing_crash(TVMValue *args, int *type_codes, int count, TVMValue *value, int *value_code,
		  void *resource);
int testing_hang(TVMValue *args, int *type_codes, int count, TVMValue *value, int *value_code,
		 void *resource);

#endif /* TESTING_H_ */
