/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The program's functions that clients can call.
 */
#ifndef FUNCTIONS_H_
#define FUNCTIONS_H_

#include <minrpc/server.h>

/* smooth(x, y, width) and adler32(x). */
extern const struct minrpc_module own_functions;

#endif /* FUNCTIONS_H_ */
