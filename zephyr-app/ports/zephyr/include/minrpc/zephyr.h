/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * MinRPC as a module of a Zephyr application: functions for the application.
 */
#ifndef MINRPC_ZEPHYR_H_
#define MINRPC_ZEPHYR_H_

#include <zephyr/fatal.h>
#include <zephyr/toolchain.h>

#include <minrpc/server.h>

/**
 * @brief Serve functions over the UART that the devicetree's chosen node minrpc,uart names.
 *
 * The server and the called functions run on a separate thread with CONFIG_MINRPC_PRIORITY and
 * CONFIG_MINRPC_STACK_SIZE bytes of stack. Call it once, from a thread.
 *
 * @param library The functions that can be called. Its pointers must stay valid.
 *
 * @retval 0 if the server runs
 * @retval -EALREADY if it was started before
 * @retval -ENODEV if the UART failed to start
 * @retval -ENOTSUP if the UART's driver has no interrupts
 */
int minrpc_start(struct minrpc_library library);

/** @brief The server of this image, also before it was started. */
struct minrpc_server *minrpc_device(void);

/**
 * @brief Report a fatal error on the console and to the client, then restart.
 *
 * For an application's own k_sys_fatal_error_handler(); with CONFIG_MINRPC_FATAL_HANDLER this is
 * the handler.
 */
FUNC_NORETURN void minrpc_fatal(unsigned int reason, const struct arch_esf *esf);

#endif /* MINRPC_ZEPHYR_H_ */
