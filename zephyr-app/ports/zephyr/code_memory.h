/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Memory for loaded code, on kernels that protect memory.
 */
#ifndef CODE_MEMORY_H_
#define CODE_MEMORY_H_

#include <minrpc/server.h>

/*
 * Sets config->code if the kernel maps memory for code; else makes the arena executable if the MPU
 * forbids execution. Returns 0, or a negative errno.
 */
int minrpc_code_memory_init(struct minrpc_config *config);

/* Synchronizes the caches after a block was written. */
int minrpc_code_memory_ready(void *context, void *block, uint32_t size);

#endif /* CODE_MEMORY_H_ */
