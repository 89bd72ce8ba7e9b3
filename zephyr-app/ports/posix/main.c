/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The program of this project: the server, with the built-in and the linked-in functions.
 */
#include <minrpc/posix.h>

#include "operators.h"

int main(int argc, char **argv)
{
	minrpc_tvm_bind(minrpc_device());
	return minrpc_posix_main(argc, argv, minrpc_system_library());
}
