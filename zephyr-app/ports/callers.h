/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Callers of a faulty function: words of a stack that may be return addresses, for a crash's last
 * words.
 */
#ifndef CALLERS_H_
#define CALLERS_H_

#include <stdbool.h>
#include <stdint.h>

/**
 * Writes "callers: 0x1a2d 0x4711": the words from `pointer` up to `end` that are addresses after a
 * call instruction, the innermost first. Finished calls may have left some of them, and numbers may
 * look like such addresses: the host finds the words that fit each other.
 *
 * @param is_code  whether instructions may be read from an address
 * @param text     gets the text, terminated; without room for all words, the words in the middle
 *                 are left out
 */
void callers_text(uintptr_t pointer, uintptr_t end, bool (*is_code)(uintptr_t address), char *text,
		  uint32_t room);

#endif /* CALLERS_H_ */
