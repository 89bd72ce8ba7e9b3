/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The program of this project: the server, with the built-in and the linked-in functions.
 */
#include <minrpc/baremetal.h>

#include "operators.h"

int main(void)
{
	minrpc_tvm_bind(minrpc_device());
	minrpc_baremetal_main(minrpc_system_library());
}
