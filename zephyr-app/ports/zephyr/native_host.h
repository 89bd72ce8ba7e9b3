/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Requests of a simulated board to the host. Plain C types only: the two sides have different C
 * libraries.
 */
#ifndef NATIVE_HOST_H_
#define NATIVE_HOST_H_

#include <stddef.h>
#include <stdint.h>

/** @brief The host's monotonic clock in nanoseconds. */
uint64_t minrpc_native_host_clock_ns(void);

/** @brief Start the program again with the same arguments; does not return. */
void minrpc_native_host_restart(void);

/** @brief Address of a symbol of the host's libraries; NULL if they have no such symbol. */
void *minrpc_native_host_symbol(const char *name);

/**
 * @brief Tell faults of the calling thread, and of the functions that it runs, on the console.
 */
void minrpc_native_host_tell_faults(void);

/** @brief Make whole pages of the program's memory executable. Returns 0, or a negative number. */
int minrpc_native_host_make_executable(void *memory, size_t size);

#endif /* NATIVE_HOST_H_ */
