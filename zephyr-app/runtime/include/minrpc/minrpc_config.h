/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * What is built in. Each option is 0 or 1; define one for the whole build (-DMINRPC_CODE_LOADING=1)
 * to change its default. CMake's and Kconfig's options of the same names do that. What is off costs
 * no byte.
 */
#ifndef MINRPC_CONFIG_H_
#define MINRPC_CONFIG_H_

/** Of this library: major * 10000 + minor * 100 + patch. */
#define MINRPC_VERSION 100

/**
 * Numbered requests: on a link that loses bytes a request runs once, and its reply can be sent
 * again.
 */
#ifndef MINRPC_NUMBERED
#define MINRPC_NUMBERED 1
#endif

/** Copies to the device that are longer than the receive buffer. */
#ifndef MINRPC_STREAMING
#define MINRPC_STREAMING 1
#endif

/** The global function tvm.contrib.random.random_fill, which AutoTVM needs. */
#ifndef MINRPC_RANDOM_FILL
#define MINRPC_RANDOM_FILL 1
#endif

/**
 * The global functions minrpc.threefry, minrpc.fill and minrpc.checksum: arrays that need not
 * travel.
 */
#ifndef MINRPC_FILL
#define MINRPC_FILL 0
#endif

/**
 * Texts of failures. Without them a failure is told by the source file and line that it was found
 * at.
 */
#ifndef MINRPC_ERROR_TEXTS
#define MINRPC_ERROR_TEXTS 1
#endif

/**
 * Guards round arrays and workspace: the call that wrote beside one fails, and says which. Looking
 * costs about 30 instructions an array after each call, outside of what is timed.
 */
#ifndef MINRPC_GUARDS
#define MINRPC_GUARDS 1
#endif

/** The global function minrpc.device_info: options, memory, clocks, what went wrong on the link. */
#ifndef MINRPC_DEVICE_INFO
#define MINRPC_DEVICE_INFO 1
#endif

/**
 * The global function minrpc.time_evaluator: times in cycles, with the number of calls and batches.
 */
#ifndef MINRPC_COUNTING
#define MINRPC_COUNTING 1
#endif

/** The start of a new session ends a measurement, where the port gives `pending`. */
#ifndef MINRPC_ABANDON
#define MINRPC_ABANDON 1
#endif

/**
 * minrpc_server_init looks at each field of its configuration. Off: a wrong one does damage later.
 */
#ifndef MINRPC_CONFIG_CHECKS
#define MINRPC_CONFIG_CHECKS 1
#endif

/**
 * testing.count, testing.crash and testing.hang in the system library, for the tests of this
 * project.
 */
#ifndef MINRPC_TESTING
#define MINRPC_TESTING 0
#endif

/**
 * The global functions minrpc.code_alloc and minrpc.code_load: code that arrives over the link and
 * is run.
 */
#ifndef MINRPC_CODE_LOADING
#define MINRPC_CODE_LOADING 0
#endif

/**
 * The global function minrpc.layout: where arrays and code lie, changed while the device runs.
 */
#ifndef MINRPC_LAYOUT
#define MINRPC_LAYOUT 0
#endif

/**
 * Counters beside a time, and peaks of memory: minrpc/counter.h, and the global functions
 * minrpc.counters and .memory.
 */
#ifndef MINRPC_COUNTERS
#define MINRPC_COUNTERS 0
#endif
#if MINRPC_COUNTERS && !MINRPC_COUNTING
#error "MINRPC_COUNTERS are columns of MINRPC_COUNTING's results: it needs that option"
#endif

#endif /* MINRPC_CONFIG_H_ */
