/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The runtime under a test in Python: commands from standard input call any function of the program
 * and read and write its memory; functions of the test are called back. See door.py.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <minrpc/ask.h>
#include <minrpc/counter.h>
#include <minrpc/object.h>

#include <tvm/runtime/c_backend_api.h>

#include "functions.h"
#include "host.h"
#include "operators.h"

#define CPU_SECONDS 120
#define WORDS       8

struct command {
	uint64_t kind; /* 'c', 'r', 'w' or 't' */
	uint64_t address;
	uint64_t size;
};

/* A function of up to WORDS arguments, each of a machine word. */
typedef uint64_t (*function_of_words)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
				      uintptr_t, uintptr_t, uintptr_t);

static FILE *replies;

static void get(void *to, size_t size)
{
	if (size != 0U && fread(to, size, 1U, stdin) != 1U) {
		exit(EXIT_SUCCESS); /* the test has ended */
	}
}

static void reply(char kind, const void *data, size_t size)
{
	(void)fputc(kind, replies);
	(void)fwrite(data, 1U, size, replies);
	(void)fflush(replies);
}

static uint64_t call(uint64_t address)
{
	uint64_t words[WORDS];

	get(words, sizeof(words));
	return ((function_of_words)(uintptr_t)address)(
		(uintptr_t)words[0], (uintptr_t)words[1], (uintptr_t)words[2], (uintptr_t)words[3],
		(uintptr_t)words[4], (uintptr_t)words[5], (uintptr_t)words[6], (uintptr_t)words[7]);
}

/* Carries out commands up to 't', whose address is the result. */
static uint64_t serve(void)
{
	for (;;) {
		struct command command;
		void *memory;
		uint64_t result;

		get(&command, sizeof(command));
		memory = (void *)(uintptr_t)command.address;
		switch (command.kind) {
		case 'c':
			result = call(command.address);
			reply('r', &result, sizeof(result));
			break;
		case 'r':
			reply('r', memory, command.size);
			break;
		case 'w':
			get(memory, command.size);
			break;
		default:
			return command.address;
		}
	}
}

static uint64_t call_back(uint64_t number, const uintptr_t *arguments)
{
	uint64_t words[7] = {number};

	for (int i = 0; i < 6; i++) {
		words[1 + i] = arguments[i];
	}
	reply('b', words, sizeof(words));
	return serve();
}

/* A function of the test behind any pointer to a function: it takes up to 6 words. */
#define BACK(number)                                                                               \
	static uint64_t back_##number(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d,          \
				      uintptr_t e, uintptr_t f)                                    \
	{                                                                                          \
		return call_back(number, (const uintptr_t[]){a, b, c, d, e, f});                   \
	}

BACK(0)
BACK(1)
BACK(2)
BACK(3)
BACK(4)
BACK(5)
BACK(6)
BACK(7)

uint64_t (*const door_backs[])(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t) = {
	back_0, back_1, back_2, back_3, back_4, back_5, back_6, back_7,
};

struct host *door_boot(uint32_t receive, uint32_t send, uint32_t arena);
struct host *door_boot(uint32_t receive, uint32_t send, uint32_t arena)
{
	return host_boot((struct host_sizes){receive, send, arena});
}

/* The linker's: the memory that a port on this machine declares as read-only. */
extern const char __executable_start[];
extern const char edata[];

/* The device of a program with generated code. */
void door_use_generated(struct host *host);
void door_use_generated(struct host *host)
{
	host->config.library = minrpc_system_library();
	host->config.read_only = __executable_start;
	host->config.read_only_size = (uint32_t)(edata - __executable_start);
}

/* Memory of exactly this size, so that the sanitizer sees one byte too many. */
void *door_memory(uint32_t size);
void *door_memory(uint32_t size)
{
	return calloc(1U, size == 0U ? 1U : size);
}

/* Bytes over the link to the device; frees their memory. */
void door_give(struct host *host, uint8_t *wire, uint32_t size);
void door_give(struct host *host, uint8_t *wire, uint32_t size)
{
	minrpc_server_receive(&host->server, wire, size);
	free(wire);
}

/* Inline functions, and a result that is no machine word. */
uint64_t door_wide_counter(struct minrpc_wide_counter *counter, uint32_t now);
uint64_t door_wide_counter(struct minrpc_wide_counter *counter, uint32_t now)
{
	return minrpc_wide_counter_update(counter, now);
}

uint64_t door_down_counter(uint32_t overflows, bool pending, uint32_t value, uint32_t period);
uint64_t door_down_counter(uint32_t overflows, bool pending, uint32_t value, uint32_t period)
{
	return minrpc_down_counter(overflows, pending, value, period);
}

void door_clock_seconds(double *seconds, uint64_t cycles, uint64_t cycles_hz);
void door_clock_seconds(double *seconds, uint64_t cycles, uint64_t cycles_hz)
{
	*seconds = minrpc_clock_seconds(cycles, cycles_hz);
}

int main(void)
{
	const struct rlimit limit = {CPU_SECONDS, CPU_SECONDS};

	replies = fdopen(dup(STDOUT_FILENO), "wb");
	/* Printed text belongs to the report of the program's death. */
	if (replies == NULL || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ||
	    setrlimit(RLIMIT_CPU, &limit) != 0) {
		return EXIT_FAILURE;
	}
	(void)serve();
	return EXIT_SUCCESS;
}
