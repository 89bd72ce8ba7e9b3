/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Loaded code for RISC-V in machine mode: an access that faults, where no memory is,
 * asks Python. The trap's handler keeps all registers, enables interrupts, which the link needs,
 * and goes on behind the access with the registers as Python has changed them.
 */
#define DEVICES      0x40000000U
#define DEVICES_SIZE 0x20000000U
#define ILLEGAL      2U
#define LOAD_FAULT   5U
#define STORE_FAULT  7U
#define INTERRUPTS   8U   /* of mstatus: on */
#define BEFORE       128U /* of mstatus: they were on */
#define MOST         9    /* states that are kept: functions wait for Python in at most eight */
#define VECTORED     1U   /* of mtvec: an entry for each interrupt */
#define SOFTWARE     2U   /* of mie, mip: the supervisor's software interrupt */

#define READ(csr)                                                                                  \
	({                                                                                         \
		uintptr_t value_of_csr;                                                            \
		__asm__ volatile("csrr %0, " #csr : "=r"(value_of_csr));                           \
		value_of_csr;                                                                      \
	})

/* Python reads this state, up to `self`, and writes it. trap_entry has the offsets. */
struct state {
	uintptr_t x[32], pc, address, code, self, status;
#ifdef __riscv_flen
	double f[32];
	uintptr_t fcsr;
#endif
};

struct question {
	uint64_t function;
	uintptr_t words[36];
};

/* The states of the program, and of accesses while others wait. trap_entry fills the current one.
 */
static struct state states[MOST + 1];
__attribute__((used)) static struct state *trap_state = states;
__attribute__((used)) static uintptr_t trap_before;
/* The vectors that a firmware without an operating system puts back after each call. */
extern uintptr_t minrpc_vectors __attribute__((weak));
static int in_handler;

void trap_resume(void)
{
}

static void put_code(piece *place, uint32_t code)
{
	*place = (piece)code;
	__asm__ volatile("fence rw, rw\n\tfence.i" ::: "memory");
}

static void ask(void *context)
{
	struct state *state = context;
	struct question question = {.function = (uintptr_t)trap_resume};
	value answer;

	for (int i = 0; i < 36; i++) {
		question.words[i] = ((const uintptr_t *)state)[i];
	}
	answer = minrpc_asked(&question, sizeof(question), 0);
	state->x[answer.i >> 32 & 31] = (uintptr_t)(int)answer.i; /* with its sign */
	state->pc += (uint32_t)(answer.i >> 40 & 0xff);
}

/* Keeps the state of the program while `run` may be interrupted and may trap. */
static void outside(struct state *state, void (*run)(struct state *state))
{
	trap_state = state + 1;
	run(state);
	__asm__ volatile("csrc mstatus, %0" ::"r"(INTERRUPTS) : "memory");
	trap_state = state;
}

/* On cores with a supervisor, a pending interrupt comes as soon as interrupts are on. */
static void arm(int on)
{
	if (on) {
		__asm__ volatile("csrs mip, %0\n\tcsrs mie, %0" ::"r"(SOFTWARE) : "memory");
	} else {
		__asm__ volatile("csrc mie, %0\n\tcsrc mip, %0" ::"r"(SOFTWARE) : "memory");
	}
}

static __attribute__((noreturn)) void end_call(void)
{
	(void)end_breaks(0U);
	trap_state = states;
	in_handler = 0;
	forget();
	minrpc_escape_client();
}

static void ask_python(struct state *state)
{
	const uint16_t *code = (const uint16_t *)state->pc;

	state->code = code[0] | (uint32_t)code[1] << 16;
	state->self = (uintptr_t)state;
	__asm__ volatile("csrs mstatus, %0" ::"r"(INTERRUPTS) : "memory");
	if (!minrpc_escapable_client(ask, state)) {
		end_call();
	}
}

static void run_handler(struct state *state)
{
	if (!handle(next_handler(state->pc))) {
		end_call();
	}
}

/* Only an interrupt that comes at once is called here: others wait for the trap's end. */
static void pend(void)
{
	if (at_once != 0 && (READ(mstatus) & INTERRUPTS) != 0U) {
		in_handler = 1;
		run_handler(states);
		in_handler = 0;
	}
}

/* The interrupt comes, unless interrupts are off, or its handler runs: then it comes later. */
static void take_interrupt(struct state *state)
{
	while (is_waiting() && !in_handler && (state->status & BEFORE) != 0U) {
		in_handler = 1;
		outside(state, run_handler);
		in_handler = 0;
	}
}

/* Returns 0, or the firmware's handler. */
static uintptr_t take(struct state *state)
{
	uintptr_t cause = READ(mcause);

	if ((intptr_t)cause < 0) {
		take_interrupt(state);
		return 0U;
	}
	if (state == &states[MOST]) { /* Python is asked about a handler's access. */
		return trap_before & ~(uintptr_t)3U;
	}
	if (cause == ILLEGAL && is_break(state->pc)) {
		if (!end_breaks(state->pc)) {
			return 0U;
		}
		state->address = state->x[((const uint16_t *)state->pc)[0] >> 15 |
					  (((const uint16_t *)state->pc)[1] & 15U) << 1];
		outside(state, ask_python);
		take_interrupt(state);
		return 0U;
	}
	if (cause == ILLEGAL && step(&state->pc, !in_handler)) {
		take_interrupt(state);
		/* The handler's last instruction is the current one; the program's is replaced. */
		(void)step(&state->pc, 0);
		return 0U;
	}
	if ((cause == LOAD_FAULT || cause == STORE_FAULT) && trap_models[1] != 0U &&
	    state->address - DEVICES < DEVICES_SIZE) {
		(void)end_breaks(0U);
		outside(state, ask_python);
		take_interrupt(state);
		return 0U;
	}
	return trap_before & ~(uintptr_t)3U;
}

__attribute__((used)) static uintptr_t trap_take(struct state *state)
{
	uintptr_t handler;

	arm(0);
	handler = take(state);
	arm(is_waiting() && !in_handler && trap_steps.size == 0U);
	return handler;
}

#if __riscv_xlen == 64
#define LOAD  "ld"
#define STORE "sd"
#define WORD  "8"
#else
#define LOAD  "lw"
#define STORE "sw"
#define WORD  "4"
#endif

#ifdef __riscv_flen
#define FPU(code) code "\n\t"
#define FLOATS    __builtin_offsetof(struct state, f)
#if __riscv_flen == 64
#define FLOAT "d"
#else
#define FLOAT "w"
#endif
#else
#define FPU(code)
#define FLOATS 0U
#endif

/*
 * An interrupt goes to the firmware's vector, which returns by mret to 2, with interrupts off: so
 * that the registers that lead there are restored.
 */
/* clang-format off */
__attribute__((naked, aligned(4))) void trap_entry(void)
{
	__asm__ volatile(".macro lx to, word, base\n\t"
			 LOAD " \\to, \\word * " WORD "(\\base)\n\t"
			 ".endm\n\t"
			 ".macro sx from, word, base\n\t"
			 STORE " \\from, \\word * " WORD "(\\base)\n\t"
			 ".endm\n\t"
			 ".macro each op\n\t" /* all but t0, which has the state's address */
			 ".irp n, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, "
			 "20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31\n\t"
			 "\\op x\\n, \\n, t0\n\t"
			 ".endr\n\t"
			 ".endm\n\t"
			 FPU(".macro each_float op\n\t"
			     ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, "
			     "18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31\n\t"
			     "\\op f\\n, %0 + 8 * \\n(t0)\n\t"
			     ".endr\n\t"
			     ".endm")
			 "csrw mscratch, t0\n\t"
			 "csrr t0, mcause\n\t"
			 "bltz t0, 1f\n"
			 "4:\n\t"
			 "lla t0, trap_state\n\t"
			 "lx t0, 0, t0\n\t"
			 "each sx\n\t"
			 "csrr a0, mscratch\n\t"
			 "sx a0, 5, t0\n\t"
			 "csrr a0, mepc\n\t"
			 "sx a0, 32, t0\n\t"
			 "csrr a0, mtval\n\t"
			 "sx a0, 33, t0\n\t"
			 "csrr a0, mstatus\n\t"
			 "sx a0, 36, t0\n\t"
			 FPU("each_float fs" FLOAT)
			 FPU("frcsr a0\n\tsx a0, %1, t0")
			 "mv s1, t0\n\t"
			 "mv a0, t0\n\t"
			 "andi sp, sp, -16\n\t"
			 "call trap_take\n\t"
			 "mv t0, s1\n\t"
			 "bnez a0, 3f\n\t"
			 FPU("lx a0, %1, t0\n\tfscsr a0")
			 FPU("each_float fl" FLOAT)
			 "lx a0, 36, t0\n\t"
			 "csrw mstatus, a0\n\t"
			 "lx a0, 32, t0\n\t"
			 "csrw mepc, a0\n\t"
			 "each lx\n\t"
			 "lx t0, 5, t0\n\t"
			 "mret\n"
			 "3:\n\t"
			 "csrw mscratch, a0\n\t"
			 "each lx\n\t"
			 "csrr t0, mscratch\n\t"
			 "jr t0\n"
			 "1:\n\t"
			 "slli t0, t0, 2\n\t"
			 "addi t0, t0, -4\n\t" /* the software interrupt, number 1 */
			 "beqz t0, 4b\n\t"
			 "addi t0, t0, 4\n\t"
			 "addi sp, sp, -32\n\t"
			 "sx t1, 0, sp\n\t"
			 "csrr t1, mepc\n\t"
			 "sx t1, 1, sp\n\t"
			 "csrr t1, mstatus\n\t"
			 "sx t1, 2, sp\n\t"
			 "csrr t1, mscratch\n\t"
			 "sx t1, 3, sp\n\t"
			 "lla t1, 2f\n\t"
			 "csrw mepc, t1\n\t"
			 "li t1, 128\n\t"
			 "csrc mstatus, t1\n\t"
			 "lla t1, trap_before\n\t"
			 "lx t1, 0, t1\n\t"
			 "andi t1, t1, -4\n\t"
			 "add t0, t0, t1\n\t"
			 "jr t0\n\t"
			 ".balign 4\n"
			 "2:\n\t"
			 "lx t1, 2, sp\n\t"
			 "csrw mstatus, t1\n\t"
			 "lx t1, 1, sp\n\t"
			 "csrw mepc, t1\n\t"
			 "lx t0, 3, sp\n\t"
			 "lx t1, 0, sp\n\t"
			 "addi sp, sp, 32\n\t"
			 "mret" ::"i"(FLOATS), "i"(FLOATS / sizeof(uintptr_t) + 256U / sizeof(uintptr_t)));
}
/* clang-format on */

/* Returns false for firmware with one entry for all interrupts. */
int trap_begin(uintptr_t base, uintptr_t size)
{
	uintptr_t found = READ(mtvec);

	(void)base;
	(void)size;
	if ((found & 3U) != VECTORED) {
		return 0;
	}
	trap_before = found;
	if (&minrpc_vectors) {
		minrpc_vectors = (uintptr_t)trap_entry;
	}
	__asm__ volatile("csrw mtvec, %0" ::"r"(trap_entry));
	return 1;
}

/* The firmware forbids addresses without memory, until the next reset. */
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
	if (trap_before != 0U) {
		trap_steps_end();
		if (&minrpc_vectors) {
			minrpc_vectors = trap_before;
		}
		__asm__ volatile("csrw mtvec, %0" ::"r"(trap_before));
	}
}
