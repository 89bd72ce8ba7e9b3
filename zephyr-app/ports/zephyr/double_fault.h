/*
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DOUBLE_FAULT_H_
#define DOUBLE_FAULT_H_

#if defined(CONFIG_X86_ENABLE_TSS) && defined(CONFIG_MINRPC_FATAL_HANDLER)
/* To be called before any thread's stack can overflow. */
void minrpc_double_fault_init(void);
#else
static inline void minrpc_double_fault_init(void)
{
}
#endif

#endif /* DOUBLE_FAULT_H_ */
