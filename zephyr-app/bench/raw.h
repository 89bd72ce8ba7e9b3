/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The benchmarks' baseline: a link without the protocol. Each port has the link of its own server,
 * by these names.
 */
#ifndef RAW_H_
#define RAW_H_

#include <stdint.h>

/*
 * Waits for received bytes, and returns the number that lies in one piece. link_consume frees them.
 */
uint32_t link_wait(const uint8_t **data);
void link_consume(uint32_t size);
void link_write(const uint8_t *data, uint32_t size);

/**
 * @brief Send one character, then run commands: a letter and a count, little-endian, 4 bytes.
 *
 * 'e': echo this number of bytes as they come. 's': take this number of bytes, then answer one
 * character. 'g': give this number of bytes. Other letters are not answered. Does not return.
 *
 * @param piece Bytes that are sent again and again: the best number of bytes for one write.
 * @param size Bytes of @p piece.
 */
void raw_run(const uint8_t *piece, uint32_t size);

#endif /* RAW_H_ */
