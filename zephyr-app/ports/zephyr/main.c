/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The application: the server, with the built-in and the linked-in functions.
 */
#include <minrpc/zephyr.h>

#include "operators.h"

int main(void)
{
	minrpc_tvm_bind(minrpc_device());
	return minrpc_start(minrpc_system_library());
}
