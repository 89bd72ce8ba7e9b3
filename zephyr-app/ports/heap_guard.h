/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * malloc with guards over a C library's malloc. The linker replaces the C library's malloc by it
 * (--wrap), and loaded code is linked to it.
 */
#ifndef HEAP_GUARD_H_
#define HEAP_GUARD_H_

/*
 * Returns the first written place that belongs to no block; NULL: there is none. `where` is set to
 * its kind, the text after "wrote". Repairs guards and fills.
 */
const void *heap_guard_inspect(const char **where);

/* Functions of the port: one thread at a time is between the two. */
void heap_guard_lock(void);
void heap_guard_unlock(void);
/*
 * A function of the port: ends the program. `caller`: an address in the function that called free
 * or realloc, or NULL.
 */
__attribute__((noreturn)) void heap_guard_damaged(const void *block, const char *what,
						  const void *caller);

#endif /* HEAP_GUARD_H_ */
