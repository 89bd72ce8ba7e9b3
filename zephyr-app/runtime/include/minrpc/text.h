/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Error texts: a printf of four conversions that cuts at the buffer's end, in a twentieth of libc's
 * size.
 */
#ifndef MINRPC_TEXT_H_
#define MINRPC_TEXT_H_

#include <stdarg.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Formats.
 *
 * @param buffer    gets the text, cut where it ends, always terminated
 * @param capacity  bytes of the buffer, at least 1
 * @param format    with %s, %u (unsigned int), %d (int), %x (unsigned int), no widths; of any other
 * conversion the letter is copied
 */
__attribute__((format(printf, 3, 4))) void minrpc_text(char *buffer, uint32_t capacity,
						       const char *format, ...);
/** The same with its arguments in a list. */
void minrpc_text_list(char *buffer, uint32_t capacity, const char *format, va_list list);

#ifdef __cplusplus
}
#endif

#endif /* MINRPC_TEXT_H_ */
