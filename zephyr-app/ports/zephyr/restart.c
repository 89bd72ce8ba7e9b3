/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "restart.h"

#include <zephyr/kernel.h>
#include <zephyr/sys/reboot.h>

#include "link.h"

#ifdef CONFIG_ARCH_POSIX
#include <posix_board_if.h>

#include "native_host.h"
#endif

/* Not cleared at boot, so it counts on through a reset. */
static __noinit uint8_t boots;

uint8_t restart_nonce(void)
{
	return ++boots + (uint8_t)k_cycle_get_32();
}

void restart(void)
{
	link_poll_only();
#ifdef CONFIG_ARCH_POSIX
	native_host_restart();
#else
	sys_reboot(SYS_REBOOT_COLD);
#endif
	CODE_UNREACHABLE;
}

void link_hung_up(void)
{
#ifdef CONFIG_ARCH_POSIX
	posix_exit(0);
#endif
}
