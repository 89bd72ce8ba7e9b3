/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The program for a machine without an operating system.
 */
#include <minrpc/baremetal.h>

#include "functions.h"

int main(void)
{
	minrpc_baremetal_main((struct minrpc_library){&own_functions, 1U});
}
