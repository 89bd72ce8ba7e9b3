/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The end of the process by a function that was called: its last words.
 */
#ifndef C_LIBRARY_H_
#define C_LIBRARY_H_

#include <stdbool.h>

/* While `told` is set, exit prints its status and its callers. */
void ends_are_told(bool told);

#endif /* C_LIBRARY_H_ */
