/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Of the system library, with MINRPC_TESTING: "testing.count", "testing.crash", "testing.hang".
 */
#ifndef MINRPC_TESTING_H_
#define MINRPC_TESTING_H_

#include <minrpc/function.h>

bool minrpc_testing_count(struct minrpc_call *call);
bool minrpc_testing_crash(struct minrpc_call *call);
bool minrpc_testing_hang(struct minrpc_call *call);

#endif /* MINRPC_TESTING_H_ */
