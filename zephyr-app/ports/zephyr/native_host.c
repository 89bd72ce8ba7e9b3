/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The host's side of a simulated board: compiled against the host's C library.
 */
#define _GNU_SOURCE

#include "native_host.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <nsi_cmdline.h>

/* The simulator's variable has the name of the node in boards/native_sim.overlay. */
#define LINK_OPTION "--minrpc_uart_port="
#define HELD_FD     (STDERR_FILENO + 1)

uint64_t minrpc_native_host_clock_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

void *minrpc_native_host_symbol(const char *name)
{
	return dlsym(RTLD_DEFAULT, name);
}

int minrpc_native_host_make_executable(void *memory, size_t size)
{
	return mprotect(memory, size, PROT_READ | PROT_WRITE | PROT_EXEC);
}

/*
 * Keeps the link's tty open while the program is replaced, so that its other end sees no hang-up.
 */
static void hold_link(char **argv)
{
	int link;

	for (; *argv != NULL && strncmp(*argv, LINK_OPTION, strlen(LINK_OPTION)) != 0; argv++) {
	}
	link = *argv != NULL ? open(*argv + strlen(LINK_OPTION), O_RDWR | O_NOCTTY) : -1;
	if (link >= 0) {
		(void)dup2(link, HELD_FD);
	}
}

void minrpc_native_host_restart(void)
{
	int argc;
	char **argv;

	nsi_get_cmd_line_args(&argc, &argv);
	hold_link(argv);
	(void)close_range(HELD_FD + 1, ~0U, 0);
	(void)execv("/proc/self/exe", argv);
	perror("minrpc: restart");
	_exit(EXIT_FAILURE);
}
