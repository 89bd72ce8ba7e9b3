/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The console: a UART that only sends, if the machine has one.
 */
#include "machine.h"
#include "port.h"

#ifdef MACHINE_CONSOLE
static struct uart *const console = (struct uart *)(uintptr_t)MACHINE_CONSOLE;
#endif

void console_init(void)
{
#ifdef MACHINE_CONSOLE
	uart_enable(console, false);
#endif
}

void console_put(char c)
{
#ifdef MACHINE_CONSOLE
	uart_put(console, (uint8_t)c);
#else
	(void)c;
#endif
}

void console_write(const char *text)
{
	while (*text != '\0') {
		console_put(*text++);
	}
}
