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

void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id,
				       void (*cb)(qemu_plugin_id_t id, unsigned int vcpu));
struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t element_size);
void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *score, unsigned int vcpu);
void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(struct qemu_plugin_insn *insn,
							 enum qemu_plugin_op op,
							 qemu_plugin_u64 entry, uint64_t imm);
#endif

__attribute__((visibility("default"))) int qemu_plugin_version = PLUGIN_API;

/* ------------------------------------------------------------- shared memory */

#define LAYOUT      5U
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

/* The counter that is no single instruction's comes first. */
enum {
	ELSEWHERE, /* outside of all ranges */
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

/* A jump, or an access that an instruction made. Where blocks end is QEMU's affair, and no step. */
struct step {
	uint64_t where; /* that it went to, or the instruction */
	uint64_t what;  /* the end of where it came from, or the address, and one of these bits */
};

#define STEP_JUMP  (1ULL << 63)
#define STEP_STORE (1ULL << 62)

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

/* What the harness reads, since the start of QEMU. */
static uint64_t *live(void)
{
	return (uint64_t *)(shared + control->live_at);
}

/* And of what was executed in windows. */
static uint64_t *inside(void)
{
	return (uint64_t *)(shared + control->inside_at);
}

/* Memory that QEMU counts in, in line: `place` is the guest's only processor's. */
struct tally {
	uint64_t *place;
#if PLUGIN_API > 1
	struct qemu_plugin_scoreboard *score;
#endif
};

#if PLUGIN_API > 1

static void new_tally(struct tally *tally, size_t count)
{
	tally->score = qemu_plugin_scoreboard_new(count * sizeof(uint64_t));
}

/* When there is a processor; and where it stays, as there is no second one. */
static void find_tally(struct tally *tally)
{
	if (tally->score != NULL) {
		tally->place = qemu_plugin_scoreboard_find(tally->score, 0U);
	}
}

#endif

/* Each time that `insn` is executed it is one more. */
static void count(struct qemu_plugin_insn *insn, const struct tally *tally, size_t index)
{
#if PLUGIN_API == 1
	qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64,
						   tally->place + index, 1U);
#else
	const qemu_plugin_u64 entry = {tally->score, index * sizeof(uint64_t)};

	qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, QEMU_PLUGIN_INLINE_ADD_U64, entry,
							    1U);
#endif
}

/* A list that grows; what is in it stays where it is only until then. */
static void *grown(void *list, size_t used, size_t *max, size_t size)
{
	if (used < *max) {
		return list;
	}
	*max = *max == 0U ? 4096U : 2U * *max;
	list = realloc(list, *max * size);
	if (list == NULL) {
		abort();
	}
	return list;
}

/*
 * One by one: each instruction that was translated has a counter of QEMU's. Where the flow is
 * looked at, blocks are counted instead.
 */
struct used {
	size_t counter;
	uint64_t settled; /* so many are in what the harness reads */
};

static struct tally singles;
static struct used *used;
static size_t used_count;
static size_t used_max;
static uint8_t *seen;

static void use(size_t counter)
{
	if (seen[counter] == 0U) {
		seen[counter] = 1U;
		used = grown(used, used_count, &used_max, sizeof(*used));
		used[used_count++] = (struct used){counter, 0U};
	}
}

/* Hands over what was executed since the last time; how much that is. */
static uint64_t settle_singles(bool in_window)
{
	uint64_t total = 0U;

	for (size_t i = 0U; i < used_count; i++) {
		uint64_t executed = singles.place[used[i].counter] - used[i].settled;

		used[i].settled += executed;
#if PLUGIN_API > 1
		live()[used[i].counter] += executed;
#endif
		if (in_window) {
			inside()[used[i].counter] += executed;
		}
		total += executed;
	}
	return total;
}

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

/* An instruction of a block. */
struct member {
	uint32_t counter;
	uint32_t offset; /* from the block's start */
};

/*
 * A piece of code with one way in: a translated block, or what of it begins at a function's start,
 * or where a window opens or closes.
 */
struct block {
	uint64_t start;
	uint64_t end;
	uint64_t runs;    /* to its end */
	uint64_t settled; /* of these: so many are in what the harness reads */
	uint32_t instructions;
	uint32_t function;
	bool entry; /* it begins a function */
	bool calls; /* its last instruction is a call */
	/* The node that it had when it was last called, and that of the caller then. */
	struct node *node;
	struct node *parent;
	struct member *members;
};

#define DEPTH 1024U

/* What is active, from the window down: whoever opened it comes first. */
static struct frame {
	struct node *node;
	uint32_t function;
	uint64_t returns_to; /* 0: it was not called, but jumped to or interrupted */
	uint64_t returns;    /* where the innermost returns to that was called, up to this one */
} stack[DEPTH + 1U] = {{.function = NO_FUNCTION}};

static struct frame *active = stack; /* the last one; stack[0] is nobody's */
static uint64_t executed;            /* in `active`, since that was last noted */
static uint64_t last_access;         /* address of the instruction that made it */

/* One more for each block that was executed to its end: QEMU counts it. */
static struct tally ends;
#if PLUGIN_API == 1
static uint64_t ends_counted;
#endif
static uint64_t ends_seen; /* blocks that were begun, less those that were left early */

static struct block nowhere = {.function = NO_FUNCTION};
static struct block *last = &nowhere;

static struct block **blocks;
static size_t block_count;
static size_t block_max;

static struct node *node_at(uint32_t index)
{
	return (struct node *)(shared + control->nodes_at) + index;
}

/* What was executed goes to the function that it is in. */
static inline void note_executed(void)
{
	active->node->instructions += executed;
	now.instructions += executed;
	executed = 0U;
}

/*
 * The node of `function` as called from `parent`; the parent's own where there is no room for more.
 */
static __attribute__((noinline)) uint32_t child_of(uint32_t parent, uint32_t function)
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

static inline void push(struct block *block, uint64_t returns_to)
{
	struct node *parent = active->node;

	if (block->parent != parent) {
		block->parent = parent;
		block->node = node_at(child_of((uint32_t)(parent - node_at(0U)), block->function));
	}
	block->node->calls++;
	if (active < stack + DEPTH) {
		uint64_t returns = returns_to != 0U ? returns_to : active->returns;

		*++active = (struct frame){block->node, block->function, returns_to, returns};
	}
}

/* Back to the caller that waits for a return to `address`; false when there is none. */
static inline bool pop_to_return(uint64_t address)
{
	for (struct frame *frame = active; frame > stack + 1; frame--) {
		if (frame->returns_to == address) {
			active = frame - 1;
			return true;
		}
	}
	return false;
}

/* Back to `function`, which an interrupt or a jump has left; false when it is not active. */
static bool pop_to_function(uint32_t function)
{
	for (struct frame *frame = active; frame > stack; frame--) {
		if (frame->function == function) {
			active = frame;
			return true;
		}
	}
	return false;
}

/* To `block`: a call, a return, an interrupt, or a jump elsewhere. */
static __attribute__((noinline)) void change_function(const struct block *from, struct block *block)
{
	note_executed();
	if (block->entry && from->calls) {
		push(block, from->end);
	} else if (block->start != from->end && pop_to_return(block->start)) {
		return;
	} else if (block->function != active->function &&
		   (block->entry || !pop_to_function(block->function))) {
		push(block, 0U);
	}
}

/*
 * QEMU leaves a block behind an instruction that has accessed a device's register, and goes on with
 * a new one, or with an interrupt. Notes what of `block` was executed, and returns its end.
 */
static __attribute__((noinline)) uint64_t leave_early(struct block *block, uint64_t next)
{
	uint64_t size = block->end - block->start;
	uint64_t upto = size;
	uint32_t i = 0U;

	if (next - block->start - 1U < size) {
		upto = next - block->start;
	} else if (last_access - block->start < size) {
		upto = last_access - block->start + 1U;
	}
	for (; i < block->instructions && block->members[i].offset < upto; i++) {
		live()[block->members[i].counter]++;
		if (is_open) {
			inside()[block->members[i].counter]++;
		}
	}
	executed += is_open ? i : 0U;
	return block->start + upto;
}

static inline void trace_jump(uint64_t from, uint64_t to)
{
	if (from != to) {
		now.path = hashed(hashed(now.path, from), to);
		trace(to, from | STEP_JUMP);
	}
}

static inline void follow(const struct block *from, struct block *block)
{
	/* Mostly it is a jump within a function. */
	if (block->function != active->function || (block->entry && from->calls) ||
	    (block->start == active->returns && block->start != from->end)) {
		change_function(from, block);
	}
}

static __attribute__((noinline)) void begin_after_a_part(struct block *from, struct block *block,
							 bool traced)
{
	uint64_t end = leave_early(from, block->start);

	if (is_open && traced) {
		trace_jump(end, block->start);
	}
	if (is_open && block->function != from->function) {
		follow(from, block);
	}
}

static inline void begin(struct block *block, bool traced)
{
	struct block *from = last;

	last = block;
	if (*ends.place != ends_seen) {
		begin_after_a_part(from, block, traced);
		return;
	}
	ends_seen++;
	from->runs++;
	if (is_open) {
		executed += from->instructions;
		now.branches += block->start != from->end;
		if (traced) {
			trace_jump(from->end, block->start);
		}
		follow(from, block);
	}
}

static void begin_block(unsigned int vcpu, void *userdata)
{
	(void)vcpu;
	begin(userdata, false);
}

static void begin_traced_block(unsigned int vcpu, void *userdata)
{
	(void)vcpu;
	begin(userdata, true);
}

/* Hands over what was executed since the last time. */
static void settle_blocks(bool in_window)
{
	for (size_t i = 0U; i < block_count; i++) {
		struct block *block = blocks[i];
		uint64_t times = block->runs - block->settled;

		if (times == 0U) {
			continue;
		}
		block->settled += times;
		for (uint32_t n = 0U; n < block->instructions; n++) {
			live()[block->members[n].counter] += times;
			if (in_window) {
				inside()[block->members[n].counter] += times;
			}
		}
	}
}

/* At an instruction that begins a block. */
static void open_flow(void)
{
	executed = 0U;
	active = stack;
	push(last, 0U);
}

static void close_flow(void)
{
	note_executed();
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

/* The line is in the cache then. Returns where. */
static struct way *fetch(uint64_t line)
{
	struct way *set = ways + (line & set_mask) * control->cache_ways;
	struct way *end = set + control->cache_ways;
	struct way *oldest = set;

	for (struct way *way = set; way < end; way++) {
		if (way->line == line) {
			return way;
		}
	}
	for (struct way *way = set; way < end; way++) {
		oldest = way->used < oldest->used ? way : oldest;
	}
	oldest->line = line;
	now.misses++;
	return oldest;
}

static uint64_t line_of(uint64_t address)
{
	return (address >> line_bits) + 1U;
}

/*
 * An instruction that accesses memory. What it found out with its last access mostly holds for the
 * next.
 */
struct access {
	uint64_t at; /* the instruction's address */
	uint64_t base;
	uint64_t size; /* of memory of one kind */
	struct way *way;
	uint64_t bytes; /* that an access of `info` moves */
	uint32_t info;
	uint8_t kind;
	bool stores;
};

/* Kinds do not change within a page that no region reaches into; nor do regions while QEMU runs. */
#define PAGE_SIZE 1024U

static __attribute__((noinline)) void find_kind(struct access *access, uint64_t address)
{
	const struct qemu_plugin_hwaddr *physical;

	for (uint64_t i = 0U; i < control->regions; i++) {
		const struct region *region = &control->region[i];

		if (address - region->base < region->size) {
			access->base = region->base;
			access->size = region->size;
			access->kind = (uint8_t)region->kind;
			return;
		}
	}
	physical = qemu_plugin_get_hwaddr(access->info, address);
	access->kind = physical != NULL && qemu_plugin_hwaddr_is_io(physical) ? DEVICE : RAM;
	access->base = address & ~(uint64_t)(PAGE_SIZE - 1U);
	access->size = PAGE_SIZE;
	/* A region may begin or end in the page. */
	for (uint64_t i = 0U; i < control->regions; i++) {
		const struct region *region = &control->region[i];

		if (region->base < access->base + PAGE_SIZE &&
		    access->base < region->base + region->size) {
			access->base = address;
			access->size = 1U;
		}
	}
}

static __attribute__((noinline)) void learn(struct access *access, qemu_plugin_meminfo_t info)
{
	access->info = info;
	access->bytes = 1ULL << qemu_plugin_mem_size_shift(info);
	access->stores = qemu_plugin_mem_is_store(info);
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

static inline void note_access(struct access *access, qemu_plugin_meminfo_t info, uint64_t address,
			       bool traced)
{
	last_access = access->at;
	if (!is_open) {
		return;
	}
	if (traced) {
		trace(access->at, qemu_plugin_mem_is_store(info) ? address | STEP_STORE : address);
		now.addresses = hashed(now.addresses, address);
	}
	if (access->info != info) {
		learn(access, info);
	}
	if (address - access->base >= access->size) {
		find_kind(access, address);
	}
	now.kind[access->kind]++;
	now.unaligned += (address & (access->bytes - 1U)) != 0U;
	now.stores += access->stores;
	if (access->stores) {
		now.store_bytes += access->bytes;
		note_stack(address);
	} else {
		now.load_bytes += access->bytes;
	}
	/* A device's registers are never cached. */
	if (access->kind != DEVICE) {
		uint64_t line = line_of(address);
		uint64_t end = line_of(address + access->bytes - 1U);

		if (access->way->line != line) {
			access->way = fetch(line);
		}
		access->way->used = ++cache_time;
		if (end != line) {
			fetch(end)->used = ++cache_time;
		}
	}
}

static void accessed(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t address,
		     void *userdata)
{
	(void)vcpu;
	note_access(userdata, info, address, false);
}

static void accessed_traced(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t address,
			    void *userdata)
{
	(void)vcpu;
	note_access(userdata, info, address, true);
}

/* Where only the flow is looked at. */
static void noted(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *userdata)
{
	(void)vcpu;
	(void)info;
	(void)address;
	last_access = ((const struct access *)userdata)->at;
}

/* ------------------------------------------------------------ open and close */

static bool looks_at(uint64_t what)
{
	return (control->look_at & what) != 0U;
}

/* What the harness reads is up to date then. */
static void settle(void)
{
	if (looks_at(LOOK_AT_FLOW)) {
		settle_blocks(is_open);
	} else {
		now.instructions += settle_singles(is_open);
	}
}

/* The guest waits: for the harness, perhaps. */
static void idle(qemu_plugin_id_t id, unsigned int vcpu)
{
	(void)id;
	(void)vcpu;
	settle();
}

#if PLUGIN_API > 1
static void processor_is_there(qemu_plugin_id_t id, unsigned int vcpu)
{
	(void)id;
	(void)vcpu;
	find_tally(&ends);
	find_tally(&singles);
}
#endif

static void open_window(unsigned int vcpu, void *userdata)
{
	(void)vcpu;
	(void)userdata;
	is_open = false;
	settle();
	is_open = true;
	now = (struct window){0};
	control->traced = 0U;
	if (looks_at(LOOK_AT_FLOW)) {
		open_flow();
	}
}

static void close_window(unsigned int vcpu, void *userdata)
{
	struct window *windows = (struct window *)(shared + control->windows_at);

	(void)vcpu;
	(void)userdata;
	if (!is_open) {
		return;
	}
	settle();
	if (looks_at(LOOK_AT_FLOW)) {
		close_flow();
	}
	is_open = false;
	/* Each access went to memory of one kind. */
	now.loads = now.kind[FLASH] + now.kind[RAM] + now.kind[DEVICE] - now.stores;
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

/*
 * A block of up to `members` instructions. Blocks live as long as QEMU: the code that it made of
 * them is executed at any time.
 */
static struct block *new_block(uint64_t start, size_t members)
{
	struct block *block = calloc(1U, sizeof(*block));

	if (block == NULL) {
		abort();
	}
	block->members = calloc(members, sizeof(*block->members));
	if (block->members == NULL) {
		abort();
	}
	block->start = start;
	block->function = function_of(start);
	block->entry = begins_function(start);
	blocks = grown(blocks, block_count, &block_max, sizeof(struct block *));
	blocks[block_count++] = block;
	return block;
}

/* Its last instruction, `insn`, is known: who executes that has executed all. */
static void end_block(struct block *block, struct qemu_plugin_insn *insn)
{
	block->end = qemu_plugin_insn_vaddr(insn) + qemu_plugin_insn_size(insn);
	block->calls = is_call(insn);
	count(insn, &ends, 0U);
}

static bool opens_at(uint64_t address)
{
	return holds(control->open_at, control->opens, address);
}

static bool closes_at(uint64_t address)
{
	return holds(control->close_at, control->closes, address);
}

static void follow_flow(struct qemu_plugin_tb *tb)
{
	size_t insns = qemu_plugin_tb_n_insns(tb);
	struct qemu_plugin_insn *before = NULL;
	struct block *block = NULL;

	for (size_t i = 0U; i < insns; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t address = qemu_plugin_insn_vaddr(insn);

		if (block == NULL) {
			block = new_block(address, insns);
			qemu_plugin_register_vcpu_tb_exec_cb(
				tb, tracing ? begin_traced_block : begin_block,
				QEMU_PLUGIN_CB_NO_REGS, block);
		} else if (begins_function(address) || opens_at(address) || closes_at(address)) {
			end_block(block, before);
			block = new_block(address, insns - i);
			qemu_plugin_register_vcpu_insn_exec_cb(
				insn, tracing ? begin_traced_block : begin_block,
				QEMU_PLUGIN_CB_NO_REGS, block);
		}
		block->members[block->instructions++] = (struct member){
			(uint32_t)counter_of(address), (uint32_t)(address - block->start)};
		before = insn;
	}
	if (block != NULL) {
		end_block(block, before);
	}
}

static void follow_memory(struct qemu_plugin_insn *insn)
{
	struct access *access = calloc(1U, sizeof(*access));

	if (access == NULL) {
		abort();
	}
	access->at = qemu_plugin_insn_vaddr(insn);
	access->way = ways;
	access->info = UINT32_MAX;
	qemu_plugin_register_vcpu_mem_cb(insn,
					 !looks_at(LOOK_AT_MEMORY) ? noted
					 : tracing                 ? accessed_traced
								   : accessed,
					 QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, access);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t insns = qemu_plugin_tb_n_insns(tb);

	(void)id;
	if (looks_at(LOOK_AT_FLOW)) {
		follow_flow(tb);
	}
	for (size_t i = 0U; i < insns; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t address = qemu_plugin_insn_vaddr(insn);

		/* Before it is counted: it is the first of what the window holds. */
		if (closes_at(address)) {
			qemu_plugin_register_vcpu_insn_exec_cb(insn, close_window,
							       QEMU_PLUGIN_CB_NO_REGS, NULL);
		}
		if (opens_at(address)) {
			qemu_plugin_register_vcpu_insn_exec_cb(insn, open_window,
							       QEMU_PLUGIN_CB_NO_REGS, NULL);
		}
		if (address - control->slow_from < control->slow_to - control->slow_from) {
			qemu_plugin_register_vcpu_insn_exec_cb(insn, linger, QEMU_PLUGIN_CB_NO_REGS,
							       NULL);
		}
		if (looks_at(LOOK_AT_FLOW | LOOK_AT_MEMORY)) {
			follow_memory(insn);
		}
		if (!looks_at(LOOK_AT_FLOW)) {
			size_t counter = counter_of(address);

			use(counter);
			count(insn, &singles, counter);
		}
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
	stack[0].node = node_at(0U);
#if PLUGIN_API == 1
	/* QEMU counts straight into what the harness reads, or blocks here. */
	singles.place = live();
	ends.place = &ends_counted;
	if (looks_at(LOOK_AT_FLOW)) {
		qemu_plugin_register_vcpu_idle_cb(id, idle);
	}
#else
	new_tally(looks_at(LOOK_AT_FLOW) ? &ends : &singles,
		  looks_at(LOOK_AT_FLOW) ? 1U : (size_t)control->counters);
	qemu_plugin_register_vcpu_init_cb(id, processor_is_there);
	qemu_plugin_register_vcpu_idle_cb(id, idle);
#endif
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
