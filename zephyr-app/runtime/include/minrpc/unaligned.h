/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numbers at any address.
 */
#ifndef MINRPC_UNALIGNED_H_
#define MINRPC_UNALIGNED_H_

#include <stdint.h>

/** Where the processor has no such loads, the compiler takes bytes, but would call memcpy. */
typedef uint32_t __attribute__((aligned(1), may_alias)) minrpc_u32;

static inline uint32_t minrpc_get_u32(const uint8_t *at)
{
	return *(const minrpc_u32 *)at;
}

static inline void minrpc_put_u32(uint8_t *at, uint32_t value)
{
	*(minrpc_u32 *)at = value;
}

#endif /* MINRPC_UNALIGNED_H_ */
