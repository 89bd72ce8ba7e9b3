/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A program that is a device, on a machine without an operating system: its functions, and the rest
 * of `main`.
 *
 *     int main(void)
 *     {
 *             minrpc_baremetal_main((struct minrpc_library){&module, 1U});
 *     }
 */
#ifndef MINRPC_BAREMETAL_H_
#define MINRPC_BAREMETAL_H_

#include <minrpc/server.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Sets up the machine, its UARTs, its clock and its faults, and serves for ever. Interrupts come
 * from the link and the clock only; arrays use the machine's remaining RAM. @param library the
 * functions that clients can call; must not change
 */
__attribute__((noreturn)) void minrpc_baremetal_main(struct minrpc_library library);

/** The server, for functions that TVM's code calls back (minrpc_tvm_bind), and for logs. */
struct minrpc_server *minrpc_device(void);

#ifdef __cplusplus
}
#endif

#endif /* MINRPC_BAREMETAL_H_ */
