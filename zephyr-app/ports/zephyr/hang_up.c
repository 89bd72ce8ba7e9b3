/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "hang_up.h"

#ifdef CONFIG_ARCH_POSIX
#include <posix_board_if.h>
#endif

void minrpc_link_hung_up(void)
{
#ifdef CONFIG_ARCH_POSIX
	posix_exit(0);
#endif
}
