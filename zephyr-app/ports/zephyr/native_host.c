/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The host's side of a simulated board: compiled against the host's C library.
 */
#define _GNU_SOURCE

#include "native_host.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <nsi_cmdline.h>

#include "../host/fault.h"

/* The simulator's variable has the name of the node in boards/native_sim.overlay. */
#define LINK_OPTION "--minrpc_uart_port="
#define HELD_FD     (STDERR_FILENO + 1)

uint64_t minrpc_native_host_clock_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* The memory for loaded code. */
static uintptr_t code;
static size_t code_size;

extern const char __executable_start[];
extern const char etext[];

static bool is_code(uintptr_t address)
{
	return address - code < code_size ||
	       address - (uintptr_t)__executable_start < (uintptr_t)(etext - __executable_start);
}

/* The ends of a program by loaded code, in the words of all ports. */
static void told_exit(int status)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "fatal: exit(%d)", status);
	(void)fflush(stdout);
	fault_tell(text, (uintptr_t)__builtin_frame_address(0));
	_exit(status);
}

static void told_abort(void)
{
	fault_abort("fatal: abort()");
}

void *minrpc_native_host_symbol(const char *name)
{
	static const struct {
		const char *name;
		uintptr_t address;
	} told[] = {{"exit", (uintptr_t)told_exit},
		    {"abort", (uintptr_t)told_abort},
		    {"__assert_fail", (uintptr_t)fault_assertion}};

	for (size_t i = 0U; i < sizeof(told) / sizeof(told[0]); i++) {
		if (strcmp(name, told[i].name) == 0) {
			return (void *)told[i].address;
		}
	}
	return dlsym(RTLD_DEFAULT, name);
}

void minrpc_native_host_tell_faults(void)
{
	faults_are_told(is_code);
}

int minrpc_native_host_make_executable(void *memory, size_t size)
{
	code = (uintptr_t)memory;
	code_size = size;
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

/* Set in the environment of a program that has been restarted. */
#define RESTARTED "MINRPC_RESTARTED"

int __real_tcflush(int fd, int queue);
int __wrap_tcflush(int fd, int queue);

/*
 * The simulator's UART flushes its tty at the start. After a restart, the answer that the program
 * gave before may still be on its way.
 */
int __wrap_tcflush(int fd, int queue)
{
	if (queue == TCIOFLUSH && getenv(RESTARTED) != NULL) {
		queue = TCIFLUSH;
	}
	return __real_tcflush(fd, queue);
}

void minrpc_native_host_restart(void)
{
	int argc;
	char **argv;

	nsi_get_cmd_line_args(&argc, &argv);
	hold_link(argv);
	(void)setenv(RESTARTED, "1", 1);
	(void)close_range(HELD_FD + 1, ~0U, 0);
	(void)execv("/proc/self/exe", argv);
	perror("minrpc: restart");
	_exit(EXIT_FAILURE);
}
