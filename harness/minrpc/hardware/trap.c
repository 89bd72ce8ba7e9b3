/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The interface between a trap and Python, and the sweep: all instructions of loaded code are
 * replaced by one that traps, except the current one. So each is counted as it comes.
 *
 * Compiled behind the file that defines minrpc_asked, and before the processor's file.
 */
/* Without headers, since a toolchain may have none. */
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;

/* The piece of code that instructions consist of, and the piece that traps. */
#if defined(__x86_64__)
typedef uint8_t piece;
#define TRAPS 0xccU
#elif defined(__riscv)
typedef uint16_t piece;
#define TRAPS 0U
#else
typedef uint16_t piece;
#define TRAPS 0xde00U
#endif

#define MODELS 16U
#define PAGES  4U
#define RAISED 16U

typedef void (*handler)(void);

/* Registers that Python answers: address and size; the last has size 0. */
uint32_t trap_models[2U * (MODELS + 1U)];
/* Pages of devices that the firmware itself uses, found as it uses them; 0: free. */
uint32_t trap_pages[PAGES];
/* Handlers that models have raised, in the order in which they come; 0 behind them. */
handler trap_raised[RAISED + 1U];
/* The handler that comes at once or never, and the sweep's, which waits if is_pending. */
static volatile handler at_once;
static handler swept;
static int is_pending;
/*
 * The sweep's interrupt comes in front of number `target` of the instructions that `counted` marks,
 * or before in a wait for interrupts. place: of this instruction; came: of the instruction in front
 * of which it came last. left: the `masks` that a handler has set. entered: handlers that have not
 * returned. asleep: true in a wait behind the interrupt, for which there is no other.
 */
struct {
	uintptr_t base, size, place, came;
	const piece *code;
	const uint8_t *counted;
	piece *open;
	uint32_t target, count, left, entered, asleep;
} trap_steps;

/*
 * Instructions that were replaced by TRAPS, and their first halves: a store that is exclusive would
 * fail without an access, since a fault ends the exclusive access that a load has begun. The others
 * are the ways past the store.
 */
#define BREAKS 5U
struct {
	piece *place;
	uint32_t code;
} trap_breaks[BREAKS];

extern _Bool minrpc_escapable_client(void (*run)(void *context), void *context);
extern __attribute__((noreturn)) void minrpc_escape_client(void);

/* The processor's: changes code; interrupts that wait come as soon as they can. */
static void put_code(piece *place, uint32_t code);
static void pend(void);

static int is_waiting(void)
{
	return is_pending || at_once != 0 || trap_raised[0] != 0;
}

/* The call has ended: its interrupts come no more. */
static void forget(void)
{
	is_pending = 0;
	at_once = 0;
	trap_raised[0] = 0;
}

/* Takes the next interrupt, which comes in front of the instruction at `pc`; 0 if none waits. */
static handler next_handler(uintptr_t pc)
{
	handler next = at_once != 0 ? at_once : trap_raised[0];

	if (at_once != 0) {
		at_once = 0;
	} else {
		for (uint32_t i = 0U; i < RAISED && trap_raised[i] != 0; i++) {
			trap_raised[i] = trap_raised[i + 1U];
		}
	}
	if (is_pending && (next == 0 || next == swept)) {
		is_pending = 0;
		trap_steps.came = pc;
		next = swept;
	}
	return next;
}

/* Masks that outlive a handler: bit 0 PRIMASK, bits 8 to 15 BASEPRI. */
static uint32_t masks(void)
{
	uint32_t primask = 0U, basepri = 0U;

#if defined(__arm__)
	__asm__ volatile("mrs %0, primask" : "=r"(primask));
	__asm__ volatile("mrs %0, basepri" : "=r"(basepri));
#endif
	return primask | basepri << 8U;
}

static void call_handler(void *function)
{
	(*(handler *)function)();
}

/* Calls an interrupt's function. Returns false if Python has ended the call meanwhile. */
static int handle(handler function)
{
	uint32_t before = masks();
	int is_back;

	trap_steps.entered++;
	is_back = minrpc_escapable_client(call_handler, &function);
	trap_steps.entered--;
	if (is_back) {
		trap_steps.left |= masks() & ~before;
	}
	return is_back;
}

/* The masks that handlers have set since the last look. */
uint32_t trap_left(void)
{
	uint32_t left = trap_steps.left;

	trap_steps.left = 0U;
	return left;
}

static __attribute__((unused)) int is_break(uintptr_t pc)
{
	for (uint32_t i = 0U; i < BREAKS; i++) {
		if (trap_breaks[i].place != 0 && (uintptr_t)trap_breaks[i].place == pc) {
			return 1;
		}
	}
	return 0;
}

/* Returns true if `pc` is the exclusive store. */
static __attribute__((unused)) int end_breaks(uintptr_t pc)
{
	int is_store = (uintptr_t)trap_breaks[0].place == pc;

	for (uint32_t i = 0U; i < BREAKS && trap_breaks[i].place != 0; i++) {
		put_code(trap_breaks[i].place, trap_breaks[i].code);
		trap_breaks[i].place = 0;
	}
	return is_store;
}

static __attribute__((unused)) void set_breaks(void)
{
	for (uint32_t i = 0U; i < BREAKS && trap_breaks[i].place != 0; i++) {
		put_code(trap_breaks[i].place, TRAPS);
	}
}

static int is_marked(const uint8_t *bits, uintptr_t at)
{
	return bits[at / 8U] >> at % 8U & 1U;
}

/* True for an instruction that waits for an interrupt, whatever has happened before. */
static int sleeps(const piece *code)
{
#if defined(__arm__)
	return code[0] == 0xbf30U;
#elif defined(__riscv)
	return code[0] == 0x73U && code[1] == 0x1050U;
#else
	(void)code;
	return 0;
#endif
}

/* The bytes of an instruction that waits for an interrupt; 0 for another instruction. */
static uint32_t wait_size(const piece *code)
{
#if defined(__riscv)
	return sleeps(code) ? 4U : 0U;
#else
	return sleeps(code) || code[0] == 0xbf20U ? 2U : 0U; /* WFE */
#endif
}

/*
 * An instruction that was replaced comes: it runs next; but a wait for the interrupt ends. Returns
 * false for an instruction of the program itself.
 */
static int step(uintptr_t *pc, int is_counted)
{
	piece *place = (piece *)*pc;
	uintptr_t at = (*pc - trap_steps.base) / sizeof(piece);
	uint32_t waits;

	if (at >= trap_steps.size / sizeof(piece) || trap_steps.open == place) {
		return 0;
	}
	trap_steps.asleep &= (uint32_t)is_counted;
	if (trap_steps.asleep != 0U) { /* An interrupt of the firmware's has ended the wait. */
		*pc = (uintptr_t)trap_steps.open;
		return 1;
	}
	if (trap_steps.open != 0) {
		put_code(trap_steps.open, TRAPS);
	}
	put_code(place, trap_steps.code[at]);
	trap_steps.open = place;
	if (!is_counted || trap_steps.came != 0U) {
		trap_steps.asleep = is_counted && sleeps(&trap_steps.code[at]);
		return 1;
	}
	waits = wait_size(&trap_steps.code[at]);
	if (trap_steps.place == 0U) {
		int is_target = is_marked(trap_steps.counted, at) &&
				++trap_steps.count == trap_steps.target;

		if (is_target || waits != 0U) {
			trap_steps.place = *pc;
			is_pending = 1;
			pend();
		}
	}
	*pc += waits;
	return 1;
}

/*
 * Begins a sweep of `size` bytes at `base`. code: room for a copy. starts: a bit for each piece,
 * set where an instruction starts that is replaced. function: the interrupt's.
 */
void trap_steps_begin(uintptr_t base, uintptr_t size, piece *code, const uint8_t *starts,
		      const uint8_t *counted, uint32_t target, uintptr_t function)
{
	piece *place = (piece *)base;

	swept = (handler)function;
	is_pending = 0;
	for (uintptr_t i = 0U; i < size / sizeof(piece); i++) {
		code[i] = place[i];
		if (is_marked(starts, i)) {
			place[i] = TRAPS;
		}
	}
	put_code(place, *place);
	trap_steps.base = base;
	trap_steps.left = 0U;
	trap_steps.size = size;
	trap_steps.code = code;
	trap_steps.counted = counted;
	trap_steps.open = 0;
	trap_steps.target = target;
	trap_steps.count = 0U;
	trap_steps.place = 0U;
	trap_steps.came = 0U;
	trap_steps.asleep = 0U;
}

void trap_steps_end(void)
{
	for (uintptr_t i = 0U; i < trap_steps.size / sizeof(piece); i++) {
		put_code((piece *)trap_steps.base + i, trap_steps.code[i]);
	}
	trap_steps.size = 0U;
}

/*
 * Calls the function as an interrupt, now. Returns 1; 0 if it did not come, as interrupts are off;
 * 2 in a handler.
 */
uint32_t trap_interrupt(uintptr_t function)
{
	uint32_t has_come;

	if (trap_steps.entered != 0U) {
		return 2U;
	}
	trap_steps.left = 0U;
	at_once = (handler)function;
	pend();
	has_come = at_once == 0;
	at_once = 0;
	return has_come;
}
