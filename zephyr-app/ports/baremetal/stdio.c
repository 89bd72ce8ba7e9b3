/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * picolibc's standard files: output goes to the console, or to the client as logs.
 */
#include <stdio.h>

#include <minrpc/baremetal.h>

#include "machine.h"
#include "port.h"

#ifdef MACHINE_CONSOLE

void console_flush(void)
{
}

static int put(char c, FILE *stream)
{
	(void)stream;
	console_put(c);
	return (unsigned char)c;
}

#else

/* One message for each line. */
static char line[80];
static uint32_t line_size;

void console_flush(void)
{
	(void)minrpc_server_log(minrpc_device(), line, line_size);
	line_size = 0U;
}

static int put(char c, FILE *stream)
{
	(void)stream;
	if (c == '\n' || line_size == sizeof(line)) {
		console_flush();
	}
	if (c != '\n') {
		line[line_size++] = c;
	}
	return (unsigned char)c;
}

#endif

static FILE console = FDEV_SETUP_STREAM(put, NULL, NULL, _FDEV_SETUP_WRITE);
/* Each read of standard input is the end of a file. */
static FILE nothing = FDEV_SETUP_STREAM(NULL, NULL, NULL, 0);

FILE *const stdin = &nothing;
FILE *const stdout = &console;
FILE *const stderr = &console;
