/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "restart.h"

#include <zephyr/fatal.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/reboot.h>

#include "link.h"
#include "server.h"

#ifdef CONFIG_ARCH_POSIX
#include "native_host.h"
#endif

/* This variable is not cleared at boot, so it continues to count after a reset. */
static __noinit uint8_t boots;

uint8_t minrpc_restart_nonce(void)
{
	return ++boots + (uint8_t)k_cycle_get_32();
}

/* The restart has begun. */
static bool begun;

/* The session ends, so that no client waits for an answer. */
static FUNC_NORETURN void halt(const char *text)
{
	minrpc_device_last_message(text);
	minrpc_link_finish();
	k_fatal_halt(K_ERR_KERNEL_PANIC);
	CODE_UNREACHABLE;
}

void minrpc_halt_in_restart(void)
{
	if (begun) {
		halt("halted: it can't restart from an interrupt");
	}
}

void minrpc_restart(void)
{
	if (!MINRPC_CAN_RESTART) {
		halt("halted: it can't restart without CONFIG_REBOOT");
	}
	begun = true;
	minrpc_link_finish();
#if defined(CONFIG_ARCH_POSIX)
	minrpc_native_host_restart();
#elif defined(CONFIG_REBOOT)
	sys_reboot(SYS_REBOOT_COLD);
#endif
	CODE_UNREACHABLE;
}
