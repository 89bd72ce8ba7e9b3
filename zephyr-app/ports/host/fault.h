/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Faults of a process: its last words, and then its death by the same signal.
 */
#ifndef FAULT_H_
#define FAULT_H_

#include <stdbool.h>
#include <stdint.h>

/*
 * Called by the thread that runs functions. Signals that already have a handler, such as a
 * sanitizer's, keep it. is_code: true if instructions can be read from an address.
 */
void faults_are_told(bool (*is_code)(uintptr_t address));

/*
 * Puts back the modes of floating point, and the signals: their actions as faults_are_told left
 * them, none masked, no alarm.
 */
void host_restore(void);

/* Prints `text`, a line without its end, and the return addresses from the stack pointer up. */
void fault_tell(const char *text, uintptr_t pointer);

/* Prints `text` and the callers behind all other output, and aborts. */
_Noreturn void fault_abort(const char *text);

/* Does the same for a failed assertion, as the C library's function __assert_fail has it. */
_Noreturn void fault_assertion(const char *expression, const char *file, unsigned int line,
			       const char *function);

#endif /* FAULT_H_ */
