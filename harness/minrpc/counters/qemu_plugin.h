/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * QEMU's functions for TCG plugins: QEMU's own header is in no package. PLUGIN_API is the version
 * of the interface (see plugin_build.py):
 *   1  QEMU 4.2 to 8.2
 *   2  from QEMU 9.0 on: counts in line are kept for each virtual CPU; registers can be read
 *   7  from QEMU 11.0 on: callbacks have a pointer of the plugin's, not the plugin's number
 */
#ifndef MINRPC_QEMU_PLUGIN_H_
#define MINRPC_QEMU_PLUGIN_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info;

enum qemu_plugin_cb_flags {
	QEMU_PLUGIN_CB_NO_REGS,
	QEMU_PLUGIN_CB_R_REGS,
};
enum qemu_plugin_op {
	QEMU_PLUGIN_INLINE_ADD_U64
};
enum qemu_plugin_mem_rw {
	QEMU_PLUGIN_MEM_RW = 3
};
typedef uint32_t qemu_plugin_meminfo_t;
struct qemu_plugin_hwaddr;

/* The arguments of a callback that has `argument`, and its registration. */
#if PLUGIN_API < 7
#define CALLED_WITH(argument)            qemu_plugin_id_t of, argument
#define REGISTERED_BY(callback)          qemu_plugin_id_t id, void (*cb)(callback)
#define REGISTER(function, id, callback) function(id, callback)
#else
#define CALLED_WITH(argument)            argument, void *of
#define REGISTERED_BY(callback)          qemu_plugin_id_t id, void (*cb)(callback), void *userdata
#define REGISTER(function, id, callback) function(id, callback, NULL)
#endif

typedef void (*qemu_plugin_udata_cb)(unsigned int vcpu, void *userdata);

void qemu_plugin_register_vcpu_tb_trans_cb(REGISTERED_BY(CALLED_WITH(struct qemu_plugin_tb *tb)));
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
 * Up to QEMU 9.0 it takes only `insn` and returns the address of the bytes; later it copies the
 * bytes, and returns their number.
 */
uintptr_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t size);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

#if PLUGIN_API == 1
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn,
						enum qemu_plugin_op op, void *ptr, uint64_t imm);
#else
struct qemu_plugin_scoreboard;
typedef struct {
	struct qemu_plugin_scoreboard *score;
	size_t offset;
} qemu_plugin_u64;

void qemu_plugin_register_vcpu_init_cb(REGISTERED_BY(CALLED_WITH(unsigned int vcpu)));
struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t element_size);
void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *score, unsigned int vcpu);
void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(struct qemu_plugin_insn *insn,
							 enum qemu_plugin_op op,
							 qemu_plugin_u64 entry, uint64_t imm);

/* GLib's, which QEMU has; weak: a QEMU that contains GLib does not export it to plugins.
 */
typedef struct {
	uint8_t *data;
	unsigned int len;
} GByteArray;
typedef struct {
	char *data;
	unsigned int len;
} GArray;

__attribute__((weak)) GByteArray *g_byte_array_new(void);
__attribute__((weak)) GByteArray *g_byte_array_set_size(GByteArray *array, unsigned int length);
__attribute__((weak)) unsigned int g_array_get_element_size(GArray *array);

struct qemu_plugin_register;
/* Its begin: newer versions have more members. */
typedef struct {
	struct qemu_plugin_register *handle;
	const char *name;
	const char *feature;
} qemu_plugin_reg_descriptor;

GArray *qemu_plugin_get_registers(void);
#if PLUGIN_API < 6
int
#else
bool
#endif
qemu_plugin_read_register(struct qemu_plugin_register *handle, GByteArray *to);
#endif

/* The memory at the descriptor of the argument "fd=N"; NULL if there are not `least` bytes. */
static inline uint8_t *memory_of(int argc, char **argv, size_t least, int *fd)
{
	struct stat status;
	void *memory;

	*fd = -1;
	for (int i = 0; i < argc; i++) {
		(void)sscanf(argv[i], "fd=%d", fd);
	}
	if (fstat(*fd, &status) != 0 || (size_t)status.st_size < least) {
		return NULL;
	}
	memory = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

#endif
