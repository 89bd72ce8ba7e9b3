/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * QEMU's side of the plugin interface, with the types of the version QEMU (1101: 11.1): an Arm core
 * whose r1 is 1000, r2 is 7 and all others 0 runs a window of three instructions.
 *   qemu PLUGIN ARGUMENT OPENS CLOSES
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "qemu_plugin.h"

#if QEMU < 1100
#define CALLED(type)       void (*cb)(qemu_plugin_id_t id, type argument)
#define REGISTERS(type)    qemu_plugin_id_t id, CALLED(type)
#define CALL(cb, argument) (cb)(1U, argument)
typedef int read_t;
#else
#define CALLED(type)       void (*cb)(type argument, void *userdata)
#define REGISTERS(type)    qemu_plugin_id_t id, CALLED(type), void *userdata
#define CALL(cb, argument) (cb)(argument, NULL)
typedef bool read_t;
#endif

struct call {
	qemu_plugin_udata_cb cb;
	void *userdata;
};

struct qemu_plugin_insn {
	uint8_t bytes[4];
	size_t size;
	uint64_t address;
	struct call calls[4];
	size_t count;
	uint64_t added;
};

struct qemu_plugin_tb {
	struct qemu_plugin_insn insns[3];
	size_t count;
	struct call begins;
};

struct qemu_plugin_register {
	uint32_t value;
};

static struct qemu_plugin_register values[17] = {[1] = {1000U}, [2] = {7U}};
static struct {
	qemu_plugin_reg_descriptor known;
#if QEMU >= 1100
	bool is_readonly;
#endif
} descriptors[17];
static uint64_t ends;
static struct {
	CALLED(struct qemu_plugin_tb *);
} translate;
static struct {
	CALLED(unsigned int);
} init;

void qemu_plugin_register_vcpu_tb_trans_cb(REGISTERS(struct qemu_plugin_tb *))
{
	translate.cb = cb;
}

void qemu_plugin_register_vcpu_init_cb(REGISTERS(unsigned int))
{
	init.cb = cb;
}

void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, qemu_plugin_udata_cb cb,
					    enum qemu_plugin_cb_flags flags, void *userdata)
{
	insn->calls[insn->count++] = (struct call){cb, userdata};
}

void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, qemu_plugin_mem_cb cb,
				      enum qemu_plugin_cb_flags flags, enum qemu_plugin_mem_rw rw,
				      void *userdata)
{
}

void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, qemu_plugin_udata_cb cb,
					  enum qemu_plugin_cb_flags flags, void *userdata)
{
	tb->begins = (struct call){cb, userdata};
}

void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(struct qemu_plugin_insn *insn,
							 enum qemu_plugin_op op,
							 qemu_plugin_u64 entry, uint64_t imm)
{
	insn->added = imm;
}

struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t element_size)
{
	return NULL;
}

void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *score, unsigned int vcpu)
{
	return &ends;
}

uintptr_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t size)
{
	if (QEMU < 901) {
		return (uintptr_t)insn->bytes;
	}
	size = insn->size < size ? insn->size : size;
	memcpy(to, insn->bytes, size);
	return size;
}

size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn)
{
	return insn->size;
}

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb)
{
	return tb->count;
}

struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index)
{
	return (struct qemu_plugin_insn *)&tb->insns[index];
}

uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn)
{
	return insn->address;
}

GByteArray *g_byte_array_new(void)
{
	static uint8_t data[64];
	static GByteArray array = {.data = data};

	return &array;
}

GByteArray *g_byte_array_set_size(GByteArray *array, unsigned int length)
{
	array->len = length;
	return array;
}

unsigned int g_array_get_element_size(GArray *array)
{
	return sizeof(descriptors[0]);
}

GArray *qemu_plugin_get_registers(void)
{
	static GArray array = {(char *)descriptors, 17U};

	for (size_t i = 0U; i < 17U; i++) {
		descriptors[i].known.handle = &values[i];
		descriptors[i].known.name = i == 0U ? "r0" : i == 16U ? "xpsr" : "r";
	}
	return &array;
}

read_t qemu_plugin_read_register(struct qemu_plugin_register *handle, GByteArray *to)
{
	memcpy(to->data + to->len, &handle->value, sizeof(handle->value));
	to->len += sizeof(handle->value);
	return sizeof(handle->value);
}

static void run(struct qemu_plugin_tb *tb, uint64_t address)
{
	for (size_t i = 0U; i < tb->count; i++) {
		tb->insns[i].address = address;
		address += tb->insns[i].size;
	}
	CALL(translate.cb, tb);
	tb->begins.cb(0U, tb->begins.userdata);
	for (struct qemu_plugin_insn *insn = tb->insns; insn < tb->insns + tb->count; insn++) {
		for (size_t i = 0U; i < insn->count; i++) {
			insn->calls[i].cb(0U, insn->calls[i].userdata);
		}
		ends += insn->added;
	}
}

int main(int argc, char **argv)
{
	/* udiv r0, r1, r2; it eq; udiveq r3, r1, r2 */
	static struct qemu_plugin_tb window = {{{{0xb1, 0xfb, 0xf2, 0xf0}, 4U},
						{{0x08, 0xbf}, 2U},
						{{0xb1, 0xfb, 0xf2, 0xf3}, 4U}},
					       3U};
	static struct qemu_plugin_tb behind = {{{{0x00, 0xbf}, 2U}}, 1U};
	int (*install)(qemu_plugin_id_t, const struct qemu_info *, int, char **);
	void *plugin = dlopen(argv[1], RTLD_LAZY);

	*(void **)&install = dlsym(plugin, "qemu_plugin_install");
	if (*(int *)dlsym(plugin, "qemu_plugin_version") != PLUGIN_API ||
	    install(1U, NULL, 1, argv + 2) != 0) {
		return 1;
	}
	CALL(init.cb, 0U);
	run(&window, strtoull(argv[3], NULL, 0));
	run(&behind, strtoull(argv[4], NULL, 0));
	return 0;
}
