/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Puts back what a function may have changed in the processor and what the link needs.
 */
#ifndef RESTORE_H_
#define RESTORE_H_

#include <stdbool.h>

/** @brief Allow what the device's own code does: unaligned accesses, use of the FPU. */
void minrpc_port_restore_modes(void);

/** @brief Note the state that minrpc_port_restore() puts back, once at boot. */
void minrpc_port_restore_init(void);

/** @brief Let interrupts through again; see struct minrpc_platform. */
const char *minrpc_port_restore(void *context, bool all);

#endif /* RESTORE_H_ */
