/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A program that is a device: its functions, and the rest of `main`.
 *
 *     int main(int argc, char **argv)
 *     {
 *             return minrpc_posix_main(argc, argv, (struct minrpc_library){&module, 1U});
 *     }
 */
#ifndef MINRPC_POSIX_H_
#define MINRPC_POSIX_H_

#include <minrpc/server.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Serves on the link in the arguments until the other end is closed.
 *
 * @param argc, argv the arguments of main: "--link TTY", a terminal to open, or "--fd N", an open
 * descriptor; and with
 *                    "--parent PID" it is killed when that process, which must have started it,
 * ends;
 *                    with "--memory N@ADDRESS" arrays lie in the file behind descriptor N, mapped
 * there
 * @param library     the functions that clients can call; must outlive the call
 * @return the exit status of the program; the failure has been printed
 */
int minrpc_posix_main(int argc, char **argv, struct minrpc_library library);

/** The server, for functions that TVM's code calls back (minrpc_tvm_bind), and for logs. */
struct minrpc_server *minrpc_device(void);

#ifdef __cplusplus
}
#endif

#endif /* MINRPC_POSIX_H_ */
