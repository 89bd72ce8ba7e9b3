/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The last words of a device that can't go on, and its restart.
 */
#include <stdbool.h>
#include <string.h>

#include <minrpc/baremetal.h>

#include "port.h"

/* Writes to the console and, as a log, to the link. */
static void say(const char *text)
{
	console_write(text);
	console_write("\n");
	minrpc_server_last_words(minrpc_device(), text, (uint32_t)strlen(text));
}

void fault_report(const char *text, uintptr_t pointer)
{
	static bool reporting;
	/* No further request is read. */
	char *callers = (char *)receive_buffer;

	/* The memory that this code uses may be damaged, too. */
	if (reporting) {
		cpu_reset();
	}
	reporting = true;
	link_init();
	console_flush();
	say(text);
	stack_callers(pointer, callers, MINRPC_LOG_MAX);
	say(callers);
	cpu_reset();
}
