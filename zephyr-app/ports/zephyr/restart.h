/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * How the device starts afresh, and how a simulated one ends.
 */
#ifndef RESTART_H_
#define RESTART_H_

#include <stdint.h>

#include <zephyr/toolchain.h>

/**
 * @brief Restart the device after sending the link's remaining bytes. Without CONFIG_REBOOT it
 * halts.
 */
FUNC_NORETURN void minrpc_restart(void);

/**
 * @brief To be called when the UART refuses bytes, or has no byte although it reported one. On a
 * simulated board this means that the tty was closed, and the process ends. A real UART can't
 * disappear: nothing happens.
 */
void minrpc_link_hung_up(void);

/** @brief A number that differs from that of the previous boot. */
uint8_t minrpc_restart_nonce(void);

#endif /* RESTART_H_ */
