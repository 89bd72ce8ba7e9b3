/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The server's stack in pages of its own, between two pages without memory: for an architecture
 * on which Zephyr guards no stack by the MMU.
 */
#ifndef MAPPED_STACK_H_
#define MAPPED_STACK_H_

#include <zephyr/kernel.h>

#if defined(CONFIG_MINRPC_MAPPED_STACK)
#define MINRPC_MAPPED_STACK_SIZE ROUND_UP(CONFIG_MINRPC_STACK_SIZE, CONFIG_MMU_PAGE_SIZE)

/* The stack; NULL if there is no memory for it. */
k_thread_stack_t *minrpc_map_stack(void);
/* An exception below the stack of `thread`, which has not started, is handled on another stack. */
void minrpc_limit_stack(k_tid_t thread);
/* The stack pointer before the exception with the registers `esf`. */
uintptr_t minrpc_stack_pointer_before(const struct arch_esf *esf);
/* ESR_EL1 of the fatal error. */
unsigned int minrpc_syndrome(void);
#else
static inline void minrpc_limit_stack(k_tid_t thread)
{
	ARG_UNUSED(thread);
}
#endif

#endif /* MAPPED_STACK_H_ */
