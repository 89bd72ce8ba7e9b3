/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The build id of the running program, by the notes of its own headers.
 */
#ifndef HOST_BUILD_ID_H_
#define HOST_BUILD_ID_H_

#include <stdint.h>

/* The build id and its size; NULL, with `size` unchanged, without an id of at most `most` bytes. */
const void *build_id(uint8_t most, uint8_t *size);

#endif /* HOST_BUILD_ID_H_ */
