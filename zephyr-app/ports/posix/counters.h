/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's counters of this process, and its use of the stack. Used if MINRPC_COUNTERS is on.
 */
#ifndef COUNTERS_H_
#define COUNTERS_H_

#include <stdbool.h>
#include <stdint.h>

#include <minrpc/counter.h>

extern const struct minrpc_counter posix_counters[];

/* Callbacks of struct minrpc_platform. */
void posix_stack_use(void *context, uint32_t *size, uint32_t *peak);
void posix_stack_paint(void *context);
void posix_interrupts_mask(void *context, bool masked);

#endif /* COUNTERS_H_ */
