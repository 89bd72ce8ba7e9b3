/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts to leave a sandbox: each returns 0 or more if it succeeded, or -errno. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static long status(long result)
{
	return result < 0 ? -errno : result;
}

long reads(const char *path)
{
	return status(open(path, O_RDONLY));
}

long writes(const char *path)
{
	return status(open(path, O_WRONLY | O_CREAT, 0600));
}

long changes(const char *path)
{
	return status(chmod(path, 0700));
}

long fills(const char *path, long bytes)
{
	return status(ftruncate(open(path, O_WRONLY | O_CREAT, 0600), bytes));
}

/* The number of files of 15 MiB, each with its memory. */
long hoards(void)
{
	char name[] = "/tmp/hoard-00";
	long made = 0;

	for (; made < 64; made++) {
		(void)snprintf(name, sizeof(name), "/tmp/hoard-%02ld", made);
		if (posix_fallocate(open(name, O_RDWR | O_CREAT, 0600), 0, 15 << 20)) {
			break;
		}
	}
	for (long i = 0; i <= made; i++) {
		(void)snprintf(name, sizeof(name), "/tmp/hoard-%02ld", i);
		(void)unlink(name);
	}
	return made;
}

int knows(const char *variable)
{
	return getenv(variable) != NULL;
}

long attaches(int key)
{
	return status(shmget(key, 0, 0));
}

void stays(void)
{
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	(void)!write(STDOUT_FILENO, "here to stay\n", 13);
	for (;;) {
		(void)pause();
	}
}

int session(void)
{
	return (int)getsid(0);
}

long limit(int resource)
{
	struct rlimit found;

	return getrlimit((__rlimit_resource_t)resource, &found) ? -errno : (long)found.rlim_cur;
}

long links(const char *to)
{
	(void)unlink("/tmp/link");
	return symlink(to, "/tmp/link") < 0 ? 0 : reads("/tmp/link");
}

long connects(int port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return status(connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&to, sizeof(to)));
}

long forks(int how)
{
	long pid = how == 0   ? fork()
		   : how == 1 ? syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)
		   : how == 2 ? syscall(SYS_clone3, NULL, 0)
#ifdef SYS_fork
			      : syscall(SYS_fork);
#else
			      : -1;
#endif

	if (pid == 0) {
		_exit(0);
	}
	return status(pid);
}

long takes(long bytes)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

	return mmap(NULL, (size_t)bytes, PROT_READ, flags, -1, 0) == MAP_FAILED ? -errno : 0;
}

long traces(int pid)
{
	return status(ptrace(PTRACE_ATTACH, pid, 0, 0));
}

long kills(int pid)
{
	return status(kill(pid, SIGKILL));
}

long mounts(void)
{
	return status(mount("none", "/tmp", "tmpfs", 0, NULL));
}

long makes_node(void)
{
	return status(mknod("/tmp/disk", S_IFBLK | 0600, makedev(8, 0)));
}
