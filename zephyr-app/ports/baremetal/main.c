/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A device without an operating system: an ARM MPS2 AN385, Cortex-M3, as QEMU has it.
 */
#include <string.h>

#include <minrpc/server.h>

#include "board.h"
#include "operators.h"

#define ARENA_SIZE (3U * 1024U * 1024U)
/* At least: null and what is near it is nobody's memory. */
#define VECTORS_SIZE 1024U

static struct minrpc_server server;

static int port_write(void *context, const uint8_t *data, uint32_t size)
{
	(void)context;
	link_write(data, size);
	return 0;
}

static void port_clock_describe(void *context, struct minrpc_clock *clock)
{
	(void)context;
	*clock = (struct minrpc_clock){.cycles_hz = CPU_HZ};
}

static void port_clock_sample(void *context, struct minrpc_clock_sample *sample)
{
	(void)context;
	sample->cycles = systick_cycles();
	sample->coarse = 0U;
}

static void port_sleep_ms(void *context, uint32_t milliseconds)
{
	uint64_t end = systick_cycles() + (uint64_t)milliseconds * (CPU_HZ / 1000U);

	(void)context;
	while (systick_cycles() < end) {
	}
}

void board_reset(void)
{
	__asm__ volatile("dsb" ::: "memory");
	SCB_AIRCR = AIRCR_RESET;
	for (;;) {
	}
}

static void port_reset(void *context)
{
	(void)context;
	board_reset();
}

static uint32_t port_receive_overruns(void *context)
{
	(void)context;
	return link_overruns();
}

static void port_stack_use(void *context, uint32_t *size, uint32_t *peak)
{
	(void)context;
	stack_use(size, peak);
}

static const struct minrpc_platform platform = {
	.write = port_write,
	.clock_describe = port_clock_describe,
	.clock_sample = port_clock_sample,
	.sleep_ms = port_sleep_ms,
	.reset = port_reset,
	.receive_overruns = port_receive_overruns,
	.stack_use = port_stack_use,
};

/* A count of restarts in memory that a reset leaves alone: no two in a row start with the same nonce. */
static uint8_t restarts __attribute__((section(".preserve")));

static _Alignas(8) uint8_t receive_buffer[MINRPC_MAX_PACKET];
static uint8_t send_buffer[64];
/* Not zeroed at the start: that would be most of the time from reset to the first answer. */
static _Alignas(64) uint8_t arena[ARENA_SIZE] __attribute__((section(".preserve.arena")));

/* To the console and, as a log, to whoever holds the link; then the device starts afresh. */
void fault_report(const char *text)
{
	console_write(text);
	console_write("\n");
	minrpc_server_last_words(&server, text, (uint32_t)strlen(text));
	board_reset();
}

/* The linker's: where the code and the constants lie. */
extern const char __flash[];
extern const char __flash_size[];

int main(void)
{
	static struct minrpc_config config = {
		.platform = &platform,
		.receive_buffer = receive_buffer,
		.receive_size = sizeof(receive_buffer),
		.send_buffer = send_buffer,
		.send_size = sizeof(send_buffer),
		.arena = arena,
		.arena_size = sizeof(arena),
		.read_only = __flash + VECTORS_SIZE,
	};

	stack_paint();
	config.library = minrpc_system_library();
	config.read_only_size = (uint32_t)(uintptr_t)__flash_size - VECTORS_SIZE;
	config.nonce_seed = ++restarts;
	uart_init();
	systick_init();
	minrpc_tvm_bind(&server);
	console_write("minrpc: MPS2 AN385 ready, RPC on UART1\n");
	if (!minrpc_server_init(&server, &config)) {
		console_write(server.error);
		for (;;) {
		}
	}
	for (;;) {
		const uint8_t *data;
		uint32_t size = link_wait(&data);

		minrpc_server_receive(&server, data, size);
		link_consume(size);
	}
}
