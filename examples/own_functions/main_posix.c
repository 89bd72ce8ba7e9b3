/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The program for this machine.
 */
#include <minrpc/posix.h>

#include "functions.h"

int main(int argc, char **argv)
{
	return minrpc_posix_main(argc, argv, (struct minrpc_library){&own_functions, 1U});
}
