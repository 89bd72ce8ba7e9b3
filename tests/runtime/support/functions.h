/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Functions of the test library: each misbehaves, or returns, in one way.
 */
#ifndef FUNCTIONS_H_
#define FUNCTIONS_H_

#include <minrpc/function.h>

/*
 * tick      counts the call and adds `cost` to the clock
 * fail_at   likewise, and fails without a message when its call number is `fail_at`
 * fail_text fails with "no luck"
 * leak      takes 1000 bytes of workspace, keeps them, returns an int
 * workspace takes and returns workspace
 * bad_free  frees workspace that it does not have
 * ret       returns `value` as `type_code`
 * echo      returns its argument
 * array     returns an array: `array` below
 * call_inc  calls inc, or `nested` if that is set, through TVMFuncCall
 * insist    likewise twice, also after a failure
 * talk      logs `log_size` bytes of 'x'
 * beside    flips the byte at `where`
 * overrun   takes 16 bytes of workspace, writes `log_size` bytes to it, gives it back
 * crossed   takes two workspaces and gives back the first before the second
 * ask       asks "why?" and returns the answer's first byte, then counts the call; fails the test
 * if the answer changed an argument resource  returns 1 when it gets host_resource as its resource
 * handle, else 0
 */
extern const TVMFuncRegistry host_registry;

extern struct host_functions {
	uint32_t calls;
	uint32_t cost;
	uint32_t fail_at; /* 0: never */
	const char *nested;
	TVMValue value;
	int type_code;
	DLTensor array;
	uint32_t log_size;
	uint8_t *where;
} host_functions;

void host_functions_reset(void);

/* The resource of the functions of host_registry. */
extern char host_resource;

/* The memory that the device declares as read-only. */
extern const float host_constants[4];

#endif /* FUNCTIONS_H_ */
