/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The host's side of a simulated board: compiled against the host's C library.
 */
#define _GNU_SOURCE

#include "native_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <nsi_cmdline.h>

uint64_t native_host_clock_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

void native_host_restart(void)
{
	int argc;
	char **argv;

	nsi_get_cmd_line_args(&argc, &argv);
	/* The program opens its tty anew; everything but the standard streams is closed for that. */
	(void)close_range(STDERR_FILENO + 1, ~0U, 0);
	(void)execv("/proc/self/exe", argv);
	perror("minrpc: restart");
	_exit(EXIT_FAILURE);
}
