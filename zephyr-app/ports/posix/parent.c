/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Ends a process with its parent, however the parent ends.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "parent.h"

bool end_with_parent(const char *parent)
{
	char *end;
	long number = strtol(parent, &end, 10);

	if (end == parent || *end != '\0') {
		errno = EINVAL;
		return false;
	}
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
		return false;
	}
	/* A parent that ended before this request causes no signal. */
	errno = ESRCH;
	return getppid() == (pid_t)number;
}
