/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The application: nothing but the server, with the built-in functions and those that are linked
 * in.
 */
#include <minrpc/zephyr.h>

#include "operators.h"

int main(void)
{
	minrpc_tvm_bind(minrpc_device());
	return minrpc_start(minrpc_system_library());
}
