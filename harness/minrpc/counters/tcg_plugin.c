/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A TCG plugin for QEMU: counts the guest's executed instructions in memory that it shares with the
 * harness. The harness writes the control page before QEMU starts and reads the counts while the
 * guest waits for it. See qemu_counters.py for the other side of the layout.
 */
#define _POSIX_C_SOURCE 200809L

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "qemu_plugin.h"

__attribute__((visibility("default"))) int qemu_plugin_version = PLUGIN_API;

/* ------------------------------------------------------------- shared memory */

#define LAYOUT          12U
#define MAX_EDGES       16U
#define MAX_REGIONS     16U
#define MAX_OPERATIONS  8U
#define OPERAND_CLASSES 264U
#define NO_FUNCTION     UINT32_MAX
#define CHECKPOINT      4096U /* steps from one checkpoint of a trace to the next */

/* Events observed beside the count of instructions. */
#define LOOK_AT_FLOW      1U /* branches, and the tree of calls */
#define LOOK_AT_MEMORY    2U
#define LOOK_AT_EDGES     4U  /* counts of edges between blocks, and the blocks' code */
#define LOOK_AT_FLASH     8U  /* with LOOK_AT_MEMORY: loads from flash, which wait */
#define LOOK_AT_UNALIGNED 16U /* with LOOK_AT_MEMORY: unaligned accesses, which take longer */

/* Guest addresses whose instructions each have a counter. */
struct range {
	uint64_t base;
	uint64_t size;
	uint64_t shift; /* an instruction starts on a multiple of 1 << shift bytes */
	uint64_t first; /* number of its first counter */
	uint64_t flash; /* with loaded code: bytes at its begin that count as flash */
};

/* The counter of all instructions without their own counter comes first. */
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
 * Memory by its kind. An address outside all regions is RAM that the image does not mention, or a
 * device's register.
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
 * A function as called from another, and so on up to the window: instructions executed in it,
 * without its callees'.
 */
struct node {
	uint32_t parent;
	uint32_t function;
	uint32_t child;     /* the first callee; 0: none */
	uint32_t sibling;   /* the next */
	uint64_t interrupt; /* 1: it was entered by an exception, not called */
	uint64_t instructions;
	uint64_t calls;
	uint64_t extra_cycles;
};

/* An instruction whose cycles depend on its operands has these bits. */
struct operation {
	uint64_t mask;
	uint64_t bits;
};

/*
 * The number of executions of a block, with all its instructions. The counter of each instruction
 * is in the list of members, from `first` on.
 */
struct block_counts {
	uint64_t runs;
	uint64_t runs_in_windows;
	uint64_t jumps_in_windows; /* executions in windows whose last instruction jumped */
	uint64_t last;             /* address of the last instruction */
	uint64_t start;
	uint64_t code; /* with LOOK_AT_EDGES: place of its bytes in the blocks' code */
	uint64_t size;
	uint32_t first;
	uint32_t instructions;
};

/* The way of execution from one block to the next. */
enum passage {
	AS_WRITTEN, /* the next instruction, or a target of the last instruction */
	INTO_EXCEPTION,
	OUT_OF_EXCEPTION,
	AFTER_EXCEPTION, /* as written, but an exception came between */
};

/*
 * Execution went from a block, of which it had executed the first `size` bytes, to the start of
 * another, while the function of `node` was active. The instructions of a block that an exception
 * interrupted belong to the way into the exception, and not to the way after it.
 */
struct edge {
	uint32_t from; /* numbers of blocks */
	uint32_t to;
	uint32_t size;
	uint32_t passage;
	uint64_t node;
	uint64_t skipped; /* a bit for each instruction behind an IT that was skipped: the first 64
			   */
	uint64_t times_in_windows;
};

/* The number of times an edge was taken in one window. */
struct taken {
	uint64_t edge;
	uint64_t times;
};

/* The harness writes the fields up to `trace_from`. */
struct control {
	uint64_t layout;
	uint64_t sizes[10]; /* of the structures in this file: see map_shared() */
	uint64_t ranges_at; /* place in the file; more are added while QEMU runs */
	uint64_t ranges;
	uint64_t opens;      /* addresses of instructions at which a window opens */
	uint64_t closes;     /* addresses at which it closes; these are not in it */
	uint64_t windows_at; /* place of the windows in the file */
	uint64_t windows_max;
	uint64_t counters; /* number of instructions with their own counter */
	/* Offsets in the file: instructions of blocks that were left early, and of windows. */
	uint64_t parts_at;
	uint64_t parts_in_windows_at;
	uint64_t blocks_at;
	uint64_t blocks_max;
	uint64_t members_at; /* a list of 32-bit numbers of counters */
	uint64_t members_max;
	/* the code up to slow_to takes the host longer, and the guest no time */
	uint64_t slow_from;
	uint64_t slow_to;
	uint64_t open_at[MAX_EDGES];
	uint64_t close_at[MAX_EDGES];

	uint64_t look_at;
	uint64_t machine;
	uint64_t wide;         /* 1: addresses have 64 bits */
	uint64_t functions_at; /* place in the file, sorted by address */
	uint64_t functions;
	uint64_t nodes_at;
	uint64_t nodes_max;
	uint64_t regions;
	struct region region[MAX_REGIONS];
	uint64_t cache_line; /* bytes, a power of two; sets, too */
	uint64_t cache_sets;
	uint64_t cache_ways;
	uint64_t stack_low; /* the observed stack: its base and its end */
	uint64_t stack_high;
	uint64_t loaded; /* functions after the image's, added while QEMU runs, as ranges are */

	uint64_t code_at; /* bytes of the blocks' code */
	uint64_t code_max;
	uint64_t edges_at;
	uint64_t edges_max;
	uint64_t taken_at; /* the edges that each window took: a ring */
	uint64_t taken_max;
	/* cycles by data in windows, of loads from flash and by operands, by the instruction's
	 * counter */
	uint64_t extra_cycles_at;
	uint64_t wait_states;
	/* cycles of an access, by load or store, 2 or 4 bytes, address modulo 4, least or most */
	uint8_t unaligned[2][2][4][2];
	/* by the instruction's counter: the number of times that a condition skipped it; DOUBT if
	 * QEMU does not show this; IS_IT for an IT, which has the line of code that it may skip */
	uint64_t doubts_at;
	uint64_t operations;
	struct operation operation[MAX_OPERATIONS];
	uint64_t operand_cycles_at; /* a byte by operation, and the classes of both operands */

	uint64_t trace_at; /* steps of the last window, in their order */
	uint64_t trace_max;
	uint64_t checkpoints_at; /* the hash of all steps so far, at each CHECKPOINT steps */
	uint64_t checkpoints_max;
	uint64_t trace_from; /* the first step of a window that is kept */

	uint64_t traced;         /* steps of the last window, also those that are not kept */
	uint64_t trace_hash;     /* the hash of all steps */
	uint64_t nodes;          /* in use, the root among them */
	uint64_t blocks;         /* in use */
	uint64_t members;        /* in use */
	uint64_t code;           /* in use */
	uint64_t edges;          /* in use */
	uint64_t taken;          /* written to the ring since QEMU's start */
	uint64_t reads_operands; /* 1: QEMU shows registers, so extra_cycles have those by operands
				  */
	uint64_t reads_flags;    /* 1: QEMU shows flags, so edges have what was skipped */
	uint64_t extra_spread;   /* sum of the windows' */
	uint64_t full;    /* 1: there was no room for a block or an edge, and counts are missing */
	uint64_t lost;    /* 1: there was no room for a call: nodes or frames are missing */
	uint64_t windows; /* closed windows: the last windows_max of them are kept */
};

/* A jump, or an access by an instruction. The end of a block, which QEMU chooses, is not a step. */
struct step {
	uint64_t where; /* the target, or the accessing instruction */
	uint64_t what;  /* end of the jumping code, or accessed address; and one of these bits */
};

#define STEP_JUMP  (1ULL << 63)
#define STEP_STORE (1ULL << 62)

_Static_assert(sizeof(struct control) <= 4096U, "a page of its own");

/*
 * Counts of one window. It counts accesses of the processor: an instruction may make several.
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
	uint64_t stack_first; /* the first store to the stack, and the lowest; 0: none */
	uint64_t stack_lowest;
	uint64_t first_taken; /* number of its first entry in the ring, and their count */
	uint64_t edges_taken;
	uint64_t extra_cycles;
	uint64_t extra_spread; /* cycles that there may be more */
};

#define DOUBT UINT64_MAX
#define IS_IT (UINT64_MAX - 1U)

static struct control *control;
static uint8_t *shared;

/* ------------------------------------------------------------------ counters */

/* Instructions of blocks that were left early, by counter. */
static uint64_t *parts(void)
{
	return (uint64_t *)(shared + control->parts_at);
}

static uint64_t *parts_in_windows(void)
{
	return (uint64_t *)(shared + control->parts_in_windows_at);
}

static uint64_t *doubts(void)
{
	return (uint64_t *)(shared + control->doubts_at);
}

/*
 * Ends of blocks that were executed since the last block began: 1, or 0 if it was left early. QEMU
 * counts them in line, for the guest's only processor.
 */
static uint64_t *ends;
#if PLUGIN_API == 1
static uint64_t ends_counted = 1U;
#else
static struct qemu_plugin_scoreboard *ends_score;
#endif

/* Each execution of `insn` ends a block. */
static void count_end(struct qemu_plugin_insn *insn)
{
#if PLUGIN_API == 1
	qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64, ends, 1U);
#else
	const qemu_plugin_u64 entry = {ends_score, 0U};

	qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, QEMU_PLUGIN_INLINE_ADD_U64, entry,
							    1U);
#endif
}

/* ------------------------------------------------------------------- windows */

static bool looks_at(uint64_t what)
{
	return (control->look_at & what) != 0U;
}

static bool is_open;
static bool tracing;
static struct window now; /* the open window */

static uint64_t hashed(uint64_t hash, uint64_t value)
{
	/* FNV-1a on 64 bits at once; the shift lets the upper bits change the lower ones, too. */
	hash = (hash ^ value) * 0x100000001b3U;
	return hash ^ hash >> 29;
}

static void trace(uint64_t where, uint64_t what)
{
	uint64_t step = control->traced++;
	uint64_t checkpoint = control->traced / CHECKPOINT;

	control->trace_hash = hashed(hashed(control->trace_hash, where), what);
	if (step - control->trace_from < control->trace_max) {
		((struct step *)(shared + control->trace_at))[step - control->trace_from] =
			(struct step){where, what};
	}
	if (control->traced % CHECKPOINT == 0U && checkpoint <= control->checkpoints_max) {
		((uint64_t *)(shared + control->checkpoints_at))[checkpoint - 1U] =
			control->trace_hash;
	}
}

/* ---------------------------------------------------------------------- flow */

/* The way in which the last instruction of a block jumps. */
enum transfer {
	NONE, /* it does not */
	JUMP, /* to an address in the instruction; may be conditional */
	CALL,
	JUMP_ANYWHERE, /* to an address that it computes */
	CALL_ANYWHERE,
	RETURN,
	EXCEPTION_RETURN,
};

/* The way out of a block. */
struct leave {
	uint64_t end;    /* behind its last instruction */
	uint64_t target; /* of JUMP and CALL; else `end` */
	enum transfer how;
};

/*
 * A piece of code with one way in: a translated block, or a part of it that begins at a function's
 * start, or where a window opens or closes.
 */
struct block {
	uint64_t start;
	struct leave leave;
	struct block_counts *counts;
	uint16_t *offsets; /* of its instructions from its start */
	uint32_t function;
	bool entry;  /* the block begins a function */
	bool vector; /* an exception was entered here */
	/* The block's node at its last call, and the caller's node then. */
	struct node *node;
	struct node *parent;
	struct exit *exits[2]; /* those that were found last, the last first */
	struct block *next;    /* in a chain of the table of blocks */
};

/* An edge from a block, and the number of times it was taken in the window. */
struct exit {
	const struct block *from;
	const struct block *to;
	const struct node *node;
	uint64_t way; /* the edge's size and passage: see way_of() */
	uint64_t skipped;
	uint64_t times;
	struct exit *next; /* in a chain of the table of exits */
	struct edge *edge;
};

static struct exit no_exit;

#define EXIT_CHAINS_LOG2 18U

static struct exit *exit_chains[1U << EXIT_CHAINS_LOG2]; /* all exits, by their members */

#define DEPTH 16384U

/* Active calls and exceptions, from the window down: its opener comes first. */
static struct frame {
	struct node *node;
	uint32_t function;
	uint64_t returns_to; /* 0: it was not called, but reached by a jump or an interrupt */
	uint64_t returns;    /* return address of the innermost called function, up to this frame */
	struct frame *interrupt; /* the innermost active exception, up to this frame */
	/* The block that the exception interrupted, and the way out of that block. */
	struct block *left;
	struct leave interrupted;
} stack[DEPTH + 1U] = {{.function = NO_FUNCTION}};

static struct frame *active = stack; /* the last frame; stack[0] is unused */
static uint64_t executed;            /* in `active`, since that was last noted */
static uint64_t last_access;         /* address of the instruction that made it */

static struct block_counts uncounted;
static bool edges_wanted;
static struct block nowhere = {.leave = {.how = JUMP_ANYWHERE},
			       .counts = &uncounted,
			       .function = NO_FUNCTION,
			       .exits = {&no_exit, &no_exit}};
static struct block *last = &nowhere;
static uint64_t skipped; /* instructions of `last`, as in `struct edge` */

#define CHAINS 4096U

static struct block *chains[CHAINS]; /* all blocks, by their start */

static struct block **chain_of(uint64_t start)
{
	return &chains[(start >> 1 ^ start >> 13) % CHAINS];
}

static struct node *node_at(uint32_t index)
{
	return (struct node *)(shared + control->nodes_at) + index;
}

/* Executed instructions count for the function that contains them. */
static inline void note_executed(void)
{
	active->node->instructions += executed;
	now.instructions += executed;
	executed = 0U;
}

/*
 * The node of `function` as called from `parent`, or as it interrupted `parent`; the parent's own
 * node if there is no room for more.
 */
static __attribute__((noinline)) uint32_t child_of(uint32_t parent, uint32_t function,
						   uint64_t interrupt)
{
	uint32_t index = node_at(parent)->child;

	for (; index != 0U; index = node_at(index)->sibling) {
		if (node_at(index)->function == function &&
		    node_at(index)->interrupt == interrupt) {
			return index;
		}
	}
	if (control->nodes == control->nodes_max) {
		control->lost = 1U;
		return parent;
	}
	index = (uint32_t)control->nodes++;
	*node_at(index) = (struct node){.parent = parent,
					.function = function,
					.sibling = node_at(parent)->child,
					.interrupt = interrupt};
	node_at(parent)->child = index;
	return index;
}

/* Notes a call of `node`; no change if there is no room for another frame. */
static inline bool enter(struct node *node, uint32_t function, uint64_t returns_to)
{
	const struct frame *before = active;

	node->calls++;
	if (active == stack + DEPTH) {
		control->lost = 1U;
		return false;
	}
	active++;
	active->node = node;
	active->function = function;
	active->returns_to = returns_to;
	active->returns = returns_to != 0U ? returns_to : before->returns;
	active->interrupt = before->interrupt;
	return true;
}

static inline void push(struct block *block, uint64_t returns_to)
{
	struct node *parent = active->node;

	if (block->parent != parent) {
		block->parent = parent;
		block->node =
			node_at(child_of((uint32_t)(parent - node_at(0U)), block->function, 0U));
	}
	(void)enter(block->node, block->function, returns_to);
}

/* Notes an exception after `left`, which execution left by `from`. */
static void push_exception(struct block *left, const struct leave *from, struct block *block)
{
	struct leave interrupted = *from;
	uint32_t parent = (uint32_t)(active->node - node_at(0U));

	if (enter(node_at(child_of(parent, block->function, 1U)), block->function, 0U)) {
		active->interrupt = active;
		active->left = left;
		active->interrupted = interrupted;
	}
}

/* Returns to the caller that waits for a return to `address`; false if there is no such caller. */
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

/* Returns to `function`, which an interrupt or a jump has left; false if it is not active. */
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

/*
 * True if the way from `from` to `block` is neither to the next instruction nor to a target of the
 * last instruction.
 */
static inline bool is_exception(const struct leave *from, const struct block *block)
{
	return block->start != from->end && block->start != from->target &&
	       (from->how <= CALL || block->vector);
}

/* Exceptions are entered at `block`: a computed jump to it counts as an exception, too. */
static __attribute__((noinline)) void note_vector(const struct block *block)
{
	for (struct block *one = *chain_of(block->start); one != NULL; one = one->next) {
		one->vector = one->vector || one->start == block->start;
	}
}

/*
 * True if `from` ends the innermost exception. Arm has no instruction for that: it returns to a
 * value that no caller has left.
 */
static bool ends_exception(const struct leave *from, const struct block *block)
{
	if (active->interrupt == NULL) {
		return false;
	}
	if (from->how == EXCEPTION_RETURN) {
		return true;
	}
	if (control->machine != ARM || from->how != RETURN) {
		return false;
	}
	for (struct frame *frame = active; frame > active->interrupt; frame--) {
		if (frame->returns_to == block->start) {
			return false;
		}
	}
	return true;
}

/* Notes the way from `left` to `block`: a call, a return, an exception, or another jump. */
static __attribute__((noinline)) void change_function(struct block *left, const struct leave *from,
						      struct block *block)
{
	struct leave interrupted;

	note_executed();
	if (ends_exception(from, block)) {
		interrupted = active->interrupt->interrupted;
		left = active->interrupt->left;
		active = active->interrupt - 1;
		from = &interrupted;
	}
	if (is_exception(from, block)) {
		push_exception(left, from, block);
	} else if (block->entry && (from->how == CALL || from->how == CALL_ANYWHERE) &&
		   block->start != from->end) {
		push(block, from->end);
	} else if (block->start != from->end && pop_to_return(block->start)) {
		return;
	} else if (block->function != active->function &&
		   (block->entry || !pop_to_function(block->function))) {
		push(block, 0U);
	}
}

/* Exits that were taken in the open window. */
static struct exit **exits;
static size_t exit_count;
static size_t exits_max;

static uint32_t number_of(const struct block *block)
{
	return (uint32_t)(block->counts - (struct block_counts *)(shared + control->blocks_at));
}

static inline uint64_t way_of(uint32_t size, enum passage passage)
{
	return (uint64_t)size << 2 | passage;
}

/* The chain of the table with the exits from `from` to `to` in the active node. */
static struct exit **exit_chain(const struct block *from, const struct block *to, uint64_t way)
{
	uint64_t mixed = (uintptr_t)from;

	mixed = (mixed ^ (uintptr_t)to << 20) * UINT64_C(0x9e3779b97f4a7c15);
	mixed = (mixed ^ (uintptr_t)active->node ^ way << 40) * UINT64_C(0x9e3779b97f4a7c15);
	mixed = (mixed ^ mixed >> 32 ^ skipped) * UINT64_C(0x9e3779b97f4a7c15);
	return &exit_chains[mixed >> (64U - EXIT_CHAINS_LOG2)];
}

static struct exit *new_exit(struct block *from, const struct block *to, uint32_t size,
			     enum passage passage, struct exit **chain)
{
	struct edge *edge = (struct edge *)(shared + control->edges_at) + control->edges;
	struct exit *exit;

	if (control->edges == control->edges_max || from->counts == &uncounted ||
	    to->counts == &uncounted) {
		control->full = 1U;
		return NULL;
	}
	exit = calloc(1U, sizeof(*exit));
	if (exit == NULL) {
		abort();
	}
	control->edges++;
	*edge = (struct edge){number_of(from),
			      number_of(to),
			      size,
			      passage,
			      (uint64_t)(active->node - node_at(0U)),
			      skipped,
			      0U};
	*exit = (struct exit){from,    to, active->node, way_of(size, passage),
			      skipped, 0U, *chain,       edge};
	*chain = exit;
	return exit;
}

static inline bool is_exit(const struct exit *exit, const struct block *to, uint64_t way)
{
	return exit->to == to && exit->node == active->node && exit->way == way &&
	       exit->skipped == skipped;
}

/* Makes the exit the block's last. NULL if there is no room for it. */
static __attribute__((noinline)) struct exit *find_exit(struct block *from, const struct block *to,
							uint32_t size, enum passage passage)
{
	uint64_t way = way_of(size, passage);
	struct exit **chain = exit_chain(from, to, way);
	struct exit *exit = *chain;

	while (exit != NULL && !(exit->from == from && is_exit(exit, to, way))) {
		exit = exit->next;
	}
	if (exit == NULL) {
		exit = new_exit(from, to, size, passage, chain);
	}
	if (exit != NULL) {
		from->exits[1] = from->exits[0];
		from->exits[0] = exit;
	}
	return exit;
}

static void note_taken(struct exit *exit)
{
	if (exit_count == exits_max) {
		exits_max = 2U * exits_max + 256U;
		exits = realloc(exits, exits_max * sizeof(*exits));
		if (exits == NULL) {
			abort();
		}
	}
	exits[exit_count++] = exit;
}

static inline __attribute__((always_inline)) void take_passage(struct block *from,
							       const struct leave *leave,
							       const struct block *to,
							       enum passage passage)
{
	uint32_t size = (uint32_t)(leave->end - from->start);
	uint64_t way = way_of(size, passage);
	struct exit *exit = from->exits[0];

	if (size == 0U) { /* no instruction of the block was executed */
		return;
	}
	/* A branch has two ways, and often takes the same way again. */
	exit = is_exit(exit, to, way) ? exit : from->exits[1];
	if (!is_exit(exit, to, way)) {
		exit = find_exit(from, to, size, passage);
		if (exit == NULL) {
			return;
		}
	}
	if (exit->times++ == 0U) {
		note_taken(exit);
	}
}

/* Notes that the innermost exception ends, and the interrupted function goes on at `to`. */
static __attribute__((noinline)) void take_up(const struct block *to)
{
	struct frame *handler = active;
	struct frame *exception = handler->interrupt;

	if (!is_exception(&exception->interrupted, to)) { /* else another exception follows */
		skipped = 0U;
		active = exception - 1;
		take_passage(exception->left, &exception->interrupted, to, AFTER_EXCEPTION);
		active = handler;
	}
}

/* Notes that execution goes from `from`, which ended by `leave`, to `to`. */
static inline __attribute__((always_inline)) void
take_edge(struct block *from, const struct leave *leave, const struct block *to, bool exception)
{
	enum passage passage = exception ? INTO_EXCEPTION
			       : active->interrupt != NULL && ends_exception(leave, to)
				       ? OUT_OF_EXCEPTION
				       : AS_WRITTEN;

	take_passage(from, leave, to, passage);
	if (passage == OUT_OF_EXCEPTION) {
		take_up(to);
	}
}

/* Writes the edges that the window took to the ring. */
static void close_edges(void)
{
	const struct edge *first = (struct edge *)(shared + control->edges_at);
	struct taken *ring = (struct taken *)(shared + control->taken_at);

	now.first_taken = control->taken;
	now.edges_taken = exit_count;
	for (size_t i = 0U; i < exit_count; i++) {
		struct exit *exit = exits[i];

		ring[control->taken++ % control->taken_max] =
			(struct taken){(uint64_t)(exit->edge - first), exit->times};
		exit->edge->times_in_windows += exit->times;
		exit->times = 0U;
	}
	exit_count = 0U;
}

/*
 * QEMU leaves a block after an instruction that has accessed a device's register, and continues
 * with a new block, or with an interrupt. Notes the executed part of `block`, and returns the way
 * out.
 */
static __attribute__((noinline)) struct leave leave_early(struct block *block, uint64_t next)
{
	const uint32_t *members = (const uint32_t *)(shared + control->members_at);
	uint64_t size = block->leave.end - block->start;
	uint64_t upto = size;
	uint32_t i = 0U;

	if (next - block->start - 1U < size) {
		upto = next - block->start;
	} else if (last_access - block->start < size) {
		upto = last_access - block->start + 1U;
	}
	for (; i < block->counts->instructions && block->offsets[i] < upto; i++) {
		uint32_t counter = members[block->counts->first + i];

		parts()[counter]++;
		if (is_open) {
			parts_in_windows()[counter]++;
		}
	}
	executed += is_open ? i : 0U;
	return (struct leave){block->start + upto, block->start + upto, NONE};
}

static inline void trace_jump(uint64_t from, uint64_t to)
{
	if (from != to) {
		trace(to, from | STEP_JUMP);
	}
}

static inline __attribute__((always_inline)) void
follow(struct block *left, const struct leave *from, struct block *block, bool exception)
{
	/* Most jumps stay within a function. */
	if (block->function != active->function ||
	    (from->how >= CALL && from->how != JUMP_ANYWHERE) || exception) {
		change_function(left, from, block);
	}
}

static __attribute__((noinline)) void begin_after_a_part(struct block *from, struct block *block,
							 bool traced)
{
	struct leave leave = leave_early(from, block->start);

	if (is_exception(&leave, block) && !block->vector) {
		note_vector(block);
	}
	now.branches += block->start != leave.end;
	if (is_open && traced) {
		trace_jump(leave.end, block->start);
	}
	if (is_open && edges_wanted) {
		take_edge(from, &leave, block, is_exception(&leave, block));
	}
	if (is_open && looks_at(LOOK_AT_FLOW)) {
		follow(from, &leave, block, is_exception(&leave, block));
	}
}

/* Begins a block after a part of a block, outside of a window, or by an exception. */
static __attribute__((noinline)) void begin_rarely(struct block *block, bool traced)
{
	struct block *from = last;
	struct block_counts *counts = from->counts;
	bool exception = block->start != from->leave.end && is_exception(&from->leave, block);

	last = block;
	if (*ends == 0U) {
		begin_after_a_part(from, block, traced);
		skipped = 0U;
		return;
	}
	*ends = 0U;
	counts->runs++;
	if (exception && !block->vector) {
		note_vector(block);
	}
	if (is_open) { /* then it is an exception */
		executed += counts->instructions;
		counts->runs_in_windows++;
		now.branches++;
		if (traced) {
			trace_jump(from->leave.end, block->start);
		}
		if (edges_wanted) {
			take_edge(from, &from->leave, block, true);
		}
		if (looks_at(LOOK_AT_FLOW)) {
			change_function(from, &from->leave, block);
		}
	}
	skipped = 0U;
}

/* The first test is false for most blocks; the last call of each way needs no frame. */
static inline __attribute__((always_inline)) void begin(struct block *block, bool flow, bool edges,
							bool traced)
{
	struct block *from = last;
	struct block_counts *counts = from->counts;
	bool jumps = block->start != from->leave.end;

	if (*ends == 0U || !is_open || (jumps && is_exception(&from->leave, block))) {
		begin_rarely(block, traced);
		return;
	}
	last = block;
	*ends = 0U;
	counts->runs++;
	counts->runs_in_windows++;
	counts->jumps_in_windows += jumps;
	executed += counts->instructions;
	now.branches += jumps;
	if (traced) {
		trace_jump(from->leave.end, block->start);
	}
	if (edges) {
		take_edge(from, &from->leave, block, false);
		skipped = 0U;
	}
	if (flow) {
		follow(from, &from->leave, block, false);
	}
}

static void begin_counted_block(unsigned int vcpu, void *userdata)
{
	(void)vcpu;
	begin(userdata, false, false, false);
}

static void begin_block(unsigned int vcpu, void *userdata)
{
	(void)vcpu;
	begin(userdata, true, false, false);
}

static void begin_traced_block(unsigned int vcpu, void *userdata)
{
	(void)vcpu;
	begin(userdata, true, edges_wanted, true);
}

static void begin_block_with_edge(unsigned int vcpu, void *userdata)
{
	(void)vcpu;
	begin(userdata, looks_at(LOOK_AT_FLOW), true, false);
}

/* -------------------------------------------------------------------- memory */

struct way {
	uint64_t line;
	uint64_t used; /* time of the last use: the least recent line is replaced */
};

static struct way *ways;
static uint64_t cache_time;
static unsigned int line_bits; /* lines and sets are powers of two */
static uint64_t set_mask;

/* Puts the line into the cache; returns its place. */
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
 * An instruction that accesses memory. An instruction's next access is mostly in the region of its
 * last access.
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
	size_t counter; /* with LOOK_AT_FLASH or LOOK_AT_UNALIGNED */
};

/*
 * A page without a part of a region has one kind of memory; regions do not change while QEMU runs.
 */
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

/* A stack that is mapped when its thread starts is assumed around the first store. */
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

/* Code that was loaded counts as flash up to the end of its constants. */
static bool is_loaded_flash(uint64_t address)
{
	const struct range *ranges = (const struct range *)(shared + control->ranges_at);

	for (uint64_t i = control->ranges; i-- > 0U;) {
		if (address - ranges[i].base < ranges[i].size) {
			return address - ranges[i].base < ranges[i].flash;
		}
	}
	return false;
}

/* Cycles of an instruction in addition to the cycles of its kind. */
static void add_cycles(size_t counter, uint64_t cycles)
{
	now.extra_cycles += cycles;
	active->node->extra_cycles += cycles;
	((uint64_t *)(shared + control->extra_cycles_at))[counter] += cycles;
}

static __attribute__((noinline)) void note_flash(const struct access *access, uint64_t address)
{
	if (access->kind == FLASH || is_loaded_flash(address)) {
		add_cycles(access->counter, control->wait_states);
	}
}

/* Larger accesses are several of 4 bytes. */
static __attribute__((noinline)) void note_unaligned(const struct access *access, uint64_t address)
{
	const uint8_t *cycles =
		control->unaligned[access->stores][access->bytes > 2U][address & 3U];

	add_cycles(access->counter, cycles[0]);
	now.extra_spread += cycles[1] - cycles[0];
	control->extra_spread += cycles[1] - cycles[0];
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
	}
	if (access->info != info) {
		learn(access, info);
	}
	if (address - access->base >= access->size) {
		find_kind(access, address);
	}
	now.kind[access->kind]++;
	if ((address & (access->bytes - 1U)) != 0U) {
		now.unaligned++;
		if (looks_at(LOOK_AT_UNALIGNED)) {
			note_unaligned(access, address);
		}
	}
	now.stores += access->stores;
	if (access->stores) {
		now.store_bytes += access->bytes;
		note_stack(address);
	} else {
		now.load_bytes += access->bytes;
		if (looks_at(LOOK_AT_FLASH)) {
			note_flash(access, address);
		}
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

/* Called if only the flow is observed. */
static void noted(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *userdata)
{
	(void)vcpu;
	(void)info;
	(void)address;
	last_access = ((const struct access *)userdata)->at;
}

/* ------------------------------------------------------------------ operands */

#define ALWAYS 14U /* a condition of Thumb's */

#if PLUGIN_API > 1
#define REGISTERS 32U
#define FLAGS     16U /* of Arm: behind the others */

static struct qemu_plugin_register *registers[REGISTERS];
static GByteArray *value;

static const qemu_plugin_reg_descriptor *descriptor(GArray *all, size_t index)
{
	return (const void *)(all->data + index * g_array_get_element_size(all));
}

/* QEMU names the processor's own registers first, in the order of their numbers. */
static void find_registers(void)
{
	const char *first = control->machine == ARM ? "r0" : "zero";
	size_t count = control->machine == ARM ? 16U : REGISTERS;
	GArray *found;

	if (g_byte_array_new == NULL || g_byte_array_set_size == NULL ||
	    g_array_get_element_size == NULL) {
		return;
	}
	found = qemu_plugin_get_registers();
	if (found->len < count || strcmp(descriptor(found, 0U)->name, first) != 0) {
		return;
	}
	for (size_t i = 0U; i < count; i++) {
		registers[i] = descriptor(found, i)->handle;
	}
	value = g_byte_array_new();
	control->reads_operands = control->operations != 0U;
	if (control->machine == ARM && found->len > FLAGS &&
	    strcmp(descriptor(found, FLAGS)->name, "xpsr") == 0) {
		registers[FLAGS] = descriptor(found, FLAGS)->handle;
		control->reads_flags = 1U;
	}
}

static uint32_t read_register(uint32_t number)
{
	uint32_t found;

	(void)g_byte_array_set_size(value, 0U);
	(void)qemu_plugin_read_register(registers[number], value);
	if (value->len < sizeof(found)) {
		control->reads_operands = 0U;
		return 0U;
	}
	memcpy(&found, value->data, sizeof(found));
	return found;
}

static bool condition_holds(uint32_t condition)
{
	uint32_t flags = condition == ALWAYS ? 0U : read_register(FLAGS);
	bool n = flags >> 31 & 1U;
	bool z = flags >> 30 & 1U;
	bool c = flags >> 29 & 1U;
	bool v = flags >> 28 & 1U;
	const bool holds[] = {z, c, n, v, c && !z, n == v, n == v && !z, true};

	return holds[condition >> 1 & 7U] != (condition & 1U);
}

/* An instruction behind an IT. */
struct conditional {
	size_t counter;
	uint64_t bit; /* in `skipped` */
	uint32_t condition;
};

static void note_condition(unsigned int vcpu, void *userdata)
{
	const struct conditional *conditional = userdata;

	(void)vcpu;
	if (!condition_holds(conditional->condition)) {
		skipped |= conditional->bit;
		doubts()[conditional->counter]++;
	}
}

/* The class of an operand: its sign, and of its magnitude the leading zeros and two properties. */
static size_t class_of(uint32_t operand)
{
	uint32_t negative = operand >> 31;
	uint32_t magnitude = negative != 0U ? 0U - operand : operand;
	size_t zeros = magnitude == 0U ? 32U : (size_t)__builtin_clz(magnitude);

	return ((negative * 33U + zeros) << 2) + ((operand & 0xffffU) == 0U ? 2U : 0U) +
	       ((magnitude & (magnitude - 1U)) == 0U ? 1U : 0U);
}

/* An instruction whose cycles depend on two registers. */
struct operands {
	size_t counter;
	const uint8_t *cycles; /* by the classes of both */
	uint32_t first;
	uint32_t second;
	uint32_t condition;
};

static void note_operands(unsigned int vcpu, void *userdata)
{
	const struct operands *operands = userdata;

	(void)vcpu;
	if (is_open && condition_holds(operands->condition)) {
		size_t first = class_of(read_register(operands->first));
		size_t second = class_of(read_register(operands->second));

		add_cycles(operands->counter, operands->cycles[first * OPERAND_CLASSES + second]);
	}
}
#endif

/* ------------------------------------------------------------ open and close */

#if PLUGIN_API > 1
static void processor_is_there(CALLED_WITH(unsigned int vcpu))
{
	(void)of;
	(void)vcpu;
	ends = qemu_plugin_scoreboard_find(ends_score, 0U);
	*ends = 1U;
	find_registers();
}
#endif

/* Opens or closes a window at an instruction that begins a block; the block has been noted. */
static void open_window(unsigned int vcpu, void *userdata)
{
	(void)vcpu;
	(void)userdata;
	is_open = true;
	now = (struct window){0};
	executed = 0U;
	/* The last window may still be open: the device was restarted in it. */
	for (; exit_count > 0U; exit_count--) {
		exits[exit_count - 1U]->times = 0U;
	}
	control->traced = 0U;
	control->trace_hash = 0U;
	active = stack;
	if (looks_at(LOOK_AT_FLOW)) {
		push(last, 0U);
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
	if (looks_at(LOOK_AT_FLOW)) {
		note_executed();
	} else {
		now.instructions += executed;
	}
	if (edges_wanted) {
		close_edges();
	}
	is_open = false;
	/* Each access goes to memory of exactly one kind. */
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
 * QEMU's other threads go on meanwhile: a byte that waits for the guest's UART arrives.
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
	const struct range *ranges = (const struct range *)(shared + control->ranges_at);

	/* Code that was loaded last counts where ranges overlap. */
	for (uint64_t i = control->ranges; i-- > 0U;) {
		const struct range *range = &ranges[i];

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

	/* Loaded functions are after the image's, in the order of loading. */
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

/* The sign of the lower `bits` bits goes into the upper ones. */
static uint64_t extended(uint64_t value, unsigned int bits)
{
	uint64_t sign = 1ULL << (bits - 1U);

	return ((value & (2U * sign - 1U)) ^ sign) - sign;
}

static struct leave leave_to(uint64_t end, uint64_t target, enum transfer how)
{
	uint64_t mask = control->wide != 0U ? UINT64_MAX : UINT32_MAX;

	return (struct leave){end, target & mask, how};
}

/* Thumb, of M-profile. `pc` is the instruction's own address and 4. */
static struct leave thumb_leave(uint32_t first, uint32_t second, uint64_t pc, uint64_t end)
{
	uint32_t s = first >> 10 & 1U;
	uint32_t j1 = second >> 13 & 1U;
	uint32_t j2 = second >> 11 & 1U;
	uint64_t target;

	if ((first & 0xf000U) == 0xd000U && (first & 0x0e00U) != 0x0e00U) { /* B<c> */
		return leave_to(end, pc + 2U * extended(first, 8U), JUMP);
	} else if ((first & 0xf800U) == 0xe000U) { /* B */
		return leave_to(end, pc + 2U * extended(first, 11U), JUMP);
	} else if ((first & 0xf500U) == 0xb100U) { /* CBZ, CBNZ */
		return leave_to(end, pc + (first >> 3 & 0x40U) + (first >> 2 & 0x3eU), JUMP);
	} else if ((first & 0xff80U) == 0x4780U) { /* BLX register */
		return leave_to(end, end, CALL_ANYWHERE);
	} else if ((first & 0xff80U) == 0x4700U) { /* BX register */
		return leave_to(end, end, (first & 0x78U) == 0x70U ? RETURN : JUMP_ANYWHERE);
	} else if ((first & 0xff00U) == 0xbd00U) { /* POP {..., pc} */
		return leave_to(end, end, RETURN);
	} else if ((first & 0xfd87U) == 0x4487U) { /* ADD, MOV to pc */
		return leave_to(end, end, JUMP_ANYWHERE);
	} else if ((first & 0xf800U) == 0xf000U && (second & 0x9000U) == 0x9000U) { /* B.W, BL */
		target = (uint64_t)s << 24 | (uint64_t)(j1 == s) << 23 | (uint64_t)(j2 == s) << 22 |
			 (first & 0x3ffU) << 12 | (second & 0x7ffU) << 1;
		return leave_to(end, pc + extended(target, 25U), second & 0x4000U ? CALL : JUMP);
	} else if ((first & 0xf800U) == 0xf000U && (second & 0xd000U) == 0x8000U &&
		   (first & 0x0380U) != 0x0380U) { /* B<c>.W */
		target = s << 20 | j2 << 19 | j1 << 18 | (first & 0x3fU) << 12 |
			 (second & 0x7ffU) << 1;
		return leave_to(end, pc + extended(target, 21U), JUMP);
	} else if ((first & 0xfff0U) == 0xe8d0U && (second & 0xffe0U) == 0xf000U) { /* TBB, TBH */
		return leave_to(end, end, JUMP_ANYWHERE);
	} else if ((first & 0xfe50U) == 0xe810U && (second & 0x8000U) != 0U) { /* LDM with pc */
		return leave_to(end, end, (first & 0xfU) == 13U ? RETURN : JUMP_ANYWHERE);
	} else if ((first & 0xff70U) == 0xf850U && (second & 0xf000U) == 0xf000U) { /* LDR pc */
		return leave_to(end, end, (first & 0xfU) == 13U ? RETURN : JUMP_ANYWHERE);
	} else if ((first & 0xff80U) == 0xf000U && (second & 0xf001U) == 0xc001U) {
		/* WLS, LE: loops of the v8.1-M. Their destination follows from lr. */
		return leave_to(end, end, JUMP_ANYWHERE);
	}
	return leave_to(end, end, NONE);
}

static struct leave riscv_leave(uint32_t insn, size_t size, uint64_t at, uint64_t end)
{
	uint32_t kind = insn & 0xe003U;
	uint64_t offset;

	if (size == 2U && (kind == 0xa001U || (kind == 0x2001U && control->wide == 0U))) {
		/* C.J, and C.JAL of RV32 */
		offset = (insn >> 1 & 0x800U) | (insn << 2 & 0x400U) | (insn >> 1 & 0x300U) |
			 (insn << 1 & 0x80U) | (insn >> 1 & 0x40U) | (insn << 3 & 0x20U) |
			 (insn >> 7 & 0x10U) | (insn >> 2 & 0xeU);
		return leave_to(end, at + extended(offset, 12U), kind == 0xa001U ? JUMP : CALL);
	} else if (size == 2U && (kind == 0xc001U || kind == 0xe001U)) { /* C.BEQZ, C.BNEZ */
		offset = (insn >> 4 & 0x100U) | (insn << 1 & 0xc0U) | (insn << 3 & 0x20U) |
			 (insn >> 7 & 0x18U) | (insn >> 2 & 6U);
		return leave_to(end, at + extended(offset, 9U), JUMP);
	} else if (size == 2U && (insn & 0xe07fU) == 0x8002U && (insn & 0xf80U) != 0U) {
		/* C.JR, C.JALR */
		return leave_to(end, end,
				insn & 0x1000U             ? CALL_ANYWHERE
				: (insn & 0xf80U) == 0x80U ? RETURN
							   : JUMP_ANYWHERE);
	} else if (size == 2U) {
		/*
		 * Zcmp's returns and table jumps use encodings that are stores of doubles on other
		 * cores.
		 */
		return leave_to(end, end, kind == 0xa002U ? JUMP_ANYWHERE : NONE);
	}
	switch (insn & 0x7fU) {
	case 0x6fU: /* JAL */
		offset = (insn >> 11 & 0x100000U) | (insn & 0xff000U) | (insn >> 9 & 0x800U) |
			 (insn >> 20 & 0x7feU);
		return leave_to(end, at + extended(offset, 21U),
				(insn & 0xf80U) != 0U ? CALL : JUMP);
	case 0x67U: /* JALR */
		return leave_to(end, end,
				(insn & 0xf80U) != 0U          ? CALL_ANYWHERE
				: (insn & 0xf8000U) == 0x8000U ? RETURN
							       : JUMP_ANYWHERE);
	case 0x63U: /* branches */
		offset = (insn >> 19 & 0x1000U) | (insn << 4 & 0x800U) | (insn >> 20 & 0x7e0U) |
			 (insn >> 7 & 0x1eU);
		return leave_to(end, at + extended(offset, 13U), JUMP);
	default: /* MRET, SRET */
		return leave_to(end, end,
				insn == 0x30200073U || insn == 0x10200073U ? EXCEPTION_RETURN
									   : NONE);
	}
}

static struct leave x86_leave(const uint8_t *at, size_t size, uint64_t address, uint64_t end)
{
	const uint8_t *behind = at + size;
	bool repeats = false;
	uint8_t group;

	while (at < behind - 1 &&
	       ((*at & 0xe7U) == 0x26U || (*at & 0xfcU) == 0x64U || *at == 0xf0U ||
		(*at & 0xfeU) == 0xf2U || (control->wide != 0U && (*at & 0xf0U) == 0x40U))) {
		repeats = repeats || (*at & 0xfeU) == 0xf2U;
		at++;
	}
	group = at + 1 < behind ? at[1] >> 3 & 7U : 0U;
	if ((*at & 0xf0U) == 0x70U || (*at & 0xfcU) == 0xe0U || *at == 0xebU) {
		return leave_to(end, end + extended(behind[-1], 8U), JUMP);
	} else if (*at == 0xe8U || *at == 0xe9U ||
		   (*at == 0x0fU && at + 1 < behind && (at[1] & 0xf0U) == 0x80U)) {
		uint64_t offset = behind[-4] | (uint64_t)behind[-3] << 8 |
				  (uint64_t)behind[-2] << 16 | (uint64_t)behind[-1] << 24;

		return leave_to(end, end + extended(offset, 32U), *at == 0xe8U ? CALL : JUMP);
	} else if ((*at & 0xf6U) == 0xc2U) { /* RET, far too */
		return leave_to(end, end, RETURN);
	} else if (*at == 0xcfU || (*at == 0x0fU && at + 1 < behind && at[1] == 0x07U)) {
		return leave_to(end, end, EXCEPTION_RETURN);
	} else if (*at == 0x9aU || (*at == 0xffU && (group == 2U || group == 3U))) {
		return leave_to(end, end, CALL_ANYWHERE);
	} else if (*at == 0xeaU || (*at == 0xffU && (group == 4U || group == 5U))) {
		return leave_to(end, end, JUMP_ANYWHERE);
	} else if (repeats) { /* QEMU executes it again for each round */
		return leave_to(end, address, JUMP);
	}
	return leave_to(end, end, NONE);
}

#define LONGEST_INSTRUCTION 16U

/* Returns the place of the bytes of `insn`: `copy`, or QEMU's memory. */
static const uint8_t *bytes_of(const struct qemu_plugin_insn *insn,
			       uint8_t copy[LONGEST_INSTRUCTION])
{
	uintptr_t data = qemu_plugin_insn_data(insn, copy, LONGEST_INSTRUCTION);

	return data > LONGEST_INSTRUCTION ? (const uint8_t *)data : copy;
}

/*
 * Returns the bytes of `insn`. QEMU 7.2 reports two bytes too many for a Thumb instruction if the
 * next instruction crosses a page, since it reads the first half of the next instruction together
 * with the present instruction.
 */
static size_t size_of(const struct qemu_plugin_insn *insn)
{
	uint8_t copy[LONGEST_INSTRUCTION] = {0};
	const uint8_t *at = bytes_of(insn, copy);

	switch (control->machine) {
	case ARM:
		return (at[1] & 0xf8U) >= 0xe8U ? 4U : 2U;
	case RISCV:
		return (at[0] & 3U) == 3U ? 4U : 2U;
	default:
		return qemu_plugin_insn_size(insn);
	}
}

/* The way out of a block whose last instruction is `insn`. */
static struct leave leave_behind(const struct qemu_plugin_insn *insn)
{
	uint8_t copy[LONGEST_INSTRUCTION] = {0};
	const uint8_t *at = bytes_of(insn, copy);
	size_t size = size_of(insn);
	uint64_t address = qemu_plugin_insn_vaddr(insn);
	uint64_t end = address + size;
	uint32_t first = size < 2U ? 0U : (uint32_t)(at[0] | at[1] << 8);
	uint32_t second = size < 4U ? 0U : (uint32_t)(at[2] | at[3] << 8);

	switch (control->machine) {
	case ARM:
		return thumb_leave(first, second, address + 4U, end);
	case RISCV:
		return riscv_leave(first | second << 16, size, address, end);
	case X86:
		return x86_leave(at, size, address, end);
	default: /* An unknown machine: the jump may go anywhere; exceptions are not recognized. */
		return leave_to(end, end, JUMP_ANYWHERE);
	}
}

static bool is_vector(uint64_t start)
{
	for (const struct block *one = *chain_of(start); one != NULL; one = one->next) {
		if (one->start == start) {
			return one->vector;
		}
	}
	return false;
}

/* Allocates shared memory for the counts of a block; a lack of room is noted. */
static struct block_counts *new_counts(uint64_t start, uint64_t last_at, size_t instructions)
{
	struct block_counts *counts =
		(struct block_counts *)(shared + control->blocks_at) + control->blocks;

	if (control->blocks == control->blocks_max ||
	    control->members + instructions > control->members_max) {
		control->full = 1U;
		return &uncounted;
	}
	*counts = (struct block_counts){.start = start,
					.last = last_at,
					.first = (uint32_t)control->members,
					.instructions = (uint32_t)instructions};
	control->members += instructions;
	control->blocks++;
	return counts;
}

/* Copies the code of a block to the harness; a lack of room is noted. */
static void tell_code(struct block_counts *counts, struct qemu_plugin_tb *tb, size_t first,
		      size_t behind)
{
	uint8_t *code = shared + control->code_at;

	counts->code = control->code;
	for (size_t i = first; i < behind; i++) {
		const struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint8_t copy[LONGEST_INSTRUCTION] = {0};
		size_t size = size_of(insn);

		if (size > control->code_max - control->code) {
			control->full = 1U;
			return;
		}
		memcpy(code + control->code, bytes_of(insn, copy), size);
		control->code += size;
	}
	counts->size = control->code - counts->code;
}

/* True if the code of `counts` is the code that QEMU has translated now. */
static bool is_code_of(const struct block_counts *counts, struct qemu_plugin_tb *tb, size_t first)
{
	const uint8_t *code = shared + control->code_at + counts->code;

	for (size_t i = first; i < first + counts->instructions; i++) {
		const struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint8_t copy[LONGEST_INSTRUCTION] = {0};
		size_t size = size_of(insn);

		if (memcmp(code, bytes_of(insn, copy), size) != 0) {
			return false;
		}
		code += size;
	}
	return true;
}

static struct block *new_block(struct qemu_plugin_tb *tb, size_t first, size_t behind)
{
	uint32_t *members = (uint32_t *)(shared + control->members_at);
	struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, behind - 1U);
	uint64_t start = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, first));
	struct block *block = calloc(1U, sizeof(*block));

	if (block == NULL) {
		abort();
	}
	block->offsets = calloc(behind - first, sizeof(*block->offsets));
	if (block->offsets == NULL) {
		abort();
	}
	block->start = start;
	block->exits[0] = &no_exit;
	block->exits[1] = &no_exit;
	block->leave = leave_behind(insn);
	block->function = function_of(start);
	block->entry = begins_function(start);
	block->vector = is_vector(start);
	block->counts = new_counts(start, qemu_plugin_insn_vaddr(insn), behind - first);
	if (edges_wanted && block->counts != &uncounted) {
		tell_code(block->counts, tb, first, behind);
	}
	for (uint32_t i = 0U; i < block->counts->instructions; i++) {
		uint64_t address = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, first + i));

		members[block->counts->first + i] = (uint32_t)counter_of(address);
		block->offsets[i] = (uint16_t)(address - start);
	}
	block->next = *chain_of(start);
	*chain_of(start) = block;
	return block;
}

/*
 * The block of the instructions from `first` up to `behind`. QEMU may translate the same code
 * repeatedly: it is the same block, unless other code was loaded there.
 */
static struct block *block_of(struct qemu_plugin_tb *tb, size_t first, size_t behind)
{
	const uint32_t *members = (const uint32_t *)(shared + control->members_at);
	struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, behind - 1U);
	uint64_t start = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, first));
	struct leave leave = leave_behind(insn);

	for (struct block *one = *chain_of(start); one != NULL; one = one->next) {
		if (one->start == start && one->leave.end == leave.end &&
		    one->leave.target == leave.target && one->leave.how == leave.how &&
		    one->counts->instructions == behind - first &&
		    one->function == function_of(start) &&
		    members[one->counts->first] == counter_of(start) &&
		    (!edges_wanted || is_code_of(one->counts, tb, first))) {
			return one;
		}
	}
	return new_block(tb, first, behind);
}

static bool opens_at(uint64_t address)
{
	return holds(control->open_at, control->opens, address);
}

static bool closes_at(uint64_t address)
{
	return holds(control->close_at, control->closes, address);
}

/* Up to 4 bytes of `insn`. */
static uint32_t word_of(const struct qemu_plugin_insn *insn)
{
	uint8_t copy[LONGEST_INSTRUCTION] = {0};
	const uint8_t *at = bytes_of(insn, copy);
	uint32_t word = (uint32_t)(at[0] | at[1] << 8);

	return size_of(insn) < 4U ? word : word | (uint32_t)(at[2] | at[3] << 8) << 16;
}

/* The instructions behind an IT, with their conditions. */
struct shadow {
	size_t end;
	uint32_t it;
};

static void pass(struct shadow *shadow, size_t i, uint32_t word)
{
	if (control->machine == ARM && word >> 8 == 0xbfU && (word & 0xfU) != 0U) { /* IT */
		*shadow = (struct shadow){i + 5U - (size_t)__builtin_ctz(word), word};
	}
}

/* The condition of the instruction number `i`, which comes before the shadow's end. */
static uint32_t condition_at(const struct shadow *shadow, size_t i)
{
	size_t left = shadow->end - i;
	size_t bit = left + (size_t)__builtin_ctz(shadow->it);

	return (shadow->it >> 4 & 0xeU) | (shadow->it >> bit & 1U);
}

/* Follows an instruction behind an IT; `number` of those before it in its block. */
static void follow_condition(struct qemu_plugin_insn *insn, uint32_t condition, uint64_t number)
{
	size_t counter = counter_of(qemu_plugin_insn_vaddr(insn));
#if PLUGIN_API > 1
	struct conditional *conditional;

	if (control->reads_flags != 0U) {
		conditional = calloc(1U, sizeof(*conditional));
		if (conditional == NULL) {
			abort();
		}
		*conditional = (struct conditional){counter, number < 64U ? 1ULL << number : 0U,
						    condition};
		qemu_plugin_register_vcpu_insn_exec_cb(insn, note_condition, QEMU_PLUGIN_CB_R_REGS,
						       conditional);
		return;
	}
#endif
	(void)condition;
	(void)number;
	doubts()[counter] = DOUBT;
}

static void follow_conditions(struct qemu_plugin_tb *tb, size_t first, size_t behind)
{
	struct shadow shadow = {0};
	uint64_t number = 0U;

	for (size_t i = first; i < behind; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		if (i < shadow.end) {
			follow_condition(insn, condition_at(&shadow, i), number++);
			continue;
		}
		pass(&shadow, i, word_of(insn));
		if (i < shadow.end) {
			doubts()[counter_of(qemu_plugin_insn_vaddr(insn))] = IS_IT;
		}
	}
}

static void follow_blocks(struct qemu_plugin_tb *tb)
{
	const qemu_plugin_udata_cb begins = tracing                  ? begin_traced_block
					    : edges_wanted           ? begin_block_with_edge
					    : looks_at(LOOK_AT_FLOW) ? begin_block
								     : begin_counted_block;
	size_t insns = qemu_plugin_tb_n_insns(tb);

	for (size_t first = 0U, behind = 0U; first < insns; first = behind) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, first);
		struct block *block;

		for (behind = first + 1U; behind < insns; behind++) {
			uint64_t address =
				qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, behind));

			if (begins_function(address) || opens_at(address) || closes_at(address)) {
				break;
			}
		}
		block = block_of(tb, first, behind);
		count_end(qemu_plugin_tb_get_insn(tb, behind - 1U));
		if (first == 0U) {
			qemu_plugin_register_vcpu_tb_exec_cb(tb, begins, QEMU_PLUGIN_CB_NO_REGS,
							     block);
		} else {
			qemu_plugin_register_vcpu_insn_exec_cb(insn, begins, QEMU_PLUGIN_CB_NO_REGS,
							       block);
		}
		follow_conditions(tb, first, behind);
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
	access->counter =
		looks_at(LOOK_AT_FLASH | LOOK_AT_UNALIGNED) ? counter_of(access->at) : ELSEWHERE;
	qemu_plugin_register_vcpu_mem_cb(insn,
					 !looks_at(LOOK_AT_MEMORY) ? noted
					 : tracing                 ? accessed_traced
								   : accessed,
					 QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, access);
}

static void follow_operands(struct qemu_plugin_insn *insn, uint32_t word, uint32_t condition)
{
#if PLUGIN_API > 1
	bool arm = control->machine == ARM;

	for (uint64_t i = 0U; control->reads_operands != 0U && i < control->operations; i++) {
		struct operands *operands;

		if ((word & control->operation[i].mask) != control->operation[i].bits) {
			continue;
		}
		operands = calloc(1U, sizeof(*operands));
		if (operands == NULL) {
			abort();
		}
		operands->counter = counter_of(qemu_plugin_insn_vaddr(insn));
		operands->cycles =
			shared + control->operand_cycles_at + i * OPERAND_CLASSES * OPERAND_CLASSES;
		operands->first = arm ? word & 0xfU : word >> 15 & 0x1fU;
		operands->second = arm ? word >> 16 & 0xfU : word >> 20 & 0x1fU;
		operands->condition = condition;
		qemu_plugin_register_vcpu_insn_exec_cb(insn, note_operands, QEMU_PLUGIN_CB_R_REGS,
						       operands);
	}
#else
	(void)insn;
	(void)word;
	(void)condition;
#endif
}

/* Without flags, instructions on a condition keep their range. */
static void follow_operations(struct qemu_plugin_tb *tb)
{
	size_t insns = qemu_plugin_tb_n_insns(tb);
	struct shadow shadow = {0};

	for (size_t i = 0U; i < insns; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint32_t word = word_of(insn);

		if (i >= shadow.end) {
			pass(&shadow, i, word);
			follow_operands(insn, word, ALWAYS);
		} else if (control->reads_flags != 0U) {
			follow_operands(insn, word, condition_at(&shadow, i));
		}
	}
}

static void translated(CALLED_WITH(struct qemu_plugin_tb *tb))
{
	size_t insns = qemu_plugin_tb_n_insns(tb);

	(void)of;
	follow_blocks(tb);
	for (size_t i = 0U; i < insns; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t address = qemu_plugin_insn_vaddr(insn);

		/*
		 * The window opens before the instruction is counted, since it is the window's
		 * first.
		 */
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
	}
	/* After the callbacks that open and close a window. */
	if (control->reads_operands != 0U) {
		follow_operations(tb);
	}
}

/*
 * Maps the harness's memory, whose descriptor is `fd`. Returns false if the harness's layout
 * differs from this file's.
 */
static bool map_shared(int argc, char **argv, int *fd)
{
	static const uint64_t sizes[] = {
		sizeof(struct control),      sizeof(struct range), sizeof(struct function),
		sizeof(struct node),         sizeof(struct step),  sizeof(struct window),
		sizeof(struct block_counts), sizeof(struct edge),  sizeof(struct taken),
		sizeof(struct operation),
	};

	_Static_assert(sizeof(sizes) == sizeof(control->sizes), "a size for each structure");
	shared = memory_of(argc, argv, sizeof(struct control), fd);
	control = (struct control *)shared;
	return shared != NULL && control->layout == LAYOUT &&
	       memcmp(control->sizes, sizes, sizeof(sizes)) == 0;
}

__attribute__((visibility("default"))) int
qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv)
{
	int fd;

	(void)info;
	if (!map_shared(argc, argv, &fd)) {
		fprintf(stderr,
			"minrpc's plugin: no shared memory of layout %u, and of its sizes, at "
			"descriptor %d\n",
			LAYOUT, fd);
		return -1;
	}
	tracing = control->trace_max != 0U;
	edges_wanted = looks_at(LOOK_AT_EDGES);
	line_bits = (unsigned int)__builtin_ctzll(control->cache_line);
	set_mask = control->cache_sets - 1U;
	ways = calloc((size_t)(control->cache_sets * control->cache_ways), sizeof(*ways));
	if (ways == NULL) {
		return -1;
	}
	stack[0].node = node_at(0U);
#if PLUGIN_API == 1
	ends = &ends_counted;
#else
	ends_score = qemu_plugin_scoreboard_new(sizeof(uint64_t));
	REGISTER(qemu_plugin_register_vcpu_init_cb, id, processor_is_there);
#endif
	REGISTER(qemu_plugin_register_vcpu_tb_trans_cb, id, translated);
	return 0;
}
