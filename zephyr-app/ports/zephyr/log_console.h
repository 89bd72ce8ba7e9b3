/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * printk without a console: text waits in a ring until the server's thread sends it as session
 * logs.
 */
#ifndef LOG_CONSOLE_H_
#define LOG_CONSOLE_H_

#include <stdbool.h>

#include <zephyr/sys/util.h>

#ifdef CONFIG_MINRPC_LOG_PRINTK

/** @brief Take over printk's output. */
void minrpc_log_console_init(void);

/**
 * @brief Send the waiting lines. To be called from the server's thread, between requests.
 *
 * @param rest True to send a line that has not ended, too
 */
void minrpc_log_console_send(bool rest);

#else

static inline void minrpc_log_console_init(void)
{
}

static inline void minrpc_log_console_send(bool rest)
{
	ARG_UNUSED(rest);
}

#endif

#endif /* LOG_CONSOLE_H_ */
