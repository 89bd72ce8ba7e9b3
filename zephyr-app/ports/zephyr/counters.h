/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's counters, and peaks of stack and heap.
 */
#ifndef COUNTERS_H_
#define COUNTERS_H_

#include <stdbool.h>
#include <stdint.h>

#include <minrpc/counter.h>

extern const struct minrpc_counter minrpc_zephyr_counters[];

/* Callbacks of struct minrpc_platform. */
void minrpc_stack_paint(void *context);
void minrpc_heap_use(void *context, uint32_t *used, uint32_t *peak, bool reset);
void minrpc_interrupts_mask(void *context, bool masked);

#endif /* COUNTERS_H_ */
