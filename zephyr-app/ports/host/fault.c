/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The handler has its own stack, since the thread's stack may have run out.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

#include "../callers.h"
#include "fault.h"

#define PAGE     4096U
/* Bytes below a stack that the kernel keeps free. */
#define BELOW    (1024U * 1024U)
/* Bytes that a function may use below its stack pointer. */
#define RED_ZONE 256U
#define CALLERS  1024U
#define OWN_SIZE 65536U

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

static uint8_t own_stack[OWN_SIZE];
static bool (*may_be_code)(uintptr_t address);
/* The thread that runs functions, and the bounds of its stack. */
static pthread_t told;
static uintptr_t top;
static uintptr_t limit;

extern void *__libc_stack_end;

struct place {
	uintptr_t pc;
	uintptr_t sp;
	const char *access;
};

/* The bit of a page fault's error code that means a write. */
#define PAGE_FAULT_WRITE 2

static struct place place_of(const ucontext_t *context)
{
#if defined(__x86_64__)
	const greg_t *registers = context->uc_mcontext.gregs;

	return (struct place){(uintptr_t)registers[REG_RIP], (uintptr_t)registers[REG_RSP],
			      (registers[REG_ERR] & PAGE_FAULT_WRITE) != 0 ? ", write" : ", read"};
#elif defined(__i386__)
	const greg_t *registers = context->uc_mcontext.gregs;

	return (struct place){(uintptr_t)registers[REG_EIP], (uintptr_t)registers[REG_ESP],
			      (registers[REG_ERR] & PAGE_FAULT_WRITE) != 0 ? ", write" : ", read"};
#elif defined(__aarch64__)
	return (struct place){context->uc_mcontext.pc, context->uc_mcontext.sp, ""};
#else
	(void)context;
	return (struct place){0U, 0U, ""};
#endif
}

static void say(const char *text, size_t size)
{
	/* A failure of this write can't be reported. */
	ssize_t written = write(STDERR_FILENO, text, size);

	(void)written;
}

static bool is_mapped(uintptr_t address)
{
	unsigned char there;

	return mincore((void *)(address & ~(uintptr_t)(PAGE - 1U)), 1U, &there) == 0;
}

static void tell_callers(uintptr_t pointer)
{
	char text[CALLERS];

	if (pointer > top) {
		return;
	}
	if (pointer < top - limit) {
		pointer = top - limit;
	}
	while (pointer < top && !is_mapped(pointer)) {
		pointer = (pointer | (PAGE - 1U)) + 1U;
	}
	callers_text(pointer, top, may_be_code, text, sizeof(text) - 1U);
	(void)strcat(text, "\n");
	say(text, strlen(text));
}

void fault_tell(const char *text, uintptr_t pointer)
{
	say(text, strlen(text));
	say("\n", 1U);
	tell_callers(pointer);
}

void fault_abort(const char *text)
{
	(void)fflush(stdout);
	fault_tell(text, (uintptr_t)__builtin_frame_address(0));
	(void)signal(SIGABRT, SIG_DFL);
	abort();
}

void fault_assertion(const char *expression, const char *file, unsigned int line,
		     const char *function)
{
	char text[320];

	(void)snprintf(text, sizeof(text), "fatal: assertion failed: %s, in %s, at %s:%u",
		       expression, function == NULL ? "?" : function, file, line);
	fault_abort(text);
}

static bool is_near_end(uintptr_t address)
{
	uintptr_t end = top - limit;

	return address < end + BELOW / 16U && address > end - BELOW;
}

/*
 * The stack pointer is below the whole stack, as in a function whose frame is larger than the
 * stack.
 */
static bool is_far_below(uintptr_t pointer, uintptr_t address)
{
	uintptr_t end = top - limit;

	return pointer < end && address < end && address + RED_ZONE >= pointer &&
	       !is_mapped(pointer);
}

static bool ran_out(uintptr_t pointer, uintptr_t address)
{
	return is_near_end(address) || is_near_end(pointer) || is_far_below(pointer, address);
}

static void tell(int signal, siginfo_t *info, void *context)
{
	struct place at = place_of(context);
	bool has_address = signal == SIGSEGV || signal == SIGBUS;
	uintptr_t address = has_address ? (uintptr_t)info->si_addr : 0U;
	/* A jump to an address without memory needs no stack. */
	bool overflow = has_address && address != at.pc && ran_out(at.sp, address);
	char text[200];
	int size = snprintf(text, sizeof(text), "fatal: %sSIG%s at pc 0x%lx, sp 0x%lx, code %d",
			    overflow ? "stack overflow: " : "", sigabbrev_np(signal),
			    (unsigned long)at.pc, (unsigned long)at.sp, info->si_code);

	if (has_address) {
		size += snprintf(text + size, sizeof(text) - (size_t)size, ", address 0x%lx%s",
				 (unsigned long)address, at.access);
	}
	if (!overflow && !is_mapped(at.sp)) {
		size += snprintf(text + size, sizeof(text) - (size_t)size, ", no memory at sp");
	}
	if (overflow) {
		size += snprintf(text + size, sizeof(text) - (size_t)size, ", stack of %lu bytes",
				 (unsigned long)limit);
	}
	text[size] = '\n';
	say(text, (size_t)size + 1U);
	tell_callers(at.sp);
	/*
	 * The handler was for one signal only: this signal ends the process as without a handler.
	 */
	(void)raise(signal);
	if (getpid() == 1) {
		/* The first process of a namespace, in a sandbox, can't end itself by a signal. */
		_exit(128 + signal);
	}
}

/*
 * The harness sends this signal at a deadline, to get the place of the program. By default the
 * signal does nothing.
 */
static void tell_place(int signal, siginfo_t *info, void *context)
{
	struct place at = place_of(context);
	int before = errno;
	char text[40];
	int size = snprintf(text, sizeof(text), "place: pc 0x%lx\n", (unsigned long)at.pc);

	(void)info;
	if (pthread_equal(pthread_self(), told) == 0) {
		(void)pthread_kill(told, signal);
		return;
	}
	tell_callers(at.sp);
	say(text, (size_t)size);
	errno = before;
}

#define SIGNALS 32

/* The signals' actions at the start. */
static struct sigaction first[SIGNALS];

static void find_stack(void)
{
	struct rlimit given;
	pthread_attr_t attributes;
	void *lowest;
	size_t size;

	told = pthread_self();
	if (gettid() == getpid()) { /* The kernel lets this stack grow. */
		top = (uintptr_t)__libc_stack_end;
		limit = getrlimit(RLIMIT_STACK, &given) == 0 && given.rlim_cur < top
				? given.rlim_cur
				: top;
	} else if (pthread_getattr_np(told, &attributes) == 0) {
		(void)pthread_attr_getstack(&attributes, &lowest, &size);
		(void)pthread_attr_destroy(&attributes);
		top = (uintptr_t)lowest + size;
		limit = size;
	}
}

void faults_are_told(bool (*is_code)(uintptr_t address))
{
	stack_t stack = {.ss_sp = own_stack, .ss_size = sizeof(own_stack)};
	struct sigaction action = {.sa_sigaction = tell,
				   .sa_flags = SA_SIGINFO | SA_ONSTACK | (int)SA_RESETHAND};
	struct sigaction place = {.sa_sigaction = tell_place,
				  .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
	struct sigaction before;

	may_be_code = is_code;
	find_stack();
	(void)sigaltstack(&stack, NULL);
	(void)sigaction(SIGURG, &place, NULL);
	for (size_t i = 0U; i < sizeof(signals) / sizeof(signals[0]); i++) {
		if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL) {
			(void)sigaction(signals[i], &action, NULL);
		}
	}
	for (int i = 1; i < SIGNALS; i++) {
		(void)sigaction(i, NULL, &first[i]);
	}
}

void host_restore(void)
{
	sigset_t none;

	(void)fesetenv(FE_DFL_ENV);
	(void)alarm(0U);
	for (int i = 1; i < SIGNALS; i++) {
		(void)sigaction(i, &first[i], NULL);
	}
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}
