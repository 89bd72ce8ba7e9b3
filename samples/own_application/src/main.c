/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * An application with a shell, logging and work of its own.
 */
#include <stdlib.h>

#include <zephyr/kernel.h>
#include <zephyr/logging/log.h>
#include <zephyr/shell/shell.h>

#include "filter.h"
#include "rpc.h"

LOG_MODULE_REGISTER(own_application, LOG_LEVEL_INF);

static int command_clamp(const struct shell *shell, size_t count, char **words)
{
	ARG_UNUSED(count);
	shell_print(shell, "%d", filter_clamp(atoi(words[1]), -100, 100));
	return 0;
}

SHELL_CMD_ARG_REGISTER(clamp, NULL, "Clamp a number to -100 to 100", command_clamp, 2, 0);

int main(void)
{
	int error = rpc_start();

	if (error != 0) {
		LOG_ERR("RPC does not start: %d", error);
	}
	for (int seconds = 0;; seconds++) {
		LOG_INF("up %d s", seconds);
		k_sleep(K_SECONDS(1));
	}
}
