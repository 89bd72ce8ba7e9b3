/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A TCG plugin for QEMU: counts what the guest executes, instruction by instruction, into memory that it shares
 * with the harness. The harness writes the control page before QEMU starts and reads the counts while the guest
 * waits for it. See qemu_counters.py for the other side of the layout.
 *
 * QEMU's plugin header is in no package, so what is used of it is declared here. PLUGIN_API is 1 for QEMU 4.2 to
 * 8.2; from QEMU 9.0 on, where counts in line are kept for each virtual CPU, it is 2 or more.
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

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };

typedef void (*qemu_plugin_tb_trans_cb)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*qemu_plugin_udata_cb)(unsigned int vcpu, void *userdata);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_plugin_tb_trans_cb cb);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, qemu_plugin_udata_cb cb,
					    enum qemu_plugin_cb_flags flags, void *userdata);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

void qemu_plugin_register_vcpu_idle_cb(qemu_plugin_id_t id, void (*cb)(qemu_plugin_id_t id, unsigned int vcpu));

#if PLUGIN_API == 1
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn, enum qemu_plugin_op op,
						void *ptr, uint64_t imm);
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

#define LAYOUT 1U
#define MAX_RANGES 16U
#define MAX_EDGES 16U

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

/* All but the last two is the harness's to write. */
struct control {
	uint64_t layout;
	uint64_t ranges;
	uint64_t opens;  /* addresses of instructions at which a window opens */
	uint64_t closes; /* at which it closes; they are not in it */
	uint64_t windows_at; /* where in the file the windows are */
	uint64_t windows_max;
	uint64_t counters;  /* how many */
	uint64_t live_at;   /* where in the file they are, since the start of QEMU */
	uint64_t inside_at; /* and those of what was executed in windows */
	uint64_t slow_from; /* the code up to slow_to takes the host longer, and the guest no time */
	uint64_t slow_to;
	struct range range[MAX_RANGES];
	uint64_t open_at[MAX_EDGES];
	uint64_t close_at[MAX_EDGES];

	uint64_t windows; /* that were closed: the last windows_max of them are kept */
};

struct window {
	uint64_t instructions;
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

/* QEMU counts into memory of its own, from which what has changed is copied while the guest idles. */
static struct qemu_plugin_scoreboard *score;

static uint64_t *counters(void)
{
	return qemu_plugin_scoreboard_find(score, 0U);
}

static void count(struct qemu_plugin_insn *insn, size_t counter)
{
	const qemu_plugin_u64 entry = {score, counter * sizeof(uint64_t)};

	qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, QEMU_PLUGIN_INLINE_ADD_U64, entry, 1U);
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

static void open_window(unsigned int vcpu, void *userdata)
{
	const uint64_t *now = counters();

	(void)vcpu;
	(void)userdata;
	is_open = true;
	for (size_t i = 0U; i < used_count; i++) {
		used[i].before = now[used[i].counter];
	}
}

static void close_window(unsigned int vcpu, void *userdata)
{
	struct window *windows = (struct window *)(shared + control->windows_at);
	uint64_t *inside = (uint64_t *)(shared + control->inside_at);
	const uint64_t *now = counters();

	(void)vcpu;
	(void)userdata;
	if (!is_open) {
		return;
	}
	is_open = false;
	for (size_t i = 0U; i < used_count; i++) {
		inside[used[i].counter] += now[used[i].counter] - used[i].before;
	}
	/* The counter of all instructions is the first in use. */
	windows[control->windows % control->windows_max] =
		(struct window){.instructions = now[INSTRUCTIONS] - used[0].before};
	control->windows++;
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

/* Meanwhile other threads of QEMU do what they have to: a byte that waits for the guest's UART gets there. */
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
	for (uint64_t i = 0U; i < control->ranges; i++) {
		const struct range *range = &control->range[i];

		if (address - range->base < range->size) {
			return (size_t)(range->first + ((address - range->base) >> range->shift));
		}
	}
	return ELSEWHERE;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t insns = qemu_plugin_tb_n_insns(tb);

	(void)id;
	use(INSTRUCTIONS);
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
		use(counter);
		count(insn, INSTRUCTIONS);
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

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id,
								const struct qemu_info *info, int argc,
								char **argv)
{
	int fd = -1;

	(void)info;
	for (int i = 0; i < argc; i++) {
		(void)sscanf(argv[i], "fd=%d", &fd);
	}
	if (!map_shared(fd)) {
		fprintf(stderr, "minrpc's plugin: no shared memory of layout %u at descriptor %d\n", LAYOUT, fd);
		return -1;
	}
	seen = calloc((size_t)control->counters, 1U);
	if (seen == NULL) {
		return -1;
	}
#if PLUGIN_API > 1
	score = qemu_plugin_scoreboard_new((size_t)control->counters * sizeof(uint64_t));
	qemu_plugin_register_vcpu_idle_cb(id, idle);
#endif
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
