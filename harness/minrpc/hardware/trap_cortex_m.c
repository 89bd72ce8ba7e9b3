/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Loaded code for Armv7-M and Armv8-M: an access to trapped memory asks Python. The fault's handler
 * can't ask, since its priority stops the link's interrupt. So it keeps the state of the
 * interrupted code, and returns to trap_resume, which asks, and goes on behind the access by
 * another fault: only the return from an exception sets all of the state, also within an IT block.
 */
#define REGISTER(address) (*(volatile uint32_t *)(address))
#define NVIC_LINES        (REGISTER(0xe000e004U) & 15U)
#define NVIC_ENABLED(n)   REGISTER(0xe000e100U + 4U * (n))
#define NVIC_OFF(n)       REGISTER(0xe000e180U + 4U * (n))
#define NVIC_PENDING(n)   REGISTER(0xe000e200U + 4U * (n))
#define NVIC_DONE(n)      REGISTER(0xe000e280U + 4U * (n))
#define NVIC_PRIORITY(n)  (*(volatile uint8_t *)(0xe000e400U + (n)))
#define SCB_CPUID         REGISTER(0xe000ed00U)
#define SCB_ICSR          REGISTER(0xe000ed04U)
#define SCB_VTOR          REGISTER(0xe000ed08U)
#define SCB_CFSR          REGISTER(0xe000ed28U)
#define SCB_HFSR          REGISTER(0xe000ed2cU)
#define SCB_MMFAR         REGISTER(0xe000ed34U)
#define SCB_ICIALLU       REGISTER(0xe000ef50U)
#define SCB_DCCMVAU       REGISTER(0xe000ef64U)
#define MPU_TYPE          REGISTER(0xe000ed90U)
#define MPU_CTRL          REGISTER(0xe000ed94U)
#define MPU_RNR           REGISTER(0xe000ed98U)
#define MPU_RBAR          REGISTER(0xe000ed9cU)
#define MPU_RASR          REGISTER(0xe000eda0U) /* v8-M: RLAR */
#define MPU_MAIR0         REGISTER(0xe000edc0U)

#define CFSR_ADDRESS   (1U << 7 | 1U << 1) /* MMARVALID, DACCVIOL */
#define CFSR_UNDEFINED (1U << 16)
#define REGION_ON      1U
#define IT_STATE       0x0600fc00U
#define STACK_MOVED    (1U << 9)
#define DEVICES        0x40000000U /* to 0x5fffffff: peripherals, and their bits one by one */
#define DEVICES_SIZE   0x20000000U
#define PAGE_BITS      8U
#define VECTORS        256U
#define STACK_BYTES    2048U
#define THREAD         8U /* bit of the code that returns from an exception */
/* The priority of interrupts that call the library: the lowest, below the link's. */
#define LOWEST         0xe0U

#ifdef __ARM_FP
#define FPU(code) code "\n\t"
#else
#define FPU(code)
#endif

struct frame {
	uint32_t r0, r1, r2, r3, r12, lr;
	uintptr_t pc;
	uint32_t xpsr;
};

/* Python reads this state, up to `self`, and writes it. trap_resume has the offsets. */
struct state {
	uint32_t r[13], sp, lr, pc, xpsr, address, code, self;
	uint32_t primask, basepri, fpscr, s[32];
};

struct question {
	uint64_t function;
	uint32_t words[20];
};

/* The state of the thread, and of an interrupt. */
static struct state states[2];
/* The stack of interrupts that call the library: the firmware's may be small. */
static uint8_t stack[STACK_BYTES] __attribute__((aligned(8)));
/* The main stack's pointer when such an interrupt began. */
static uint32_t outer_stack;
/* The line of the interrupts, and a bit for each line that this file has enabled. */
static uint32_t trap_line = ~0U, own_lines[16];
static uint32_t vectors[2U * VECTORS];

/* The vectors that a firmware without an operating system puts back after each call. */
extern uintptr_t minrpc_vectors __attribute__((weak));
static const uint32_t *before;
static uint32_t faults_before[7];
static uint32_t control;
#if __ARM_ARCH >= 8
static uint32_t limit;
#endif
/* True while this file has the vectors. */
static int active;
/* The firmware's code. */
static uint32_t own_base, own_size;
/* The regions of the MPU that this file has taken: a bit for each, and their contents. */
static uint32_t taken, kept_base[32], kept_size[32];
/*
 * A kernel clears regions when it changes threads: the line's interrupt, which comes behind, sets
 * them again. The register that pends it, its bit, and the kernel's handler, which runs first.
 */
__attribute__((used)) static uint32_t switches[3];
/* The line's interrupt calls the handlers, too, but not while Python answers. */
static int is_asking;

void trap_resume(void);
void trap_allow(void);
extern char trap_again[];

static void barrier(void)
{
	__asm__ volatile("dsb\n\tisb" ::: "memory");
}

static void put_code(piece *place, uint32_t code)
{
	*place = (piece)code;
#ifdef __ARM_ARCH_7EM__
	__asm__ volatile("dsb" ::: "memory");
	SCB_DCCMVAU = (uint32_t)place;
	SCB_ICIALLU = 0U;
#endif
	barrier();
}

static void pend(void)
{
	NVIC_PENDING(trap_line / 32U) = 1U << trap_line % 32U;
	barrier();
}

static void unpend(void)
{
	forget();
	NVIC_DONE(trap_line / 32U) = 1U << trap_line % 32U;
	barrier();
}

static int is_modelled(uint32_t address, uint32_t size)
{
	for (const uint32_t *model = trap_models; model[1] != 0U; model += 2) {
		if (address < model[0] + model[1] && model[0] < address + size) {
			return 1;
		}
	}
	return 0;
}

/*
 * Takes a free region of the MPU: of those from `first` on, the first; else the last of all.
 * Returns false without one.
 */
static int take_region(int first, uint32_t base, uint32_t size)
{
	uint32_t count = MPU_TYPE >> 8 & 0xffU;

	for (uint32_t i = 0U; i < count; i++) {
		uint32_t number = first < 0 ? count - 1U - i : i;

		MPU_RNR = number;
		if ((int)number >= first && (MPU_RASR & REGION_ON) == 0U) {
			taken |= 1U << number;
			kept_base[number] = base;
			kept_size[number] = size;
			MPU_RBAR = base;
			MPU_RASR = size;
			return 1;
		}
	}
	return 0;
}

/* Sets the regions again that a kernel has cleared. */
static void set_regions(void)
{
	uint32_t primask;

	__asm__ volatile("mrs %0, primask\n\tcpsid i" : "=r"(primask)::"memory");
	for (uint32_t number = 0U; number < 32U; number++) {
		if ((taken >> number & 1U) != 0U) {
			MPU_RNR = number;
			MPU_RBAR = kept_base[number];
			MPU_RASR = kept_size[number];
		}
	}
	barrier();
	__asm__ volatile("msr primask, %0" ::"r"(primask) : "memory");
}

#if __ARM_ARCH >= 8

#define MPU_ON     1U
#define ATTRIBUTES 0x0004aa00U /* number 1: normal memory, written through; number 2: a device */
#define NORMAL     (1U << 1)
#define DEVICE     (2U << 1)

/* Gives access to `first` up to `last`, but to no part that a region has, since two can't overlap.
 */
static int open_range(uint32_t first, uint32_t last, uint32_t kind)
{
	for (uint32_t i = 0U; i < (MPU_TYPE >> 8 & 0xffU); i++) {
		uint32_t base, limit;

		MPU_RNR = i;
		base = MPU_RBAR & ~31U;
		limit = MPU_RASR | 31U;
		if ((MPU_RASR & REGION_ON) != 0U && base <= last && first <= limit) {
			return (base <= first || open_range(first, base - 1U, kind)) &&
			       (limit >= last || open_range(limit + 1U, last, kind));
		}
	}
	/* A device's code never runs. */
	return take_region(0, first | (kind == DEVICE), (last & ~31U) | kind | REGION_ON);
}

/* The MPU forbids no reads, but what no region has: all but the devices gets regions. */
static int close_devices(void)
{
	MPU_MAIR0 |= ATTRIBUTES;
	return open_range(0U, DEVICES - 1U, NORMAL) &&
	       open_range(DEVICES + DEVICES_SIZE, 0x9fffffffU, NORMAL) &&
	       open_range(0xa0000000U, 0xdfffffffU, DEVICE);
}

static int open_device(uint32_t base)
{
	return open_range(base, base + (1U << PAGE_BITS) - 1U, DEVICE);
}

#else

#define MPU_ON     5U         /* other memory stays accessible */
#define NEVER_RUN  (1U << 28) /* without the bits that give access */
#define READ_WRITE (3U << 24)

/* Later regions overrule: those of pages; and a kernel uses the first ones. */
static int close_devices(void)
{
	int first = (int)(MPU_TYPE >> 8 & 0xffU) - 1 - (int)PAGES;

	return take_region(first, DEVICES, NEVER_RUN | 28U << 1 | REGION_ON);
}

static int open_device(uint32_t base)
{
	return take_region(-1, base, NEVER_RUN | READ_WRITE | (PAGE_BITS - 1U) << 1 | REGION_ON);
}

#endif

/* The firmware uses a device of its own: it has these 256 bytes from now on. */
static int open_page(uint32_t address)
{
	uint32_t base = address >> PAGE_BITS << PAGE_BITS;

	for (uint32_t i = 0U; i < PAGES && !is_modelled(base, 1U << PAGE_BITS); i++) {
		if (trap_pages[i] == 0U) {
			trap_pages[i] = base;
			return open_device(base);
		}
	}
	return 0;
}

/* The state of the IT block at its next instruction. */
static uint32_t after_it(uint32_t xpsr)
{
	uint32_t it = (xpsr >> 25 & 3U) | (xpsr >> 8 & 0xfcU);

	it = (it & 7U) == 0U ? 0U : (it & 0xe0U) | (it << 1 & 0x1fU);
	return (xpsr & ~IT_STATE) | (it & 3U) << 25 | (it & 0xfcU) << 8;
}

static void keep(struct state *to, struct frame *from, uint32_t exc_return)
{
	to->r[0] = from->r0;
	to->r[1] = from->r1;
	to->r[2] = from->r2;
	to->r[3] = from->r3;
	to->r[12] = from->r12;
	to->lr = from->lr;
	to->pc = from->pc;
	to->xpsr = from->xpsr;
	to->sp = (uint32_t)from + ((exc_return & 16U) != 0U ? 32U : 104U) +
		 ((from->xpsr & STACK_MOVED) != 0U ? 4U : 0U);
	to->address = SCB_MMFAR;
	__asm__ volatile("mrs %0, primask" : "=r"(to->primask));
	__asm__ volatile("mrs %0, basepri" : "=r"(to->basepri));
	from->pc = (uint32_t)trap_resume & ~1U;
	from->xpsr &= ~IT_STATE;
}

static void give_back(struct frame *to, const struct state *from)
{
	to->r0 = from->r[0];
	to->r1 = from->r[1];
	to->r2 = from->r[2];
	to->r3 = from->r[3];
	to->r12 = from->r[12];
	to->lr = from->lr;
	to->pc = from->pc;
	to->xpsr = (from->xpsr & ~STACK_MOVED) | (to->xpsr & STACK_MOVED);
	__asm__ volatile("msr basepri, %0" ::"r"(from->basepri));
	__asm__ volatile("msr primask, %0" ::"r"(from->primask));
}

/* Returns 0, or the handler of a fault that has another cause. */
__attribute__((used)) static uint32_t trap_take(struct frame *frame, uint32_t exc_return)
{
	uint32_t status = SCB_CFSR;
	struct state *state = &states[(exc_return & THREAD) == 0U];

	uint32_t address = SCB_MMFAR;
	int is_access = (status & CFSR_ADDRESS) == CFSR_ADDRESS && address - DEVICES < DEVICES_SIZE;

	if ((status & CFSR_UNDEFINED) != 0U && frame->pc == (uint32_t)trap_again) {
		give_back(frame, state);
	} else if ((status & CFSR_UNDEFINED) != 0U && is_break(frame->pc)) {
		if (end_breaks(frame->pc)) {
			keep(state, frame, exc_return);
			state->address = 0U;
		}
	} else if ((status & CFSR_UNDEFINED) != 0U &&
		   step(&frame->pc, (exc_return & THREAD) != 0U)) {
		/* The instruction runs now. */
	} else if (is_access && (is_modelled(address, 1U) || frame->pc - own_base >= own_size)) {
		(void)end_breaks(0U);
		keep(state, frame, exc_return);
	} else if (!is_access || !open_page(address)) {
		trap_allow(); /* The firmware's handler tells it by its devices. */
		return faults_before[SCB_ICSR & 0x1ffU];
	}
	SCB_CFSR = status;
	SCB_HFSR = SCB_HFSR;
	return 0U;
}

__attribute__((naked)) static void trap_entry(void)
{
	__asm__ volatile("tst lr, #4\n\t"
			 "ite eq\n\t"
			 "mrseq r0, msp\n\t"
			 "mrsne r0, psp\n\t"
			 "mov r1, lr\n\t"
			 "push {r1, lr}\n\t"
			 "bl trap_take\n\t"
			 "pop {r1, lr}\n\t"
			 "cbnz r0, 1f\n\t"
			 "bx lr\n"
			 "1:\n\t"
			 "bx r0");
}

/* Returns from the interrupt to minrpc_escape_client, in the thread that it has interrupted. */
static __attribute__((noreturn)) void leave_interrupt(void)
{
	struct frame *frame;

	unpend();
	__asm__ volatile("mrs %0, psp" : "=r"(frame));
	frame->pc = (uint32_t)minrpc_escape_client & ~1U;
	frame->xpsr &= ~IT_STATE;
	__asm__ volatile("mov sp, %0\n\tpop {r3, pc}" ::"r"(outer_stack) : "memory");
	__builtin_unreachable();
}

/*
 * The answer has a value, its register, and the instruction's size.
 * Python writes further registers into the state.
 */
static void ask(void *context)
{
	struct state *state = context;
	struct question question = {.function = (uint32_t)trap_resume};
	value answer;

	for (int i = 0; i < 20; i++) {
		question.words[i] = ((const uint32_t *)state)[i];
	}
	answer = minrpc_asked(&question, sizeof(question), 0);
	if ((answer.i >> 32 & 0xff) < 15) {
		state->r[answer.i >> 32 & 0xff] = (uint32_t)answer.i;
	}
	state->pc += (uint32_t)(answer.i >> 40 & 0xff);
	state->xpsr = after_it(state->xpsr);
}

/* Another access may come while Python answers this one. */
__attribute__((used)) static void trap_ask(struct state *current)
{
	struct state state = *current;
	const uint16_t *code = (const uint16_t *)state.pc;
	int outer = is_asking;

	state.code = code[0] | (uint32_t)code[1] << 16;
	state.self = (uint32_t)&state;
	is_asking = 1;
	__asm__ volatile("msr basepri, %0\n\tcpsie i" ::"r"(0) : "memory");
	if (!minrpc_escapable_client(ask, &state)) {
		is_asking = outer;
		unpend();
		(void)end_breaks(0U);
		__asm__ volatile("msr basepri, %0" ::"r"(state.basepri) : "memory");
		minrpc_escape_client();
	}
	__asm__ volatile("cpsid i" ::: "memory");
	*current = state;
	is_asking = outer;
	if (is_waiting()) {
		pend();
	}
	set_regions(); /* The thread may have waited, and goes on with interrupts off. */
	set_breaks();
}

__attribute__((naked)) void trap_resume(void)
{
	__asm__ volatile(
		"ldr r0, =%c0\n\t"
		"mrs r1, ipsr\n\t"
		"cbz r1, 1f\n\t"
		"add r0, %1\n"
		"1:\n\t"
		"add r1, r0, #16\n\t"
		"stm r1, {r4-r11}\n\t" FPU("add r1, r0, #92") FPU("vstmia r1, {s0-s31}") FPU(
			"vmrs r2, fpscr")
			FPU("str r2, [r0, #88]") "mov r4, r0\n\t"
						 "mov r1, sp\n\t"
						 "bic r1, r1, #7\n\t"
						 "mov sp, r1\n\t"
						 "bl trap_ask\n\t" FPU("ldr r2, [r4, #88]") FPU(
							 "vmsr fpscr, r2") FPU("add r1, r4, #92")
							 FPU("vldmia r1, {s0-s31}") "ldr r1, [r4, "
										    "#52]\n\t"
										    "mov sp, r1\n\t"
										    "add r1, r4, "
										    "#16\n\t"
										    "ldm r1, "
										    "{r4-r11}\n"
										    "trap_again:"
										    "\n\t"
										    "udf #0\n\t"
										    ".ltorg" ::"i"(
											    states),
		"i"(sizeof(struct state)));
}

__attribute__((used)) static void run_handler(void)
{
	const struct frame *frame;

	set_regions();
	__asm__ volatile("mrs %0, psp" : "=r"(frame));
	while (!is_asking && is_waiting()) {
		if (!handle(next_handler(frame->pc))) {
			leave_interrupt();
		}
	}
}

__attribute__((naked)) static void interrupt_entry(void)
{
	__asm__ volatile("push {r3, lr}\n\t"
			 "ldr r0, =%c0\n\t"
			 "str sp, [r0]\n\t"
			 "ldr r0, =%c1\n\t"
			 "mov sp, r0\n\t"
			 "bl run_handler\n\t"
			 "ldr r0, =%c0\n\t"
			 "ldr r0, [r0]\n\t"
			 "mov sp, r0\n\t"
			 "pop {r3, pc}\n\t"
			 ".ltorg" ::"i"(&outer_stack),
			 "i"(stack + STACK_BYTES));
}

__attribute__((naked)) static void switch_entry(void)
{
	__asm__ volatile("ldr r0, =%c0\n\t"
			 "ldm r0, {r1, r2, r3}\n\t"
			 "str r2, [r1]\n\t"
			 "bx r3\n\t"
			 ".ltorg" ::"i"(switches));
}

/* True for a Cortex-M3 or M4: bits of peripherals have addresses of their own. */
int trap_has_bits(void)
{
	uint32_t part = SCB_CPUID >> 4 & 0xfffU;

	return part == 0xc23U || part == 0xc24U;
}

/* Takes the vectors of faults. base, size: the firmware's code. Returns false for another core. */
int trap_begin(uint32_t base, uint32_t size)
{
	uint32_t *table =
		(uint32_t *)(((uint32_t)vectors + 4U * VECTORS - 1U) & ~(4U * VECTORS - 1U));
	uint32_t count = 16U + 32U * (NVIC_LINES + 1U);

	own_base = base;
	own_size = size;
	before = (const uint32_t *)SCB_VTOR;
	control = MPU_CTRL;
	/* The firmware may forbid to read its vectors. */
	MPU_CTRL = 0U;
	barrier();
	for (uint32_t i = 0U; i < count && i < VECTORS; i++) {
		table[i] = before[i];
	}
	MPU_CTRL = control;
	switches[2] = table[14];
	for (uint32_t i = 3U; i <= 6U; i++) {
		faults_before[i] = table[i];
		table[i] = (uint32_t)trap_entry;
	}
#if __ARM_ARCH >= 8
	/* The stack of interrupts is another. */
	__asm__ volatile("mrs %0, msplim\n\tmsr msplim, %1" : "=&r"(limit) : "r"(0));
#endif
	active = 1;
	if (&minrpc_vectors) {
		minrpc_vectors = (uint32_t)table;
	}
	SCB_VTOR = (uint32_t)table;
	barrier();
	return 1;
}

/* A kernel may take regions back when it changes threads. */
static int are_on(uint32_t regions)
{
	for (uint32_t number = 0U; number < 32U; number++) {
		MPU_RNR = number;
		if ((regions >> number & 1U) != 0U && (MPU_RASR & REGION_ON) == 0U) {
			return 0;
		}
	}
	return 1;
}

/*
 * Forbids peripherals. Returns false if the core has no MPU for this, or no region of it is free;
 * in a second call, if the firmware has taken a region back.
 */
int trap_forbid(void)
{
	if (taken != 0U) {
		return are_on(taken);
	}
	if (!close_devices()) {
		trap_allow();
		return 0;
	}
	MPU_CTRL = MPU_ON;
	barrier();
	return 1;
}

void trap_allow(void)
{
	MPU_CTRL = control;
	barrier();
	for (uint32_t number = 0U; number < 32U; number++) {
		if ((taken >> number & 1U) != 0U) {
			MPU_RNR = number;
			MPU_RASR = 0U;
		}
	}
	for (uint32_t i = 0U; i < PAGES; i++) {
		trap_pages[i] = 0U;
	}
	taken = 0U;
	barrier();
}

/* Takes `line` for interrupts, or if it is negative a free one. Returns false without. */
int trap_connect(int line)
{
	uint32_t *table = (uint32_t *)SCB_VTOR;
	int last = 32 * (int)(NVIC_LINES + 1U) - 1;

	for (int at = line < 0 ? last : line; at >= 0 && at <= last; at--) {
		if (((NVIC_ENABLED((uint32_t)at / 32U) & ~own_lines[at / 32]) >> at % 32 & 1U) ==
		    0U) {
			own_lines[at / 32] |= 1U << at % 32;
			trap_line = (uint32_t)at;
			__asm__ volatile("cpsid i" ::: "memory");
			switches[0] = (uint32_t)&NVIC_PENDING(trap_line / 32U);
			switches[1] = 1U << trap_line % 32U;
			table[14] = (uint32_t)switch_entry;
			__asm__ volatile("cpsie i" ::: "memory");
			table[16 + at] = (uint32_t)interrupt_entry;
			NVIC_PRIORITY(trap_line) = LOWEST;
			NVIC_ENABLED(trap_line / 32U) = 1U << at % 32;
			barrier();
			return 1;
		}
		if (line >= 0) {
			break;
		}
	}
	return 0;
}

/* The runtime calls this before it frees the code. */
void minrpc_unload(void)
{
	if (!active) {
		return;
	}
	trap_allow();
	for (uint32_t i = 0U; i <= NVIC_LINES; i++) {
		NVIC_OFF(i) = own_lines[i];
	}
	trap_steps_end();
	if (&minrpc_vectors) {
		minrpc_vectors = (uint32_t)before;
	}
	SCB_VTOR = (uint32_t)before;
#if __ARM_ARCH >= 8
	__asm__ volatile("msr msplim, %0" ::"r"(limit));
#endif
	barrier();
	active = 0;
}
