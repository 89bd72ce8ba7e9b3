/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Restarts the device.
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

/** @brief A number that differs from the number of the previous boot. */
uint8_t minrpc_restart_nonce(void);

#endif /* RESTART_H_ */
