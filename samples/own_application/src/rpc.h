/*
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RPC_H_
#define RPC_H_

/* Serve this application's functions over RPC. Returns 0, or a negative errno. */
int rpc_start(void);

#endif /* RPC_H_ */
