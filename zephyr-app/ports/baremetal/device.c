/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A device without an operating system. machine.h defines the machine.
 */
#include <stdbool.h>

#include <minrpc/baremetal.h>
#include <minrpc/minrpc_config.h>

#include "../build_id.h"
#include "machine.h"
#include "port.h"

/* Lowest address of arrays: address 0 and its neighbourhood are not memory. */
#define NULL_BYTES 1024U

static int port_write(void *context, const uint8_t *data, uint32_t size)
{
	(void)context;
	link_write(data, size);
	return 0;
}

static void port_clock_describe(void *context, struct minrpc_clock *clock)
{
	(void)context;
	*clock = (struct minrpc_clock){.cycles_hz = MACHINE_CLOCK_HZ};
#ifdef MACHINE_SECOND
	clock->coarse_hz = second_hz;
	clock->round_cycles = CLOCK_ROUND;
	clock->tolerance = CLOCK_ROUND >> 10;
#endif
}

#ifdef MACHINE_SECOND

/* Read before the interval and after it, never in it. */
static uint64_t begin_ticks;
static bool begun;

static int port_clock_begin(void *context)
{
	(void)context;
	begin_ticks = second_ticks();
	begun = true;
	return 0;
}

static uint64_t coarse_ticks(void)
{
	uint64_t ticks = begun ? begin_ticks : second_ticks();

	begun = false;
	return ticks;
}

static void port_clock_end(void *context)
{
	(void)context;
}

#else
#define coarse_ticks() 0U
#endif

static void port_clock_sample(void *context, struct minrpc_clock_sample *sample)
{
	(void)context;
	sample->cycles = clock_cycles();
	sample->coarse = coarse_ticks();
}

static const char *port_restore(void *context, bool all)
{
	(void)context;
	cpu_restore(all);
	return clock_restore();
}

static void port_sleep_ms(void *context, uint32_t milliseconds)
{
	uint64_t end = clock_cycles() + (uint64_t)milliseconds * (MACHINE_CLOCK_HZ / 1000U);

	(void)context;
	while (clock_cycles() < end) {
	}
}

/* Number of the waiting bytes that the server has. */
static uint32_t handed;

static uint32_t port_pending(void *context, uint32_t from, const uint8_t **data)
{
	uint32_t size = link_peek(handed + from, data);

	(void)context;
	if (size == 0U) {
		link_make_room(handed);
	}
	return size;
}

#if MINRPC_ASK
static uint32_t port_receive(void *context, const uint8_t **data)
{
	(void)context;
	link_consume(handed);
	handed = link_wait(data);
	return handed;
}
#endif

static void port_reset(void *context)
{
	(void)context;
	cpu_reset();
}

static uint32_t port_receive_overruns(void *context)
{
	(void)context;
	return link_overruns();
}

#if MINRPC_CODE_LOADING
static int port_code_ready(void *context, void *block, uint32_t size)
{
	(void)context;
	cpu_code_ready(block, size);
	return 0;
}
#endif

static void port_stack_use(void *context, uint32_t *size, uint32_t *peak)
{
	(void)context;
	stack_use(size, peak);
}

#if MINRPC_COUNTERS
static void port_stack_paint(void *context)
{
	(void)context;
	stack_paint();
}

static void port_heap_use(void *context, uint32_t *used, uint32_t *peak, bool reset)
{
	(void)context;
	heap_use(used, peak, reset);
}

/* The server runs with interrupts on. */
static void port_interrupts_mask(void *context, bool masked)
{
	(void)context;
	if (masked) {
		(void)interrupts_off();
	} else {
		interrupts_on();
	}
}
#endif

#if MINRPC_GUARDS
static const void *port_heap_inspect(void *context, const char **where)
{
	(void)context;
	return heap_inspect(where);
}
#endif

static const struct minrpc_platform platform = {
	.write = port_write,
	.clock_describe = port_clock_describe,
	.clock_sample = port_clock_sample,
#ifdef MACHINE_SECOND
	.clock_begin = port_clock_begin,
	.clock_end = port_clock_end,
#endif
	.restore = port_restore,
	.sleep_ms = port_sleep_ms,
	.pending = port_pending,
	.received = LINK_RECEIVED,
#if MINRPC_ASK
	.receive = port_receive,
#endif
	.reset = port_reset,
	.receive_overruns = port_receive_overruns,
#if MINRPC_GUARDS
	.heap_inspect = port_heap_inspect,
#endif
#if MINRPC_CODE_LOADING
	.code_ready = port_code_ready,
#endif
	.stack_use = port_stack_use,
#if MINRPC_COUNTERS
	.stack_paint = port_stack_paint,
	.heap_use = port_heap_use,
	.interrupts_mask = port_interrupts_mask,
#endif
};

/*
 * A count of restarts, in memory that a reset does not change: successive starts have different
 * nonces.
 */
static uint8_t restarts __attribute__((section(".preserve")));

static uint8_t send_buffer[64];

/* Symbols of the linker script: the RAM beside data and stack. */
extern uint8_t __heap_start[], __heap_end[];

static struct minrpc_config config = {
	.platform = &platform,
	.receive_buffer = receive_buffer,
	.receive_size = MACHINE_PACKET_BYTES,
	.send_buffer = send_buffer,
	.send_size = sizeof(send_buffer),
	.read_only = (const void *)(uintptr_t)(MACHINE_FLASH_BASE + NULL_BYTES),
	.read_only_size = MACHINE_FLASH_SIZE - NULL_BYTES,
#if MINRPC_CODE_LOADING
	.code_page = MACHINE_CODE_PAGE,
#endif
#if MINRPC_COUNTERS
	.counters = processor_counters,
#endif
};

/*
 * Memory for arrays. It is not zeroed, since that would take most of the time from reset to the
 * first answer.
 */
static void give_arena(void)
{
#ifdef MACHINE_ARENA_BASE
	config.arena = (void *)(uintptr_t)MACHINE_ARENA_BASE;
	config.arena_size = MACHINE_ARENA_SIZE;
#if MINRPC_LAYOUT
	heap_init(&config);
#endif
#else
	config.arena = __heap_start;
	config.arena_size = (uint32_t)(__heap_end - __heap_start);
#endif
}

void minrpc_baremetal_main(struct minrpc_library library)
{
	struct minrpc_server *server = minrpc_device();

	stack_paint();
	give_arena();
	minrpc_give_build_id(&config);
	config.library = library;
	config.nonce_seed = ++restarts;
	link_init();
	clock_init();
#ifdef MACHINE_SECOND
	second_init();
#endif
	cpu_note_modes();
	console_write("minrpc: " MACHINE_TITLE " ready\n");
	if (!minrpc_server_init(server, &config)) {
		console_write(server->error);
		for (;;) {
		}
	}
	for (;;) {
		const uint8_t *data;

		handed = link_wait(&data);
		minrpc_server_receive(server, data, handed);
		link_consume(handed);
		console_flush();
	}
}
