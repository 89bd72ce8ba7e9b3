/*
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef STACK_GUARD_H_
#define STACK_GUARD_H_

#if defined(CONFIG_MINRPC_MPU_GUARD)
/* From now on addresses below the RAM can't be written. */
void minrpc_stack_guard_init(void);
#else
static inline void minrpc_stack_guard_init(void)
{
}
#endif

#endif /* STACK_GUARD_H_ */
