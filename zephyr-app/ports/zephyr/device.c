/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A device under Zephyr: its server, on a thread of its own.
 */
#include <errno.h>

#if defined(CONFIG_CPU_CORTEX_M)
#include <cmsis_core.h>
#endif
#include <zephyr/device.h>
#include <zephyr/kernel.h>
#include <zephyr/linker/linker-defs.h>
#include <zephyr/sys/printk.h>

#include <minrpc/server.h>
#include <minrpc/zephyr.h>

#include "../build_id.h"
#include "../heap_guard.h"
#include "clock.h"
#include "code_memory.h"
#include "counters.h"
#include "double_fault.h"
#include "link.h"
#include "log_console.h"
#include "mapped_stack.h"
#ifdef CONFIG_ARCH_POSIX
#include "../host/build_id.h"
#include "native_host.h"
#endif
#include "restart.h"
#include "restore.h"
#include "server.h"
#include "stack_guard.h"
#include "trap_stack.h"

/* The byte with which the kernel fills stacks. */
#define STACK_FILL 0xaaU
/* A process's threads run on the host's stacks. */
#define KNOWS_STACK                                                                                \
	(IS_ENABLED(CONFIG_INIT_STACKS) && IS_ENABLED(CONFIG_THREAD_STACK_INFO) &&                 \
	 !IS_ENABLED(CONFIG_ARCH_POSIX))

/* The board's memory; the image can use no more of it than it may map. */
#ifdef CONFIG_MMU
#define MEMORY_SIZE MIN(DT_REG_SIZE(DT_CHOSEN(zephyr_sram)), CONFIG_KERNEL_VM_SIZE)
#else
#define MEMORY_SIZE DT_REG_SIZE(DT_CHOSEN(zephyr_sram))
#endif

/* A share of the memory, unless the configuration has a size. */
#if CONFIG_MINRPC_ARENA_SIZE > 0
#define ARENA_SIZE CONFIG_MINRPC_ARENA_SIZE
#elif DT_HAS_CHOSEN(zephyr_sram)
#define ARENA_SIZE ROUND_DOWN(MEMORY_SIZE / 100U * CONFIG_MINRPC_ARENA_SHARE, 64U)
#else
#error "The devicetree names no zephyr,sram to take a share of: set CONFIG_MINRPC_ARENA_SIZE"
#endif

/* Called functions may use floating point, beside the application's own threads. */
#if defined(CONFIG_FPU_SHARING) && defined(CONFIG_X86_SSE)
#define THREAD_OPTIONS (K_FP_REGS | K_SSE_REGS)
#elif defined(CONFIG_FPU_SHARING)
#define THREAD_OPTIONS K_FP_REGS
#else
#define THREAD_OPTIONS 0
#endif

#if defined(CONFIG_CPU_CORTEX_M) || defined(CONFIG_RISCV)
static Z_KERNEL_STACK_DEFINE_IN(stack, CONFIG_MINRPC_STACK_SIZE, Z_GENERIC_SECTION(.minrpc_stack));
#elif !defined(CONFIG_MINRPC_MAPPED_STACK)
static K_KERNEL_STACK_DEFINE(stack, CONFIG_MINRPC_STACK_SIZE);
#endif

/*
 * A function may ask the client while it has masked interrupts. The kernel's own lock ends where a
 * thread waits, but PRIMASK stays, and no byte would come or go: so PRIMASK is cleared meanwhile.
 */
static uint32_t interrupts_let(void)
{
#if defined(CONFIG_CPU_CORTEX_M)
	uint32_t before = __get_PRIMASK();

	__enable_irq();
	return before;
#else
	return 0U;
#endif
}

static void interrupts_as(uint32_t before)
{
#if defined(CONFIG_CPU_CORTEX_M)
	__set_PRIMASK(before);
#else
	ARG_UNUSED(before);
#endif
}

static int port_write(void *context, const uint8_t *data, uint32_t size)
{
	uint32_t before = interrupts_let();

	ARG_UNUSED(context);
	minrpc_link_write(data, size);
	interrupts_as(before);
	return 0;
}

static void port_sleep_ms(void *context, uint32_t milliseconds)
{
	ARG_UNUSED(context);
	/* Zephyr's sleep takes at most INT32_MAX. */
	while (milliseconds != 0U) {
		uint32_t part = MIN(milliseconds, (uint32_t)INT32_MAX);

		(void)k_msleep((int32_t)part);
		milliseconds -= part;
	}
}

/* Number of the waiting bytes that the server has. */
static uint32_t handed;

static uint32_t port_pending(void *context, uint32_t from, const uint8_t **data)
{
	ARG_UNUSED(context);
	return minrpc_link_peek(handed, from, data);
}

#if MINRPC_ASK
static uint32_t port_receive(void *context, const uint8_t **data)
{
	uint32_t before = interrupts_let();

	ARG_UNUSED(context);
	minrpc_link_consume(handed);
	handed = minrpc_link_wait(data);
	interrupts_as(before);
	return handed;
}
#endif

static void port_reset(void *context)
{
	ARG_UNUSED(context);
	minrpc_restart();
}

static uint32_t port_receive_overruns(void *context)
{
	ARG_UNUSED(context);
	return minrpc_link_overruns();
}

/*
 * Counted here, and not by k_thread_stack_space_get, whose callees' frames cover the frame of a
 * small function.
 */
static void port_stack_use(void *context, uint32_t *size, uint32_t *peak)
{
	ARG_UNUSED(context);
	*size = CONFIG_MINRPC_STACK_SIZE;
	*peak = 0U;
#if defined(CONFIG_INIT_STACKS) && defined(CONFIG_THREAD_STACK_INFO)
	const volatile uint8_t *at = (const volatile uint8_t *)k_current_get()->stack_info.start;
	const volatile uint8_t *end = at + k_current_get()->stack_info.size;

	/* The kernel's own bytes, at the stack's end. */
	at += IS_ENABLED(CONFIG_STACK_SENTINEL) ? sizeof(uint32_t) : 0U;
	while (at < end && *at == STACK_FILL) {
		at++;
	}
	*peak = (uint32_t)(end - at);
#endif
}

#if defined(CONFIG_MINRPC_HEAP_GUARD)
static const void *port_heap_inspect(void *context, const char **where)
{
	ARG_UNUSED(context);
	return heap_guard_inspect(where);
}
#endif

static const struct minrpc_platform platform = {
	.write = port_write,
	.clock_describe = minrpc_port_clock_describe,
	.clock_begin = minrpc_port_clock_begin,
	.clock_sample = minrpc_port_clock_sample,
	.clock_end = minrpc_port_clock_end,
	.restore = minrpc_port_restore,
	.sleep_ms = port_sleep_ms,
	.pending = port_pending,
	.received = LINK_RECEIVED,
#if MINRPC_ASK
	.receive = port_receive,
#endif
	.reset = MINRPC_CAN_RESTART ? port_reset : NULL,
	.receive_overruns = port_receive_overruns,
	.stack_use = KNOWS_STACK ? port_stack_use : NULL,
#if defined(CONFIG_MINRPC_HEAP_GUARD)
	.heap_inspect = port_heap_inspect,
#endif
#if defined(CONFIG_MINRPC_CODE_LOADING)
	.code_ready = minrpc_code_memory_ready,
#endif
#if defined(CONFIG_MINRPC_COUNTERS)
	.stack_paint = KNOWS_STACK ? minrpc_stack_paint : NULL,
	.heap_use = minrpc_heap_use,
	.interrupts_mask = minrpc_interrupts_mask,
#endif
};

static uint8_t send_buffer[CONFIG_MINRPC_SEND_SIZE];
#if DT_HAS_CHOSEN(minrpc_arena)
/* The MPU has no region for this memory, so it can be read, written and executed. */
#define ARENA       ((void *)DT_REG_ADDR(DT_CHOSEN(minrpc_arena)))
#define ARENA_BYTES DT_REG_SIZE(DT_CHOSEN(minrpc_arena))
#else
/* Not cleared at boot: it is large, and the arena initializes the part that it uses. */
static uint8_t arena[ARENA_SIZE] __noinit __aligned(64);
#define ARENA       arena
#define ARENA_BYTES sizeof(arena)
#endif

static void serve(void *first, void *second, void *third)
{
	ARG_UNUSED(first);
	ARG_UNUSED(second);
	ARG_UNUSED(third);
#if defined(CONFIG_ARCH_POSIX)
	minrpc_native_host_tell_faults();
#endif
	for (;;) {
		const uint8_t *data;

		handed = minrpc_link_wait(&data);
		minrpc_server_receive(minrpc_device(), data, handed);
		minrpc_link_consume(handed);
		/* A prompt of the called function may wait for its answer without a new line. */
		minrpc_log_console_send(handed > 0U);
	}
}

int minrpc_start(struct minrpc_library library)
{
	static struct minrpc_config config = {
		.platform = &platform,
		.receive_buffer = minrpc_receive_buffer,
		.receive_size = CONFIG_MINRPC_RECEIVE_SIZE,
		.send_buffer = send_buffer,
		.send_size = sizeof(send_buffer),
		.arena = ARENA,
		.arena_size = ARENA_BYTES,
#if defined(CONFIG_MINRPC_CODE_LOADING)
		.code_page = CONFIG_MINRPC_CODE_PAGE,
#endif
#if defined(CONFIG_MINRPC_COUNTERS)
		.counters = minrpc_zephyr_counters,
#endif
	};
	struct minrpc_server *server = minrpc_device();
#if defined(CONFIG_MINRPC_MAPPED_STACK)
	k_thread_stack_t *stack;
	const size_t stack_size = MINRPC_MAPPED_STACK_SIZE;
#else
	const size_t stack_size = K_KERNEL_STACK_SIZEOF(stack);
#endif
	k_tid_t made;
	int error;

	if (config.library.modules != NULL) {
		return -EALREADY;
	}
	minrpc_log_console_init();
	minrpc_double_fault_init();
	minrpc_stack_guard_init();
	minrpc_trap_stack_init();
	minrpc_port_restore_init();
	error = minrpc_port_clock_init();
	if (error == 0) {
		error = minrpc_link_init();
	}
	if (error != 0) {
		printk("minrpc: clock or link failed: error %d\n", error);
		return error;
	}
	config.library = library;
#if !defined(CONFIG_ARCH_POSIX)
	config.read_only = __rodata_region_start;
	config.read_only_size = (uint32_t)(__rodata_region_end - __rodata_region_start);
#endif
#if defined(CONFIG_MINRPC_CODE_LOADING)
	error = minrpc_code_memory_init(&config);
	if (error != 0) {
		printk("minrpc: no memory for code: error %d\n", error);
		return error;
	}
#endif
#if defined(CONFIG_ARCH_POSIX)
	config.build_id = build_id(MINRPC_BUILD_ID_MAX, &config.build_id_size);
#else
	minrpc_give_build_id(&config);
#endif
	config.nonce_seed = minrpc_restart_nonce();
	if (!minrpc_server_init(server, &config)) {
		printk("minrpc: %s\n", server->error);
		return -EINVAL;
	}
#if defined(CONFIG_MINRPC_MAPPED_STACK)
	stack = minrpc_map_stack();
	if (stack == NULL) {
		printk("minrpc: no memory for the stack\n");
		return -ENOMEM;
	}
#endif
	made = k_thread_create(&minrpc_server_thread, stack, stack_size, serve, NULL, NULL, NULL,
			       CONFIG_MINRPC_PRIORITY, THREAD_OPTIONS, K_FOREVER);
	minrpc_limit_stack(made);
	(void)k_thread_name_set(made, "minrpc");
	printk("minrpc: %s ready, RPC on %s\n", CONFIG_BOARD_TARGET, minrpc_link_name());
	k_thread_start(made);
	return 0;
}
