/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Functions of the system library with MINRPC_TESTING: "testing.count", ".crash", ".hang",
 * ".overrun", ".workspace".
 */
#ifndef MINRPC_TESTING_H_
#define MINRPC_TESTING_H_

#include <minrpc/function.h>

bool minrpc_testing_count(struct minrpc_call *call);
bool minrpc_testing_crash(struct minrpc_call *call);
bool minrpc_testing_hang(struct minrpc_call *call);
bool minrpc_testing_overrun(struct minrpc_call *call);
bool minrpc_testing_workspace(struct minrpc_call *call);

#endif /* MINRPC_TESTING_H_ */
