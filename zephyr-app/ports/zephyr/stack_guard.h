/*
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STACK_GUARD_H_
#define STACK_GUARD_H_

#if defined(CONFIG_MINRPC_MPU_GUARD)
/* Forbids writes to addresses below the RAM from now on. */
void minrpc_stack_guard_init(void);
#else
static inline void minrpc_stack_guard_init(void)
{
}
#endif

#endif /* STACK_GUARD_H_ */
