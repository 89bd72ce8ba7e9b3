/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "server.h"

#include <string.h>

#include <zephyr/kernel.h>
#include <zephyr/linker/linker-defs.h>
#include <zephyr/sys/printk.h>

#include <minrpc/zephyr.h>

#include "../callers.h"

static struct minrpc_server server;

struct k_thread minrpc_server_thread;

#if defined(CONFIG_ERRNO) && !defined(CONFIG_ERRNO_IN_TLS) && !defined(CONFIG_LIBC_ERRNO) &&       \
	!defined(CONFIG_USERSPACE)
/* A symbol for the thread's errno, by which check="memory" knows that functions may use it. */
static void __used name_errno(void)
{
	__asm__ volatile(".globl errno_of_calls\n\t"
			 ".type errno_of_calls, %%object\n\t"
			 ".size errno_of_calls, %c1\n\t"
			 ".set errno_of_calls, minrpc_server_thread + %c0"
			 :
			 : "i"(offsetof(struct k_thread, errno_var)), "i"(sizeof(int)));
}
#endif
uint8_t minrpc_receive_buffer[CONFIG_MINRPC_RECEIVE_SIZE] __aligned(8);

struct minrpc_server *minrpc_device(void)
{
	return &server;
}

void minrpc_device_last_words(const char *text, uint32_t size)
{
	minrpc_server_last_words(&server, text, size);
}

void minrpc_device_last_message(const char *text)
{
	printk("%s\n", text);
	minrpc_device_last_words(text, strlen(text));
	minrpc_server_last_message(&server);
}

bool minrpc_on_device_thread(void)
{
	return !k_is_in_isr() && k_current_get() == &minrpc_server_thread;
}

#if defined(CONFIG_THREAD_STACK_INFO) && !defined(CONFIG_ARCH_POSIX)
static bool is_within(uintptr_t address, const void *begin, uintptr_t size)
{
	return address - (uintptr_t)begin < size;
}

static bool may_be_code(uintptr_t address)
{
	bool is_loaded = false;
#if MINRPC_CODE_LOADING
	const struct minrpc_config *config = server.config;

	is_loaded = config != NULL && (is_within(address, config->code, config->code_size) ||
				       is_within(address, config->arena, config->arena_size));
#endif
	return is_loaded || is_within(address, __text_region_start,
				      (uintptr_t)(__text_region_end - __text_region_start));
}

void minrpc_device_callers(uintptr_t pointer)
{
	uintptr_t bottom = k_current_get()->stack_info.start;
	/* No further request is read. */
	char *text = (char *)minrpc_receive_buffer;
	uint32_t room = MIN(sizeof(minrpc_receive_buffer), MINRPC_LOG_MAX);

	callers_text(MAX(pointer, bottom), bottom + k_current_get()->stack_info.size, may_be_code,
		     text, room);
	printk("%s\n", text);
	minrpc_device_last_words(text, strlen(text));
}
#else
void minrpc_device_callers(uintptr_t pointer)
{
	ARG_UNUSED(pointer);
}
#endif
