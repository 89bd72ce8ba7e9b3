/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The options of the runtime. Each is 0 or 1. Define an option for the whole build
 * (-DMINRPC_CODE_LOADING=1) to change its default, or set the option of the same name in CMake or
 * Kconfig. An option that is off costs no byte.
 */
#ifndef MINRPC_CONFIG_H_
#define MINRPC_CONFIG_H_

/** Version of this library: major * 10000 + minor * 100 + patch. */
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
 * The global functions minrpc.threefry, minrpc.fill and minrpc.checksum: filling and comparing
 * arrays without sending them.
 */
#ifndef MINRPC_FILL
#define MINRPC_FILL 0
#endif

/**
 * Texts of failures. Without them a failure is reported as the source file and line that found it.
 */
#ifndef MINRPC_ERROR_TEXTS
#define MINRPC_ERROR_TEXTS 1
#endif

/**
 * Guards around arrays and workspace: a call that writes beside an array fails and names it. The
 * check takes about 30 instructions for each array after each call, outside the measured time.
 */
#ifndef MINRPC_GUARDS
#define MINRPC_GUARDS 1
#endif

/** The global function minrpc.device_info: options, memory, clocks, errors on the link. */
#ifndef MINRPC_DEVICE_INFO
#define MINRPC_DEVICE_INFO 1
#endif

/**
 * The global function minrpc.time_evaluator: times in cycles, and the number of calls and batches.
 */
#ifndef MINRPC_COUNTING
#define MINRPC_COUNTING 1
#endif

/** The start of a new session ends a measurement, if the port provides `pending`. */
#ifndef MINRPC_ABANDON
#define MINRPC_ABANDON 1
#endif

/**
 * minrpc_server_init checks each field of its configuration. Unchecked, a wrong field does damage
 * later.
 */
#ifndef MINRPC_CONFIG_CHECKS
#define MINRPC_CONFIG_CHECKS 1
#endif

/** testing.count, testing.crash and others in the system library, for this project's tests. */
#ifndef MINRPC_TESTING
#define MINRPC_TESTING 0
#endif

/** The global functions minrpc.code_alloc and minrpc.code_load: code that arrives over the link. */
#ifndef MINRPC_CODE_LOADING
#define MINRPC_CODE_LOADING 0
#endif

/**
 * minrpc_ask: a running function asks the client a question and waits for the answer. The port
 * provides `receive`.
 */
#ifndef MINRPC_ASK
#define MINRPC_ASK 0
#endif

/** The global function minrpc.layout: moves arrays and code while the device runs. */
#ifndef MINRPC_LAYOUT
#define MINRPC_LAYOUT 0
#endif

/**
 * Counters beside a time, and peaks of memory: see minrpc/counter.h, and the global functions
 * minrpc.counters and minrpc.memory.
 */
#ifndef MINRPC_COUNTERS
#define MINRPC_COUNTERS 0
#endif
#if MINRPC_COUNTERS && !MINRPC_COUNTING
#error "MINRPC_COUNTERS are columns of MINRPC_COUNTING's results: it needs that option"
#endif

#endif /* MINRPC_CONFIG_H_ */
