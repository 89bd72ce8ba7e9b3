/*
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TRAP_STACK_H_
#define TRAP_STACK_H_

#if defined(CONFIG_MINRPC_TRAP_STACK)
/* To be called before any thread's stack can run out. */
void minrpc_trap_stack_init(void);
#else
static inline void minrpc_trap_stack_init(void)
{
}
#endif

#endif /* TRAP_STACK_H_ */
