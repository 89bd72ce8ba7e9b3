/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Restarts the device.
 */
#ifndef RESTART_H_
#define RESTART_H_

#include <stdint.h>

#include <zephyr/sys/util_macro.h>
#include <zephyr/toolchain.h>

#define MINRPC_CAN_RESTART (IS_ENABLED(CONFIG_REBOOT) || IS_ENABLED(CONFIG_ARCH_POSIX))

/**
 * @brief Restart the device after sending the link's remaining bytes. Without CONFIG_REBOOT it
 * ends the session, so that no client waits for an answer, and halts.
 */
FUNC_NORETURN void minrpc_restart(void);

/**
 * @brief Halt if a fault is the restart's own, as on an LM3S6965 in an interrupt, which Zephyr's
 * code for its restart can't leave.
 */
void minrpc_halt_in_restart(void);

/** @brief A number that differs from the number of the previous boot. */
uint8_t minrpc_restart_nonce(void);

#endif /* RESTART_H_ */
