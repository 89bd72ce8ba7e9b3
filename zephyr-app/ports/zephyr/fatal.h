/*
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FATAL_H_
#define FATAL_H_

#include <stdint.h>

#include <zephyr/fatal.h>
#include <zephyr/toolchain.h>

/* Does the same as minrpc_fatal(), for a stack pointer sp. */
FUNC_NORETURN void minrpc_fatal_at(unsigned int reason, const struct arch_esf *esf, uintptr_t sp);

#endif /* FATAL_H_ */
