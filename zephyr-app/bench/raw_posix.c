/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The benchmarks' baseline over the inherited link (--fd N), by the same system calls as the
 * server's: a read, a write. It ends when the other end is closed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ports/posix/parent.h"
#include "raw.h"

#define LINK_BUFFER 65536U

static int link_fd;
static uint8_t buffer[LINK_BUFFER];
static uint32_t from, to; /* the unconsumed part of the buffer */

/* A pty reports EIO when its other end is closed. */
static void check(ssize_t size)
{
	if (size == 0 || (size < 0 && errno == EIO)) {
		exit(EXIT_SUCCESS);
	}
	if (size < 0 && errno != EINTR) {
		perror("raw");
		exit(EXIT_FAILURE);
	}
}

uint32_t link_wait(const uint8_t **data)
{
	while (from == to) {
		ssize_t size = read(link_fd, buffer, sizeof(buffer));

		check(size);
		from = 0U;
		to = size > 0 ? (uint32_t)size : 0U;
	}
	*data = &buffer[from];
	return to - from;
}

void link_consume(uint32_t size)
{
	from += size;
}

void link_write(const uint8_t *data, uint32_t size)
{
	while (size != 0U) {
		ssize_t written = write(link_fd, data, size);

		check(written);
		if (written > 0) {
			data += written;
			size -= (uint32_t)written;
		}
	}
}

int main(int argc, char **argv)
{
	static const uint8_t piece[LINK_BUFFER];

	link_fd = -1;
	/* In pairs; arguments for the server only are ignored. */
	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--fd") == 0) {
			link_fd = atoi(argv[i + 1]);
		} else if (strcmp(argv[i], "--parent") == 0 && !end_with_parent(argv[i + 1])) {
			perror("raw");
			return EXIT_FAILURE;
		}
	}
	if (link_fd < 0) {
		(void)fprintf(stderr, "usage: %s --fd N [--parent PID]\n", argv[0]);
		return 2;
	}
	raw_run(piece, sizeof(piece));
}
