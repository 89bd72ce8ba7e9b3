/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A TCG plugin for QEMU: records the blocks of watched code that the guest executes, and the
 * accesses of its instructions, in a ring in memory that it shares with the harness. A block of
 * other code is recorded only after a watched one. See trace.py for the other side of the layout,
 * and for the format.
 */
#define _POSIX_C_SOURCE 200809L

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "qemu_plugin.h"

__attribute__((visibility("default"))) int qemu_plugin_version = PLUGIN_API;

#define LAYOUT    2U
#define PAGE_BITS 10U /* the least part of memory of one kind, as an address's bits */
#define PAGES     256U

/* Guest addresses whose instructions are recorded. */
struct watch {
	uint64_t base;
	uint64_t size;
};

struct step {
	uint64_t where;
	uint64_t what;
};

#define STEP_BLOCK (1ULL << 63)
#define STEP_LEFT  (STEP_BLOCK | STEP_STORE)
#define STEP_STORE (1ULL << 62)
#define STEP_IO    (1ULL << 61)
#define SIZE_AT    56U /* the access's size as a power of two: 4 bits */
#define ADDRESS    ((1ULL << SIZE_AT) - 1U)

struct control {
	uint64_t layout;
	uint64_t watches; /* in use: more are added while QEMU runs */
	uint64_t watches_at;
	uint64_t steps_at;
	uint64_t steps_max; /* a power of two */
	uint64_t steps;     /* since QEMU's start */
	uint64_t taken;     /* of these, by the harness: their room is free */
	uint64_t lost;      /* steps for which there was no room */
};

static struct control *control;
static uint8_t *shared;
static struct step *ring;

static inline void note(uint64_t where, uint64_t what)
{
	if (control->steps - control->taken == control->steps_max) {
		control->lost++;
		return;
	}
	ring[control->steps++ & (control->steps_max - 1U)] = (struct step){where, what};
}

/* The pages whose kind is known, by their number. */
static struct page {
	uint64_t number;
	bool is_io;
} pages[PAGES];

static bool is_io(qemu_plugin_meminfo_t info, uint64_t address)
{
	uint64_t number = (address >> PAGE_BITS) + 1U;
	struct page *page = &pages[number % PAGES];

	if (page->number != number) {
		const struct qemu_plugin_hwaddr *physical = qemu_plugin_get_hwaddr(info, address);

		page->number = number;
		page->is_io = physical != NULL && qemu_plugin_hwaddr_is_io(physical);
	}
	return page->is_io;
}

static void accessed(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t address,
		     void *userdata)
{
	uint64_t size = qemu_plugin_mem_size_shift(info);

	(void)vcpu;
	note((uint64_t)(uintptr_t)userdata,
	     (address & ADDRESS) | size << SIZE_AT |
		     (qemu_plugin_mem_is_store(info) ? STEP_STORE : 0U) |
		     (is_io(info, address) ? STEP_IO : 0U));
}

struct block {
	uint64_t start;
	uint64_t last; /* distance of its last instruction */
};

static bool is_inside; /* the last block was watched */

static void entered(unsigned int vcpu, void *userdata)
{
	const struct block *block = userdata;

	(void)vcpu;
	is_inside = true;
	note(block->start, block->last | STEP_BLOCK);
}

static void left(unsigned int vcpu, void *userdata)
{
	(void)vcpu;
	if (is_inside) {
		is_inside = false;
		note((uint64_t)(uintptr_t)userdata, STEP_LEFT);
	}
}

static bool is_watched(uint64_t address)
{
	const struct watch *watches = (const struct watch *)(shared + control->watches_at);

	for (uint64_t i = control->watches; i-- > 0U;) {
		if (address - watches[i].base < watches[i].size) {
			return true;
		}
	}
	return false;
}

static void translated(CALLED_WITH(struct qemu_plugin_tb *tb))
{
	size_t insns = qemu_plugin_tb_n_insns(tb);
	uint64_t start = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0U));
	struct block *block;

	(void)of;
	if (!is_watched(start)) {
		qemu_plugin_register_vcpu_tb_exec_cb(tb, left, QEMU_PLUGIN_CB_NO_REGS,
						     (void *)(uintptr_t)start);
		return;
	}
	block = calloc(1U, sizeof(*block));
	if (block == NULL) {
		abort();
	}
	block->start = start;
	block->last =
		qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, insns - 1U)) - block->start;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, entered, QEMU_PLUGIN_CB_NO_REGS, block);
	for (size_t i = 0U; i < insns; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		qemu_plugin_register_vcpu_mem_cb(insn, accessed, QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_RW,
						 (void *)(uintptr_t)qemu_plugin_insn_vaddr(insn));
	}
}

static bool map_shared(int argc, char **argv, int *fd)
{
	shared = memory_of(argc, argv, sizeof(struct control), fd);
	if (shared == NULL) {
		return false;
	}
	control = (struct control *)shared;
	ring = (struct step *)(shared + control->steps_at);
	return control->layout == LAYOUT;
}

__attribute__((visibility("default"))) int
qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv)
{
	int fd;

	(void)info;
	if (!map_shared(argc, argv, &fd)) {
		fprintf(stderr,
			"minrpc's recorder: no shared memory of layout %u at descriptor %d\n",
			LAYOUT, fd);
		return -1;
	}
	REGISTER(qemu_plugin_register_vcpu_tb_trans_cb, id, translated);
	return 0;
}
