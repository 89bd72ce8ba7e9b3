/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "code_memory.h"

#include <errno.h>
#include <string.h>

#include <zephyr/cache.h>
#include <zephyr/kernel.h>

#if defined(CONFIG_MMU)
#include <zephyr/kernel/mm.h>
#if defined(CONFIG_ARM64)
#include <zephyr/arch/arm64/lib_helpers.h>
#endif
#elif defined(CONFIG_ARM_MPU)
#include <cmsis_core.h>
#elif defined(CONFIG_ARCH_POSIX)
#include "native_host.h"
#endif

#if defined(CONFIG_MINRPC_THREAD_LOCALS) && CONFIG_MINRPC_THREAD_LOCALS > 0
/* The host finds it by its name, and links the thread-local variables of loaded code for it. */
__thread uint8_t __aligned(16) minrpc_thread_room[ROUND_UP(CONFIG_MINRPC_THREAD_LOCALS, 16)];
#endif

#if defined(CONFIG_MMU)

#if defined(CONFIG_ARM64)
#define PAGE_SHIFT   12
#define TABLE_SHIFT  9
#define TABLE_INDEX  BIT_MASK(TABLE_SHIFT)
#define ADDRESS      GENMASK64(47, PAGE_SHIFT)
#define NO_EXECUTION BIT64(53) /* PXN */

/* The kernel's tables let no memory be executed that can be written; the last level says so. */
static void allow_execution(uintptr_t page)
{
	unsigned int bits = 64U - (read_tcr_el1() & BIT_MASK(6)); /* T0SZ */
	unsigned int levels = DIV_ROUND_UP(bits - PAGE_SHIFT, TABLE_SHIFT);
	uint64_t *table = (uint64_t *)(read_ttbr0_el1() & ADDRESS);

	while (--levels > 0U) {
		unsigned int shift = PAGE_SHIFT + TABLE_SHIFT * levels;

		table = (uint64_t *)(table[page >> shift & TABLE_INDEX] & ADDRESS);
	}
	table[page >> PAGE_SHIFT & TABLE_INDEX] &= ~NO_EXECUTION;
}

static void allow_execution_of(uintptr_t first, size_t size)
{
	for (size_t at = 0U; at < size; at += CONFIG_MMU_PAGE_SIZE) {
		allow_execution(first + at);
	}
	__asm__ volatile("dsb ishst\n\ttlbi vmalle1\n\tdsb ish\n\tisb" ::: "memory");
}
#else
static void allow_execution_of(uintptr_t first, size_t size)
{
	ARG_UNUSED(first);
	ARG_UNUSED(size);
}
#endif

/* No page of the image is writable and executable, so pages for code are mapped beside it. */
int minrpc_code_memory_init(struct minrpc_config *config)
{
	config->code_size = ROUND_UP(CONFIG_MINRPC_CODE_SIZE, CONFIG_MMU_PAGE_SIZE);
	config->code = k_mem_map(config->code_size, K_MEM_PERM_RW | K_MEM_PERM_EXEC);
	if (config->code == NULL) {
		return -ENOMEM;
	}
	allow_execution_of((uintptr_t)config->code, config->code_size);
	return 0;
}

#elif defined(CONFIG_ARM_MPU) && defined(CONFIG_CPU_HAS_ARM_MPU)

#if defined(MPU_RASR_XN_Msk)
/* ARMv7-M: true if the chosen region is enabled and overlaps the memory. */
static bool region_has(uintptr_t first, uintptr_t last)
{
	uint32_t base = MPU->RBAR & MPU_RBAR_ADDR_Msk;
	uint32_t size = (MPU->RASR & MPU_RASR_SIZE_Msk) >> MPU_RASR_SIZE_Pos;

	return (MPU->RASR & MPU_RASR_ENABLE_Msk) != 0U && base <= last &&
	       first <= base + (uint32_t)((1ULL << (size + 1U)) - 1U);
}

static void region_allow(void)
{
	MPU->RASR &= ~MPU_RASR_XN_Msk;
}
#else
static bool region_has(uintptr_t first, uintptr_t last)
{
	return (MPU->RLAR & MPU_RLAR_EN_Msk) != 0U && (MPU->RBAR & MPU_RBAR_BASE_Msk) <= last &&
	       first <= (MPU->RLAR | ~MPU_RLAR_LIMIT_Msk);
}

static void region_allow(void)
{
	MPU->RBAR &= ~MPU_RBAR_XN_Msk;
}
#endif

/*
 * The regions of RAM are set up at boot and stay. Regions of threads, such as stack guards, change;
 * they are left unchanged, since none overlaps the arena.
 */
int minrpc_code_memory_init(struct minrpc_config *config)
{
	uintptr_t first = (uintptr_t)config->arena;
	uint32_t count = (MPU->TYPE & MPU_TYPE_DREGION_Msk) >> MPU_TYPE_DREGION_Pos;
	unsigned int key = irq_lock();

	for (uint32_t i = 0U; i < count; i++) {
		MPU->RNR = i;
		if (region_has(first, first + config->arena_size - 1U)) {
			region_allow();
		}
	}
	__DSB();
	__ISB();
	irq_unlock(key);
	return 0;
}

#elif defined(CONFIG_ARCH_POSIX)

/* Returns the address of a symbol of the host's C library; 0 if it has no such symbol. */
static bool find_symbol(struct minrpc_call *call)
{
	const char *name = call->args.values[0].v_str;

	return minrpc_return_int(call, (int64_t)(uintptr_t)minrpc_native_host_symbol(name));
}

static const struct minrpc_function functions[] = {
	{"minrpc.symbol", "s", find_symbol},
};

int minrpc_code_memory_init(struct minrpc_config *config)
{
	static uint8_t code[CONFIG_MINRPC_CODE_SIZE] __aligned(65536);
	static struct minrpc_module modules[8];
	uint32_t count = config->library.count;

	if (count >= ARRAY_SIZE(modules)) {
		return -ENOSPC;
	}
	memcpy(modules, config->library.modules, count * sizeof(modules[0]));
	modules[count] =
		(struct minrpc_module){.functions = functions, .count = ARRAY_SIZE(functions)};
	config->library = (struct minrpc_library){modules, count + 1U};
	config->code = code;
	config->code_size = sizeof(code);
	return minrpc_native_host_make_executable(code, sizeof(code)) == 0 ? 0 : -EACCES;
}

#else

/* RAM is executable here, behind NXP's own MPU by CONFIG_MPU_ALLOW_FLASH_WRITE. */
int minrpc_code_memory_init(struct minrpc_config *config)
{
	ARG_UNUSED(config);
	return 0;
}

#endif

int minrpc_code_memory_ready(void *context, void *block, uint32_t size)
{
	ARG_UNUSED(context);
	(void)sys_cache_data_flush_range(block, size);
	(void)sys_cache_instr_invd_range(block, size);
#if defined(CONFIG_ARM_MPU)
	__DSB();
	__ISB();
#elif defined(CONFIG_RISCV)
	__asm__ volatile("fence.i" ::: "memory");
#endif
	return 0;
}
