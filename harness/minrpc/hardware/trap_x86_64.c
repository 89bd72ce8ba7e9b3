/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Loaded code for Linux on x86-64: an access to an address of a peripheral, where no memory is,
 * asks Python. The instruction is not decoded here: it runs once, on a page that is there for one
 * step, and that has the value of a read and keeps the value of a write.
 */
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define DEVICES      0x40000000U
#define DEVICES_SIZE 0x20000000U
#define PAGE         4096U
#define ONE_STEP     0x100 /* the trap flag */
/* Python's answer to the first question: the access writes, or does if it compares equal. */
#define WRITES       1
#define IF_EQUAL     2
#define EQUAL        0x40 /* the zero flag */

struct question {
	uint64_t function, pc, address, value, is_second;
	uint8_t code[16];
};

/* The value that the next read gets. */
uint64_t trap_value;

static struct sigaction before_fault, before_step;
/* The access whose instruction runs now; 0: none. */
static uintptr_t accessed;
static long answered;
static int in_handler;

void trap_resume(void)
{
}

static void *page_of(uintptr_t address)
{
	return (void *)(address & ~(uintptr_t)(PAGE - 1U));
}

/* The page of loaded code may be read-only until its first change. */
static void put_code(piece *place, uint32_t code)
{
	*place = (piece)code;
}

static void ask(void *context)
{
	answered = minrpc_asked(context, sizeof(struct question), 0).i;
}

static __attribute__((noreturn)) void end_call(void)
{
	forget();
	in_handler = 0;
	minrpc_escape_client();
}

/* Asks Python. If it ends the call, the signal's handler is left as by longjmp. */
static void ask_about(struct question *question)
{
	question->function = (uintptr_t)trap_resume;
	memcpy(question->code, (const void *)question->pc, sizeof(question->code));
	if (!minrpc_escapable_client(ask, question)) {
		end_call();
	}
}

/* An interrupt that comes while its handler runs comes behind it, as on a core. */
static void take_interrupt(uintptr_t pc)
{
	while (is_waiting() && !in_handler) {
		in_handler = 1;
		if (!handle(next_handler(pc))) {
			end_call();
		}
		in_handler = 0;
	}
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	uintptr_t address = (uintptr_t)info->si_addr;
	struct question question = {.pc = (uint64_t)registers[REG_RIP], .address = address};

	if (info->si_code <= 0 || address - DEVICES >= DEVICES_SIZE || accessed != 0U ||
	    trap_models[1] == 0U) {
		(void)sigaction(signal, &before_fault, NULL);
		return;
	}
	ask_about(&question);
	/* Two pages: an access may cross their border. */
	if (mmap(page_of(address), 2U * PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED) {
		(void)sigaction(signal, &before_fault, NULL);
		return;
	}
	memcpy((void *)address, &trap_value, sizeof(trap_value));
	accessed = address;
	registers[REG_EFL] |= ONE_STEP;
}

/* The instruction of an access has run. */
static void after_access(uintptr_t pc, int is_equal)
{
	struct question question = {.pc = pc, .address = accessed, .is_second = 1U};
	uintptr_t address = accessed;

	memcpy(&question.value, (const void *)address, sizeof(question.value));
	accessed = 0U;
	(void)munmap(page_of(address), 2U * PAGE);
	if ((answered & WRITES) != 0 || ((answered & IF_EQUAL) != 0 && is_equal)) {
		ask_about(&question);
	}
	take_interrupt(pc);
}

/* Only an interrupt that comes at once is called here: others wait for the signal's end. */
static void pend(void)
{
	if (at_once != 0) {
		take_interrupt(0U);
	}
}

static void on_step(int signal, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	uintptr_t place = (uintptr_t)registers[REG_RIP] - 1U;

	if (accessed != 0U) {
		registers[REG_EFL] &= ~(greg_t)ONE_STEP;
		after_access((uintptr_t)registers[REG_RIP], (registers[REG_EFL] & EQUAL) != 0);
	} else if (info->si_code > 0 && step(&place, !in_handler)) {
		registers[REG_RIP] = (greg_t)place;
		take_interrupt(place);
		/* The handler's last instruction is the current one; the program's is replaced. */
		(void)step(&place, 0);
	} else {
		(void)sigaction(signal, &before_step, NULL);
	}
}

int trap_begin(uintptr_t base, uintptr_t size)
{
	struct sigaction fault = {.sa_sigaction = on_fault,
				  .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
	struct sigaction step_end = {.sa_sigaction = on_step,
				     .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};

	(void)base;
	(void)size;
	(void)sigaction(SIGSEGV, &fault, &before_fault);
	(void)sigaction(SIGTRAP, &step_end, &before_step);
	return 1;
}

int trap_forbid(void)
{
	return 1;
}

void trap_allow(void)
{
}

int trap_connect(int line)
{
	(void)line;
	return 1;
}

/* The runtime calls this before it frees the code. */
void minrpc_unload(void)
{
	(void)sigaction(SIGSEGV, &before_fault, NULL);
	(void)sigaction(SIGTRAP, &before_step, NULL);
}
