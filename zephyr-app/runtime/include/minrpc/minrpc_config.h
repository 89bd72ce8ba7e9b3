/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * What is built in. Each option is 0 or 1; define one for the whole build (-DMINRPC_CODE_LOADING=1)
 * to change its default. CMake's and Kconfig's options of the same names do that. What is off costs
 * no byte.
 */
#ifndef MINRPC_CONFIG_H_
#define MINRPC_CONFIG_H_

/* Of this library: major * 10000 + minor * 100 + patch. */
#define MINRPC_VERSION 100

/*
 * Numbered requests: on a link that loses bytes a request runs once, and its reply can be sent
 * again.
 */
#ifndef MINRPC_NUMBERED
#define MINRPC_NUMBERED 1
#endif

/* Copies to the device that are longer than the receive buffer. */
#ifndef MINRPC_STREAMING
#define MINRPC_STREAMING 1
#endif

/* The global function tvm.contrib.random.random_fill, which AutoTVM needs. */
#ifndef MINRPC_RANDOM_FILL
#define MINRPC_RANDOM_FILL 1
#endif

/*
 * The global functions minrpc.random, minrpc.fill and minrpc.checksum: arrays that need not travel.
 */
#ifndef MINRPC_FILL
#define MINRPC_FILL 0
#endif

/*
 * Texts of failures. Without them a failure is told by the source file and line that it was found
 * at.
 */
#ifndef MINRPC_ERROR_TEXTS
#define MINRPC_ERROR_TEXTS 1
#endif

/*
 * testing.count, testing.crash and testing.hang in the system library, for the tests of this
 * project.
 */
#ifndef MINRPC_TESTING
#define MINRPC_TESTING 0
#endif

/*
 * The global functions minrpc.code_alloc and minrpc.code_load: code that arrives over the link and
 * is run.
 */
#ifndef MINRPC_CODE_LOADING
#define MINRPC_CODE_LOADING 0
#endif

#endif /* MINRPC_CONFIG_H_ */
