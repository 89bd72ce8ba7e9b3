/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Questions of a running function to the client: fakes and callbacks that Python answers.
 */
#ifndef MINRPC_ASK_H_
#define MINRPC_ASK_H_

#include <minrpc/server.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The smallest room for an answer, in bytes. */
#define MINRPC_ANSWER_MIN 128U

#if MINRPC_ASK
/**
 * Sends a question and waits for the answer. Must be called by a function that the server runs, on
 * its stack.
 *
 * It does not return when the client ends the function, or has gone: the function's call then
 * fails, as by longjmp.
 *
 * @param question     `size` bytes of any content, unchanged until the answer
 * @param answer_size  set to the bytes of the answer, at least 1
 * @return the answer, valid until the next question; NULL when the server runs no function, or the
 *         function already waits for an answer
 */
const void *minrpc_ask(struct minrpc_server *server, const void *question, uint32_t size,
		       uint32_t *answer_size);

/** Calls run(context). Returns false when minrpc_ask has ended it, as longjmp does. */
bool minrpc_escapable(struct minrpc_server *server, void (*run)(void *context), void *context);
#endif

#ifdef __cplusplus
}
#endif

#endif /* MINRPC_ASK_H_ */
