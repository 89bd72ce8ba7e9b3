/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "log_console.h"

#include <zephyr/kernel.h>

#include <minrpc/zephyr.h>

#include "link.h"
#include "ring.h"
#include "server.h"

/* Zephyr's own console drivers also declare it, since no header does before 4.2. */
void __printk_hook_install(int (*fn)(int c));
void __stdout_hook_install(int (*fn)(int c));

RING_DEFINE(waiting, CONFIG_MINRPC_LOG_PRINTK_SIZE);

static char line[CONFIG_MINRPC_LOG_PRINTK_SIZE];
static uint32_t line_size;

/*
 * Callable from any context. If the server's thread can't make room, a byte without room is lost.
 */
static int put_char(int c)
{
	uint8_t byte = (uint8_t)c;
	unsigned int key;

	if (ring_held(&waiting) == sizeof(waiting_bytes) && minrpc_on_device_thread()) {
		minrpc_log_console_send(false);
	}
	key = irq_lock();
	(void)ring_write(&waiting, &byte, 1U);
	irq_unlock(key);
	if (byte == '\n') {
		minrpc_link_wake();
	}
	return c;
}

void minrpc_log_console_init(void)
{
	__printk_hook_install(put_char);
#if !defined(CONFIG_EXTERNAL_LIBC)
	__stdout_hook_install(put_char);
#endif
}

static bool get_char(char *c)
{
	unsigned int key = irq_lock();
	const uint8_t *next;
	bool got = ring_piece(&waiting, 0U, &next) != 0U;

	if (got) {
		*c = (char)*next;
		ring_take(&waiting, 1U);
	}
	irq_unlock(key);
	return got;
}

static void send_line(void)
{
	(void)minrpc_server_log(minrpc_device(), line, line_size);
	line_size = 0U;
}

void minrpc_log_console_send(bool rest)
{
	char c;

	while (get_char(&c)) {
		if (c == '\n' || line_size == sizeof(line)) {
			send_line();
		}
		if (c != '\n' && c != '\r') {
			line[line_size++] = c;
		}
	}
	if (rest && line_size > 0U) {
		send_line();
	}
}
