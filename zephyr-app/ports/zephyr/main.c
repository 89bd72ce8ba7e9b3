/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A device under Zephyr. The server runs on the main thread.
 */
#include <zephyr/device.h>
#include <zephyr/kernel.h>
#include <zephyr/linker/linker-defs.h>
#include <zephyr/sys/printk.h>

#include <minrpc/server.h>

#include "clock.h"
#include "device.h"
#include "link.h"
#include "log_console.h"
#include "operators.h"
#include "restart.h"

static struct minrpc_server server;

static int port_write(void *context, const uint8_t *data, uint32_t size)
{
	ARG_UNUSED(context);
	link_write(data, size);
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

static void port_reset(void *context)
{
	ARG_UNUSED(context);
	restart();
}

static uint32_t port_receive_overruns(void *context)
{
	ARG_UNUSED(context);
	return link_overruns();
}

static void port_stack_use(void *context, uint32_t *size, uint32_t *peak)
{
	size_t unused = 0U;

	ARG_UNUSED(context);
	*size = CONFIG_MAIN_STACK_SIZE;
	(void)k_thread_stack_space_get(k_current_get(), &unused);
	*peak = *size - (uint32_t)unused;
}

static const struct minrpc_platform platform = {
	.write = port_write,
	.clock_describe = clock_describe,
	.clock_begin = clock_begin,
	.clock_sample = clock_sample,
	.clock_end = clock_end,
	.sleep_ms = port_sleep_ms,
	.reset = port_reset,
	.receive_overruns = port_receive_overruns,
	.stack_use = port_stack_use,
};

static uint8_t receive_buffer[CONFIG_MINRPC_RECEIVE_SIZE] __aligned(8);
static uint8_t send_buffer[CONFIG_MINRPC_SEND_SIZE];
/* Not cleared at boot: it is large, and the arena sets up what it needs. */
static uint8_t arena[CONFIG_MINRPC_ARENA_SIZE] __noinit __aligned(64);

void device_last_words(const char *text, uint32_t size)
{
	server.writer.open = false;
	server.writer.fill = 0U;
	(void)minrpc_server_log(&server, text, size);
}

static void serve(void)
{
	for (;;) {
		const uint8_t *data;
		uint32_t size = link_wait(&data);

		minrpc_server_receive(&server, data, size);
		link_consume(size);
		log_console_send(&server);
	}
}

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
	};
	int error;

	config.library = minrpc_system_library();
#if !defined(CONFIG_ARCH_POSIX)
	config.read_only = __rodata_region_start;
	config.read_only_size = (uint32_t)(__rodata_region_end - __rodata_region_start);
#endif
	config.nonce_seed = restart_nonce();
	log_console_init();
	error = clock_init();
	if (error == 0) {
		error = link_init();
	}
	if (error != 0) {
		printk("minrpc: clock or UART failed: error %d\n", error);
		return error;
	}
	printk("minrpc: %s ready, RPC on %s\n", CONFIG_BOARD_TARGET, DEVICE_DT_GET(LINK_NODE)->name);
	minrpc_tvm_bind(&server);
	minrpc_server_init(&server, &config);
	serve();
}
