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

/*
 * %s, %u (unsigned int), %d (int), %x (unsigned int); any other conversion is copied as it stands.
 * Always terminated.
 */
__attribute__((format(printf, 3, 4))) void minrpc_text(char *buffer, uint32_t capacity,
						       const char *format, ...);
void minrpc_text_list(char *buffer, uint32_t capacity, const char *format, va_list list);

#endif /* MINRPC_TEXT_H_ */
