/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A TCG plugin for QEMU: counts what the guest executes, instruction by instruction, into memory
 * that it shares with the harness. The harness writes the control page before QEMU starts and reads
 * the counts while the guest waits for it. See qemu_counters.py for the other side of the layout.
 *
 * QEMU's plugin header is in no package, so what is used of it is declared here. PLUGIN_API is 1
 * for QEMU 4.2 to 8.2; from QEMU 9.0 on, where counts in line are kept for each virtual CPU, it is
 * 2 or more.
 */
#define _POSIX_C_SOURCE 200809L

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

/* ------------------------------------------------------------------ of QEMU */

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info;

enum qemu_plugin_cb_flags {
	QEMU_PLUGIN_CB_NO_REGS
};
enum qemu_plugin_op {
	QEMU_PLUGIN_INLINE_ADD_U64
};
enum qemu_plugin_mem_rw {
	QEMU_PLUGIN_MEM_RW = 3
};
typedef uint32_t qemu_plugin_meminfo_t;
struct qemu_plugin_hwaddr;

typedef void (*qemu_plugin_tb_trans_cb)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*qemu_plugin_udata_cb)(unsigned int vcpu, void *userdata);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_plugin_tb_trans_cb cb);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, qemu_plugin_udata_cb cb,
					    enum qemu_plugin_cb_flags flags, void *userdata);
typedef void (*qemu_plugin_mem_cb)(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t address,
				   void *userdata);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, qemu_plugin_mem_cb cb,
				      enum qemu_plugin_cb_flags flags, enum qemu_plugin_mem_rw rw,
				      void *userdata);
unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t address);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *address);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, qemu_plugin_udata_cb cb,
					  enum qemu_plugin_cb_flags flags, void *userdata);
/*
 * Up to QEMU 9.0 it takes only `insn` and gives where the bytes are; then it copies them, and gives
 * how many.
 */
uintptr_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t size);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

void qemu_plugin_register_vcpu_idle_cb(qemu_plugin_id_t id,
				       void (*cb)(qemu_plugin_id_t id, unsigned int vcpu));

#if PLUGIN_API == 1
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn,
						enum qemu_plugin_op op, void *ptr, uint64_t imm);
#else
struct qemu_plugin_scoreboard;
typedef struct {
	struct qemu_plugin_scoreboard *score;
	size_t offset;
} qemu_plugin_u64;

struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t element_size);
void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *score, unsigned int vcpu);
void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(struct qemu_plugin_insn *insn,
							 enum qemu_plugin_op op,
							 qemu_plugin_u64 entry, uint64_t imm);
#endif

__attribute__((visibility("default"))) int qemu_plugin_version = PLUGIN_API;

/* ------------------------------------------------------------- shared memory */

#define LAYOUT      4U
#define MAX_RANGES  16U
#define MAX_EDGES   16U
#define MAX_REGIONS 16U
#define NO_FUNCTION UINT32_MAX

/* What is looked at beside the count of instructions. */
#define LOOK_AT_FLOW   1U /* branches, and who calls whom */
#define LOOK_AT_MEMORY 2U

/* Guest addresses whose instructions are counted one by one. */
struct range {
	uint64_t base;
	uint64_t size;
	uint64_t shift; /* an instruction starts on a multiple of 1 << shift bytes */
	uint64_t first; /* number of its first counter */
};

/* Counters that are no single instruction's come first. */
enum {
	INSTRUCTIONS,
	ELSEWHERE, /* of these: outside of all ranges */
	FIRST_RANGE,
};

enum machine {
	ARM = 1,
	RISCV,
	X86
};

/*
 * Memory by its kind. What is in no region is RAM that the image does not mention, or a device's
 * registers.
 */
enum kind {
	FLASH,
	RAM,
	DEVICE,
	KINDS
};

struct region {
	uint64_t base;
	uint64_t size;
	uint64_t kind;
};

struct function {
	uint64_t start;
	uint64_t end;
};

/*
 * A function as called from another, and so on up to the window: what was executed in it, its
 * callees' apart.
 */
struct node {
	uint32_t parent;
	uint32_t function;
	uint32_t child;   /* the first; 0: none, as the root is nobody's */
	uint32_t sibling; /* the next */
	uint64_t instructions;
	uint64_t calls;
};

/* All but the last three is the harness's to write. */
struct control {
	uint64_t layout;
	uint64_t ranges;
	uint64_t opens;      /* addresses of instructions at which a window opens */
	uint64_t closes;     /* at which it closes; they are not in it */
	uint64_t windows_at; /* where in the file the windows are */
	uint64_t windows_max;
	uint64_t counters;  /* how many */
	uint64_t live_at;   /* where in the file they are, since the start of QEMU */
	uint64_t inside_at; /* and those of what was executed in windows */
	/* the code up to slow_to takes the host longer, and the guest no time */
	uint64_t slow_from;
	uint64_t slow_to;
	struct range range[MAX_RANGES];
	uint64_t open_at[MAX_EDGES];
	uint64_t close_at[MAX_EDGES];

	uint64_t look_at;
	uint64_t machine;
	uint64_t functions_at; /* where in the file they are, by address */
	uint64_t functions;
	uint64_t nodes_at;
	uint64_t nodes_max;
	uint64_t regions;
	struct region region[MAX_REGIONS];
	uint64_t cache_line; /* bytes, a power of two; sets, too */
	uint64_t cache_sets;
	uint64_t cache_ways;
	uint64_t stack_low; /* of the stack that is looked at, and its end */
	uint64_t stack_high;
	uint64_t loaded; /* functions behind the image's; more come while QEMU runs, as ranges do */

	uint64_t trace_at; /* what the last window did, in its order */
	uint64_t trace_max;

	uint64_t traced;  /* steps of the last window; more than trace_max are only counted */
	uint64_t nodes;   /* in use, the root among them */
	uint64_t windows; /* that were closed: the last windows_max of them are kept */
};

/* A block that was begun, or an access that an instruction made. */
struct step {
	uint64_t where; /* the block, or the instruction */
	uint64_t what;  /* the block's end and the top bit, or the address */
};

#define STEP_BLOCK (1ULL << 63)

_Static_assert(sizeof(struct control) <= 4096U, "a page of its own");

/*
 * Counts of one window. Accesses are as the processor makes them: an instruction may make several.
 */
struct window {
	uint64_t instructions;
	uint64_t branches; /* taken */
	uint64_t loads;
	uint64_t stores;
	uint64_t load_bytes;
	uint64_t store_bytes;
	uint64_t unaligned;
	uint64_t kind[KINDS];
	uint64_t misses;      /* of the cache model */
	uint64_t path;        /* hash of what was executed, in its order */
	uint64_t addresses;   /* hash of the addresses of accesses, in their order */
	uint64_t stack_first; /* the first store to the stack, and the lowest; 0: none */
	uint64_t stack_lowest;
};

static struct control *control;
static uint8_t *shared;

/* ------------------------------------------------------------------ counters */

#if PLUGIN_API == 1

/* QEMU counts straight into the shared memory. */
static uint64_t *counters(void)
{
	return (uint64_t *)(shared + control->live_at);
}

static void count(struct qemu_plugin_insn *insn, size_t counter)
{
	qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64,
						   counters() + counter, 1U);
}

#else

/*
 * QEMU counts into memory of its own, from which what has changed is copied while the guest idles.
 */
static struct qemu_plugin_scoreboard *score;

static uint64_t *counters(void)
{
	return qemu_plugin_scoreboard_find(score, 0U);
}

static void count(struct qemu_plugin_insn *insn, size_t counter)
{
	const qemu_plugin_u64 entry = {score, counter * sizeof(uint64_t)};

	qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, QEMU_PLUGIN_INLINE_ADD_U64, entry,
							    1U);
}

#endif

/* The counters that are in use: those of instructions that were translated. */
struct used {
	size_t counter;
	uint64_t before;
};

static struct used *used;
static size_t used_count;
static size_t used_max;
static uint8_t *seen;

static void use(size_t counter)
{
	if (seen[counter] != 0U) {
		return;
	}
	seen[counter] = 1U;
	if (used_count == used_max) {
		used_max = used_max == 0U ? 4096U : 2U * used_max;
		used = realloc(used, used_max * sizeof(*used));
		if (used == NULL) {
			abort();
		}
	}
	used[used_count++] = (struct used){counter, counters()[counter]};
}

#if PLUGIN_API > 1
static void publish(void)
{
	const uint64_t *from = counters();
	uint64_t *to = (uint64_t *)(shared + control->live_at);

	for (size_t i = 0U; i < used_count; i++) {
		to[used[i].counter] = from[used[i].counter];
	}
}

static void idle(qemu_plugin_id_t id, unsigned int vcpu)
{
	(void)id;
	(void)vcpu;
	publish();
}
#endif

/* ------------------------------------------------------------------- windows */

static bool is_open;
static bool tracing;
static struct window now; /* the one that is open */

static uint64_t hashed(uint64_t hash, uint64_t value)
{
	/* One step of FNV-1a, on 64 bits at once. */
	return (hash ^ value) * 0x100000001b3U;
}

static void trace(uint64_t where, uint64_t what)
{
	if (control->traced < control->trace_max) {
		((struct step *)(shared + control->trace_at))[control->traced] =
			(struct step){where, what};
	}
	control->traced++;
}

/* ---------------------------------------------------------------------- flow */

/*
 * A piece of code with one way in: a translated block, or what of it begins at a function's start.
 */
struct block {
	uint64_t start;
	uint64_t end;
	uint32_t instructions;
	uint32_t function;
	bool entry; /* it begins a function */
	bool calls; /* its last instruction is a call */
};

#define DEPTH 1024U

/* What is active, from the window down: whoever opened it comes first. */
static struct {
	uint32_t node;
	uint32_t function;
	uint64_t returns_to; /* 0: it was not called, but jumped to or interrupted */
} stack[DEPTH];

static uint32_t depth;
static const struct block *last;
static uint64_t counted; /* instructions when `last` was begun */

static struct node *node_at(uint32_t index)
{
	return (struct node *)(shared + control->nodes_at) + index;
}

/*
 * The node of `function` as called from `parent`; the parent's own where there is no room for more.
 */
static uint32_t child_of(uint32_t parent, uint32_t function)
{
	uint32_t index = node_at(parent)->child;

	for (; index != 0U; index = node_at(index)->sibling) {
		if (node_at(index)->function == function) {
			return index;
		}
	}
	if (control->nodes == control->nodes_max) {
		return parent;
	}
	index = (uint32_t)control->nodes++;
	*node_at(index) = (struct node){
		.parent = parent, .function = function, .sibling = node_at(parent)->child};
	node_at(parent)->child = index;
	return index;
}

static void push(uint32_t function, uint64_t returns_to)
{
	uint32_t parent = depth == 0U ? 0U : stack[depth - 1U].node;
	uint32_t node = child_of(parent, function);

	node_at(node)->calls++;
	if (depth < DEPTH) {
		stack[depth].node = node;
		stack[depth].function = function;
		stack[depth++].returns_to = returns_to;
	}
}

/* Back to the caller that waits for a return to `address`; false when there is none. */
static bool pop_to_return(uint64_t address)
{
	for (uint32_t i = depth; i > 1U; i--) {
		if (stack[i - 1U].returns_to == address) {
			depth = i - 1U;
			return true;
		}
	}
	return false;
}

/* Back to `function`, which an interrupt or a jump has left; false when it is not active. */
static bool pop_to_function(uint32_t function)
{
	for (uint32_t i = depth; i > 0U; i--) {
		if (stack[i - 1U].function == function) {
			depth = i;
			return true;
		}
	}
	return false;
}

/* From the block `last`, which was executed to its end, to `block`. */
static void go_on(const struct block *block)
{
	bool straight = block->start == last->end;

	if (!straight) {
		now.branches++;
	}
	if (block->entry && last->calls) {
		push(block->function, last->end);
	} else if (!straight && pop_to_return(block->start)) {
		return;
	} else if (block->function != stack[depth - 1U].function &&
		   (block->entry || !pop_to_function(block->function))) {
		push(block->function, 0U);
	}
}

/*
 * What was executed since `last` began goes to the function that it is in. Returns how much that
 * is.
 */
static uint64_t settle(void)
{
	uint64_t total = counters()[INSTRUCTIONS];
	uint64_t executed = total - counted;

	counted = total;
	node_at(stack[depth - 1U].node)->instructions += executed;
	return executed;
}

static void begin_block(unsigned int vcpu, void *userdata)
{
	const struct block *block = userdata;

	(void)vcpu;
	if (is_open) {
		/*
		 * QEMU leaves a block before a device's register is accessed, and goes on with a
		 * new one.
		 */
		bool whole = settle() == last->instructions;

		if (tracing) {
			now.path = hashed(now.path, block->start);
			trace(block->start, block->end | STEP_BLOCK);
		}
		if (whole || block->function != last->function) {
			go_on(block);
		}
	}
	last = block;
}

static void open_flow(void)
{
	depth = 0U;
	counted = counters()[INSTRUCTIONS];
	push(last == NULL ? NO_FUNCTION : last->function, 0U);
}

/* -------------------------------------------------------------------- memory */

struct way {
	uint64_t line;
	uint64_t used; /* when: the least is thrown out */
};

static struct way *ways;
static uint64_t cache_time;
static unsigned int line_bits; /* lines and sets are powers of two */
static uint64_t set_mask;

static void touch(uint64_t address)
{
	static uint64_t last_line;
	static struct way *last_way;
	uint64_t line = (address >> line_bits) + 1U;
	struct way *set;
	struct way *oldest;

	cache_time++;
	/* Mostly it is the line of the access before, which is still there. */
	if (line == last_line) {
		last_way->used = cache_time;
		return;
	}
	last_line = line;
	set = ways + (line & set_mask) * control->cache_ways;
	oldest = set;
	for (uint64_t i = 0U; i < control->cache_ways; i++) {
		if (set[i].line == line) {
			set[i].used = cache_time;
			last_way = &set[i];
			return;
		}
		if (set[i].used < oldest->used) {
			oldest = &set[i];
		}
	}
	*oldest = (struct way){line, cache_time};
	last_way = oldest;
	now.misses++;
}

/* Kinds do not change within a page that no region reaches into; nor do regions while QEMU runs. */
#define PAGE_BITS 10U

static enum kind kind_outside(qemu_plugin_meminfo_t info, uint64_t address)
{
	static uint64_t last_page = UINT64_MAX;
	static enum kind last_kind;
	const struct qemu_plugin_hwaddr *physical;

	if (address >> PAGE_BITS != last_page) {
		physical = qemu_plugin_get_hwaddr(info, address);
		last_kind = physical != NULL && qemu_plugin_hwaddr_is_io(physical) ? DEVICE : RAM;
		last_page = address >> PAGE_BITS;
	}
	return last_kind;
}

static enum kind kind_of(qemu_plugin_meminfo_t info, uint64_t address)
{
	/* Most accesses go where one before went. */
	static uint64_t last;
	const struct region *region = control->region;

	if (address - region[last].base < region[last].size) {
		return (enum kind)region[last].kind;
	}
	for (uint64_t i = 0U; i < control->regions; i++) {
		if (address - region[i].base < region[i].size) {
			last = i;
			return (enum kind)region[i].kind;
		}
	}
	return kind_outside(info, address);
}

/* Around the first store, where a stack lies that is mapped as its thread starts. */
#define STACK_BELOW 0x8000U
#define STACK_ABOVE 0x1000U

static void note_stack(uint64_t address)
{
	uint64_t low = control->stack_low;
	uint64_t high = control->stack_high;

	if (high == UINT64_MAX) {
		uint64_t first = now.stack_first == 0U ? address : now.stack_first;

		low = first - STACK_BELOW;
		high = first + STACK_ABOVE;
	}
	if (address - low >= high - low) {
		return;
	}
	if (now.stack_first == 0U) {
		now.stack_first = address;
	}
	if (now.stack_lowest == 0U || address < now.stack_lowest) {
		now.stack_lowest = address;
	}
}

static void accessed(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t address,
		     void *userdata)
{
	uint64_t size = 1ULL << qemu_plugin_mem_size_shift(info);
	enum kind kind;

	(void)vcpu;
	if (!is_open) {
		return;
	}
	if (tracing) {
		trace((uint64_t)(uintptr_t)userdata, address);
		now.addresses = hashed(now.addresses, address);
	}
	kind = kind_of(info, address);
	now.kind[kind]++;
	now.unaligned += (address & (size - 1U)) != 0U;
	if (qemu_plugin_mem_is_store(info)) {
		now.stores++;
		now.store_bytes += size;
		note_stack(address);
	} else {
		now.loads++;
		now.load_bytes += size;
	}
	/* A device's registers are never cached. */
	if (kind != DEVICE) {
		touch(address);
		if ((address ^ (address + size - 1U)) >= control->cache_line) {
			touch(address + size - 1U);
		}
	}
}

/* ------------------------------------------------------------ open and close */

static void open_window(unsigned int vcpu, void *userdata)
{
	const uint64_t *live = counters();

	(void)vcpu;
	(void)userdata;
	is_open = true;
	now = (struct window){0};
	control->traced = 0U;
	for (size_t i = 0U; i < used_count; i++) {
		used[i].before = live[used[i].counter];
	}
	if ((control->look_at & LOOK_AT_FLOW) != 0U) {
		open_flow();
	}
}

static void close_window(unsigned int vcpu, void *userdata)
{
	struct window *windows = (struct window *)(shared + control->windows_at);
	uint64_t *inside = (uint64_t *)(shared + control->inside_at);
	const uint64_t *live = counters();

	(void)vcpu;
	(void)userdata;
	if (!is_open) {
		return;
	}
	if ((control->look_at & LOOK_AT_FLOW) != 0U) {
		(void)settle();
	}
	is_open = false;
	/*
	 * The first in use is that of all instructions, which counts only where the flow is looked
	 * at.
	 */
	for (size_t i = 1U; i < used_count; i++) {
		uint64_t executed = live[used[i].counter] - used[i].before;

		inside[used[i].counter] += executed;
		now.instructions += executed;
	}
	windows[control->windows++ % control->windows_max] = now;
}

/* --------------------------------------------------------------- translation */

static bool holds(const uint64_t *addresses, uint64_t count, uint64_t address)
{
	for (uint64_t i = 0U; i < count; i++) {
		if (addresses[i] == address) {
			return true;
		}
	}
	return false;
}

/*
 * Meanwhile other threads of QEMU do what they have to: a byte that waits for the guest's UART gets
 * there.
 */
static void linger(unsigned int vcpu, void *userdata)
{
	static const struct timespec moment = {.tv_nsec = 50000};

	(void)vcpu;
	(void)userdata;
	(void)nanosleep(&moment, NULL);
}

/* The counter of the instruction at `address`. */
static size_t counter_of(uint64_t address)
{
	/* What was loaded last lies where others lay before. */
	for (uint64_t i = control->ranges; i-- > 0U;) {
		const struct range *range = &control->range[i];

		if (address - range->base < range->size) {
			return (size_t)(range->first + ((address - range->base) >> range->shift));
		}
	}
	return ELSEWHERE;
}

/* The number of the function that `address` is in. */
static uint32_t function_of(uint64_t address)
{
	const struct function *functions =
		(const struct function *)(shared + control->functions_at);
	uint64_t low = 0U;
	uint64_t high = control->functions;

	/* Those that were loaded are behind the image's, in the order of loading. */
	for (uint64_t i = high + control->loaded; i-- > high;) {
		if (address - functions[i].start < functions[i].end - functions[i].start) {
			return (uint32_t)i;
		}
	}
	while (low < high) {
		uint64_t middle = (low + high) / 2U;

		if (address >= functions[middle].end) {
			low = middle + 1U;
		} else if (address < functions[middle].start) {
			high = middle;
		} else {
			return (uint32_t)middle;
		}
	}
	return NO_FUNCTION;
}

static bool begins_function(uint64_t address)
{
	const struct function *functions =
		(const struct function *)(shared + control->functions_at);
	uint32_t function = function_of(address);

	return function != NO_FUNCTION && functions[function].start == address;
}

static bool is_call(const struct qemu_plugin_insn *insn)
{
	uint8_t copy[16] = {0};
	uintptr_t data = qemu_plugin_insn_data(insn, copy, sizeof(copy));
	const uint8_t *at = data > sizeof(copy) ? (const uint8_t *)data : copy;
	size_t size = qemu_plugin_insn_size(insn);
	uint32_t first = (uint32_t)(at[0] | at[1] << 8);
	uint32_t second = size < 4U ? 0U : (uint32_t)(at[2] | at[3] << 8);

	switch (control->machine) {
	case ARM: /* Thumb's BL, BLX */
		return size == 2U ? (first & 0xff87U) == 0x4780U
				  : (first & 0xf800U) == 0xf000U && (second & 0xc000U) == 0xc000U;
	case RISCV: /* JAL and JALR that link to ra; C.JALR, and C.JAL of RV32 */
		if (size == 2U) {
			return ((first & 0xf07fU) == 0x9002U && (first & 0xf80U) != 0U) ||
			       (first & 0xe003U) == 0x2001U;
		}
		return (first & 0xfffU) == 0x0efU || (first & 0xfffU) == 0x0e7U;
	default: /* CALL rel32, CALL r/m */
		return at[0] == 0xe8U || (at[0] == 0xffU && (at[1] >> 3 & 7U) == 2U);
	}
}

static struct block *new_block(uint64_t start)
{
	struct block *block = calloc(1U, sizeof(*block));

	if (block == NULL) {
		abort();
	}
	block->start = start;
	block->function = function_of(start);
	block->entry = begins_function(start);
	return block;
}

/* Blocks live as long as QEMU: the code that it made of them is executed at any time. */
static void follow_flow(struct qemu_plugin_tb *tb)
{
	size_t insns = qemu_plugin_tb_n_insns(tb);
	struct block *block = NULL;

	for (size_t i = 0U; i < insns; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t address = qemu_plugin_insn_vaddr(insn);

		if (block == NULL) {
			block = new_block(address);
			qemu_plugin_register_vcpu_tb_exec_cb(tb, begin_block,
							     QEMU_PLUGIN_CB_NO_REGS, block);
		} else if (begins_function(address)) {
			block = new_block(address);
			qemu_plugin_register_vcpu_insn_exec_cb(insn, begin_block,
							       QEMU_PLUGIN_CB_NO_REGS, block);
		}
		block->instructions++;
		block->end = address + qemu_plugin_insn_size(insn);
		block->calls = is_call(insn);
	}
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t insns = qemu_plugin_tb_n_insns(tb);

	(void)id;
	use(INSTRUCTIONS);
	if ((control->look_at & LOOK_AT_FLOW) != 0U) {
		follow_flow(tb);
	}
	for (size_t i = 0U; i < insns; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t address = qemu_plugin_insn_vaddr(insn);
		size_t counter = counter_of(address);

		/* Before it is counted: it is the first of what the window holds. */
		if (holds(control->close_at, control->closes, address)) {
			qemu_plugin_register_vcpu_insn_exec_cb(insn, close_window,
							       QEMU_PLUGIN_CB_NO_REGS, NULL);
		}
		if (holds(control->open_at, control->opens, address)) {
			qemu_plugin_register_vcpu_insn_exec_cb(insn, open_window,
							       QEMU_PLUGIN_CB_NO_REGS, NULL);
		}
		if (address - control->slow_from < control->slow_to - control->slow_from) {
			qemu_plugin_register_vcpu_insn_exec_cb(insn, linger, QEMU_PLUGIN_CB_NO_REGS,
							       NULL);
		}
		if ((control->look_at & LOOK_AT_MEMORY) != 0U) {
			qemu_plugin_register_vcpu_mem_cb(insn, accessed, QEMU_PLUGIN_CB_NO_REGS,
							 QEMU_PLUGIN_MEM_RW,
							 (void *)(uintptr_t)address);
		}
		use(counter);
		if ((control->look_at & LOOK_AT_FLOW) != 0U) {
			count(insn, INSTRUCTIONS);
		}
		count(insn, counter);
	}
}

/* Maps what the harness made and handed over as the descriptor `fd`. */
static bool map_shared(int fd)
{
	struct stat status;

	if (fstat(fd, &status) != 0 || (size_t)status.st_size < sizeof(struct control)) {
		return false;
	}
	shared = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	control = (struct control *)shared;
	return shared != MAP_FAILED && control->layout == LAYOUT;
}

__attribute__((visibility("default"))) int
qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv)
{
	int fd = -1;

	(void)info;
	for (int i = 0; i < argc; i++) {
		(void)sscanf(argv[i], "fd=%d", &fd);
	}
	if (!map_shared(fd)) {
		fprintf(stderr, "minrpc's plugin: no shared memory of layout %u at descriptor %d\n",
			LAYOUT, fd);
		return -1;
	}
	tracing = control->trace_max != 0U;
	line_bits = (unsigned int)__builtin_ctzll(control->cache_line);
	set_mask = control->cache_sets - 1U;
	seen = calloc((size_t)control->counters, 1U);
	ways = calloc((size_t)(control->cache_sets * control->cache_ways), sizeof(*ways));
	if (seen == NULL || ways == NULL) {
		return -1;
	}
#if PLUGIN_API > 1
	score = qemu_plugin_scoreboard_new((size_t)control->counters * sizeof(uint64_t));
	qemu_plugin_register_vcpu_idle_cb(id, idle);
#endif
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
