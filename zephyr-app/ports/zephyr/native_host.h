/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * What a simulated board asks of the host. Plain C types only: the two sides have different C libraries.
 */
#ifndef NATIVE_HOST_H_
#define NATIVE_HOST_H_

#include <stdint.h>

/** @brief The host's monotonic clock in nanoseconds. */
uint64_t minrpc_native_host_clock_ns(void);

/** @brief Start the program again with the same arguments; does not return. */
void minrpc_native_host_restart(void);

#endif /* NATIVE_HOST_H_ */
