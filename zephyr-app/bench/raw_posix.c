/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The benchmarks' baseline: one character at the start, then an echo of what comes over the inherited link
 * (--fd N). No protocol, the same system calls as the server's: a read, a write.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINK_BUFFER 65536U

static int write_all(int link, const char *data, size_t size)
{
	while (size != 0U) {
		ssize_t written = write(link, data, size);

		if (written < 0 && errno != EINTR) {
			return -1;
		}
		if (written > 0) {
			data += written;
			size -= (size_t)written;
		}
	}
	return 0;
}

static int echo(int link)
{
	static char buffer[LINK_BUFFER];

	for (;;) {
		ssize_t size = read(link, buffer, sizeof(buffer));

		if (size == 0 || (size < 0 && errno == EIO)) {
			return 0; /* a pty reads EIO when its other end is closed */
		}
		if (size < 0 && errno != EINTR) {
			return -1;
		}
		if (size > 0 && write_all(link, buffer, (size_t)size) != 0) {
			return errno == EIO ? 0 : -1;
		}
	}
}

int main(int argc, char **argv)
{
	int link;

	if (argc != 3 || strcmp(argv[1], "--fd") != 0) {
		(void)fprintf(stderr, "usage: %s --fd N\n", argv[0]);
		return 2;
	}
	link = atoi(argv[2]);
	if (write_all(link, "!", 1U) != 0 || echo(link) != 0) {
		perror(argv[0]);
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}
