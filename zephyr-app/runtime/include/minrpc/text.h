/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Error texts: a printf with five conversions that cuts the text at the buffer's end and has a
 * twentieth of libc's size.
 */
#ifndef MINRPC_TEXT_H_
#define MINRPC_TEXT_H_

#include <stdarg.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Formats a text.
 *
 * @param buffer    gets the text, cut at its end and always terminated
 * @param capacity  bytes of the buffer, at least 1
 * @param format    %s, %u (unsigned int), %d (int), %x (unsigned int), %lx (unsigned long), no
 * widths. The letter of any other conversion is copied.
 */
__attribute__((format(printf, 3, 4))) void minrpc_text(char *buffer, uint32_t capacity,
						       const char *format, ...);
/** The same with an argument list. */
void minrpc_text_list(char *buffer, uint32_t capacity, const char *format, va_list list);

#ifdef __cplusplus
}
#endif

#endif /* MINRPC_TEXT_H_ */
