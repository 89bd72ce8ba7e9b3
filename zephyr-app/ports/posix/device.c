/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A device that is a process. It speaks on a tty that it opens (--link TTY) or on an open
 * descriptor that it inherits (--fd N, a pty's master for instance), and ends when the other end is
 * closed; with --parent PID it also ends with that process, which must have started it. With
 * --memory N@ADDRESS arrays lie in the file behind descriptor N, mapped there: a process with the
 * file sees them, too.
 */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <minrpc/posix.h>

#include "../heap_guard.h"
#include "../host/build_id.h"
#include "../host/fault.h"
#include "c_library.h"
#include "counters.h"
#include "parent.h"

#define ARENA_SIZE     (16U * 1024U * 1024U)
#define CODE_SIZE      (64U * 1024U * 1024U)
#define LINK_BUFFER    65536U
#define NONCE_VARIABLE "MINRPC_NONCE"
/* Largest number of modules of a library, to which the port's own functions are added. */
#define MODULES_MAX    7U

struct posix_port {
	int link;
	char **arguments;
	/* Received bytes: the server has the first `taken` bytes. */
	uint8_t received[LINK_BUFFER];
	uint32_t taken;
	uint32_t fill;
};

static struct minrpc_server server;

struct minrpc_server *minrpc_device(void)
{
	return &server;
}

static int port_write(void *context, const uint8_t *data, uint32_t size)
{
	const struct posix_port *port = context;

	/* Text that a function has printed is written before its answer. */
	(void)fflush(stdout);
	while (size != 0U) {
		ssize_t written = write(port->link, data, size);

		if (written < 0 && errno == EINTR) {
			continue;
		}
		if (written <= 0) {
			return -1;
		}
		data += written;
		size -= (uint32_t)written;
	}
	return 0;
}

static void port_clock_describe(void *context, struct minrpc_clock *clock)
{
	(void)context;
	*clock = (struct minrpc_clock){.cycles_hz = 1000000000U};
}

static void port_clock_sample(void *context, struct minrpc_clock_sample *sample)
{
	struct timespec now;

	(void)context;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	sample->cycles = (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
	sample->coarse = 0U;
}

static const char *port_restore(void *context, bool all)
{
	(void)context;
	if (all) {
		host_restore();
	}
	return NULL;
}

static void port_sleep_ms(void *context, uint32_t milliseconds)
{
	struct timespec left = {.tv_sec = milliseconds / 1000U,
				.tv_nsec = (long)(milliseconds % 1000U) * 1000000L};

	(void)context;
	while (nanosleep(&left, &left) != 0 && errno == EINTR) {
	}
}

/* A process restarts by executing its program again. */
static void port_reset(void *context)
{
	const struct posix_port *port = context;

	(void)execv("/proc/self/exe", port->arguments);
	perror("minrpc_posix: reset");
	exit(EXIT_FAILURE);
}

#if MINRPC_CODE_LOADING
/* Memory near the program's own code, so that calls can reach it. */
static _Alignas(65536) uint8_t code[CODE_SIZE];

static int port_code_ready(void *context, void *block, uint32_t size)
{
	(void)context;
	__builtin___clear_cache((char *)block, (char *)block + size);
	return 0;
}
#endif

#if MINRPC_CODE_LOADING
/*
 * Returns the address of a symbol of the program's shared libraries; 0 if they have no such symbol.
 */
static bool find_symbol(struct minrpc_call *call)
{
	void *program = dlopen(NULL, RTLD_LAZY);
	void *symbol = dlsym(program, call->args.values[0].v_str);

	(void)dlclose(program);
	return minrpc_return_int(call, (int64_t)(intptr_t)symbol);
}

static const struct minrpc_function port_functions[] = {
	{"minrpc.symbol", "s", find_symbol},
};

/* A program's library, followed by the port's own functions. */
static struct minrpc_library with_port_functions(struct minrpc_library library)
{
	static struct minrpc_module modules[MODULES_MAX + 1U];

	if (library.count > MODULES_MAX) {
		return library;
	}
	memcpy(modules, library.modules, library.count * sizeof(modules[0]));
	modules[library.count] = (struct minrpc_module){.functions = port_functions, .count = 1U};
	return (struct minrpc_library){modules, library.count + 1U};
}
#else
#define with_port_functions(library) (library)
#endif

/*
 * Reads new bytes without waiting, and puts them after the server's bytes. A full buffer is dropped
 * after all of it has been searched.
 */
static uint32_t port_pending(void *context, uint32_t from, const uint8_t **data)
{
	struct posix_port *port = context;
	struct pollfd look = {.fd = port->link, .events = POLLIN};

	if (port->fill < LINK_BUFFER && poll(&look, 1U, 0) == 1 && (look.revents & POLLIN) != 0) {
		ssize_t size =
			read(port->link, port->received + port->fill, LINK_BUFFER - port->fill);

		port->fill += size > 0 ? (uint32_t)size : 0U;
	}
	*data = port->received + port->taken + from;
	if (port->fill == LINK_BUFFER && from == LINK_BUFFER - port->taken) {
		port->fill = port->taken;
		return 0U;
	}
	return port->fill - port->taken - from;
}

/* Reads the link's bytes, to the front of the buffer. Returns 0 when the link is closed.
 */
static ssize_t read_link(struct posix_port *port)
{
	/* A part of the buffer stays free for the message that ends a measurement. */
	ssize_t size = read(port->link, port->received, LINK_BUFFER / 2U);

	port->taken = 0U;
	port->fill = size > 0 ? (uint32_t)size : 0U;
	if (size < 0 && errno == EINTR) {
		return 1;
	}
	return size < 0 && errno == EIO ? 0 : size; /* a pty's error when its other end is closed */
}

#if MINRPC_ASK
static uint32_t port_receive(void *context, const uint8_t **data)
{
	struct posix_port *port = context;

	if (port->taken == port->fill && read_link(port) <= 0) {
		exit(EXIT_SUCCESS); /* the other end has gone */
	}
	*data = port->received + port->taken;
	port->taken = port->fill;
	return (uint32_t)(port->received + port->fill - *data);
}
#endif

#ifdef HEAP_GUARD
static const void *port_heap_inspect(void *context, const char **where)
{
	(void)context;
	return heap_guard_inspect(where);
}
#endif

static const struct minrpc_platform platform = {
	.write = port_write,
	.clock_describe = port_clock_describe,
	.clock_sample = port_clock_sample,
	.restore = port_restore,
	.sleep_ms = port_sleep_ms,
	.pending = port_pending,
#if MINRPC_ASK
	.receive = port_receive,
#endif
	.reset = port_reset,
#ifdef HEAP_GUARD
	.heap_inspect = port_heap_inspect,
#endif
#if MINRPC_CODE_LOADING
	.code_ready = port_code_ready,
#endif
#if MINRPC_COUNTERS
	.stack_use = posix_stack_use,
	.stack_paint = posix_stack_paint,
	.interrupts_mask = posix_interrupts_mask,
#endif
};

/* Kept over a reset, so that successive starts have different nonces. */
static uint8_t nonce_seed(void)
{
	const char *before = getenv(NONCE_VARIABLE);
	struct timespec now;
	char text[4];
	uint8_t seed;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	seed = (uint8_t)(before != NULL ? strtoul(before, NULL, 10) + 1U
					: (uint32_t)now.tv_nsec / 1000U);
	(void)snprintf(text, sizeof(text), "%u", seed);
	(void)setenv(NONCE_VARIABLE, text, 1);
	return seed;
}

static int open_link(const char *path)
{
	struct termios settings;
	int link = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (link < 0 || tcgetattr(link, &settings) != 0) {
		return -1;
	}
	cfmakeraw(&settings);
	return tcsetattr(link, TCSANOW, &settings) == 0 ? link : -1;
}

/* The number of an open descriptor, or -1. */
static int inherited_link(const char *text)
{
	char *end;
	long number = strtol(text, &end, 10);

	if (end == text || *end != '\0' || number < 0 || number > INT_MAX) {
		errno = EINVAL;
		return -1;
	}
	return fcntl((int)number, F_GETFD) < 0 ? -1 : (int)number;
}

/* Maps the file of "N@ADDRESS", and makes it the arena. */
static bool share_arena(const char *text, struct minrpc_config *config)
{
	char *at;
	char *end;
	long number = strtol(text, &at, 10);
	uintptr_t address = at != text && *at == '@' ? (uintptr_t)strtoull(at + 1, &end, 0) : 0U;
	struct stat file;
	void *mapped;

	if (address == 0U || *end != '\0' || number < 0 || number > INT_MAX) {
		errno = EINVAL;
		return false;
	}
	if (fstat((int)number, &file) != 0) {
		return false;
	}
	mapped = mmap((void *)address, (size_t)file.st_size, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_FIXED_NOREPLACE, (int)number, 0);
	if (mapped == MAP_FAILED) {
		return false;
	}
#if MINRPC_LAYOUT
	config->more_memory = config->arena;
	config->more_memory_size = config->arena_size;
#endif
	config->arena = mapped;
	config->arena_size = (uint32_t)file.st_size;
	return true;
}

static void usage(const char *program)
{
	(void)fprintf(stderr, "usage: %s --link TTY | --fd N [--parent PID] [--memory N@ADDRESS]\n",
		      program);
	exit(2);
}

static void check(bool well, char **argument)
{
	if (!well) {
		(void)fprintf(stderr, "minrpc_posix: %s %s: %s\n", argument[0], argument[1],
			      strerror(errno));
		exit(EXIT_FAILURE);
	}
}

/* Applies the arguments; returns the link's descriptor. Ends the program if that is impossible. */
static int link_from(int argc, char **argv, struct minrpc_config *config)
{
	int link = -1;

	for (char **argument = argv + 1; argument < argv + argc; argument += 2) {
		if (argument + 1 == argv + argc) {
			usage(argv[0]);
		} else if (strcmp(argument[0], "--link") == 0) {
			link = open_link(argument[1]);
			check(link >= 0, argument);
		} else if (strcmp(argument[0], "--fd") == 0) {
			link = inherited_link(argument[1]);
			check(link >= 0, argument);
		} else if (strcmp(argument[0], "--parent") == 0) {
			check(end_with_parent(argument[1]), argument);
		} else if (strcmp(argument[0], "--memory") == 0) {
			check(share_arena(argument[1], config), argument);
		} else {
			usage(argv[0]);
		}
	}
	if (link < 0) {
		usage(argv[0]);
	}
	return link;
}

/* Serves until the link is closed (0) or fails (errno). */
static int serve(struct posix_port *port)
{
	for (;;) {
		ssize_t size = read_link(port);

		if (size <= 0) {
			return size == 0 ? 0 : errno;
		}
		while (port->taken != port->fill) {
			const uint8_t *data = port->received + port->taken;
			uint32_t part = port->fill - port->taken;

			port->taken = port->fill;
			ends_are_told(true);
			minrpc_server_receive(&server, data, part);
			ends_are_told(false);
		}
	}
}

/* Symbols of the linker: the places of the program and of its constants. */
extern const char __executable_start[];
extern const char etext[];
extern const char edata[];

static bool may_be_code(uintptr_t address)
{
#if MINRPC_CODE_LOADING
	if (address - (uintptr_t)code < sizeof(code)) {
		return true;
	}
#endif
	return address - (uintptr_t)__executable_start < (uintptr_t)(etext - __executable_start);
}

int minrpc_posix_main(int argc, char **argv, struct minrpc_library library)
{
	static _Alignas(8) uint8_t receive_buffer[MINRPC_MAX_PACKET];
	static _Alignas(64) uint8_t arena[ARENA_SIZE];
	static uint8_t send_buffer[LINK_BUFFER];
	static struct posix_port port;
	static struct minrpc_config config = {
		.platform = &platform,
		.context = &port,
		.receive_buffer = receive_buffer,
		.receive_size = sizeof(receive_buffer),
		.send_buffer = send_buffer,
		.send_size = sizeof(send_buffer),
		.arena = arena,
		.arena_size = sizeof(arena),
		.read_only = __executable_start,
#if MINRPC_COUNTERS
		.counters = posix_counters,
#endif
#if MINRPC_CODE_LOADING
		.code = code,
		.code_size = sizeof(code),
#endif
	};
	int error;

	faults_are_told(may_be_code);
	/* Lines of both streams keep the order in which they were printed. */
	(void)setvbuf(stdout, NULL, _IOLBF, 0U);
	port.arguments = argv;
	port.link = link_from(argc, argv, &config);
#if MINRPC_CODE_LOADING
	if (mprotect(code, sizeof(code), PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
		(void)fprintf(stderr, "%s: memory for code: %s\n", argv[0], strerror(errno));
		return EXIT_FAILURE;
	}
#endif
	config.library = with_port_functions(library);
	config.read_only_size = (uint32_t)(edata - __executable_start);
	config.nonce_seed = nonce_seed();
	config.build_id = build_id(MINRPC_BUILD_ID_MAX, &config.build_id_size);
	if (!minrpc_server_init(&server, &config)) {
		(void)fprintf(stderr, "%s: %s\n", argv[0], server.error);
		return EXIT_FAILURE;
	}
	error = serve(&port);
	if (error != 0) {
		(void)fprintf(stderr, "%s: link: %s\n", argv[0], strerror(error));
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}
