/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Looks into the core, by the signals that core.h names: for reports of faults and of hangs.
 */
#ifndef PROBES_H_
#define PROBES_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "system.hpp"

constexpr uint32_t STACK_WORDS = 256;

/* The return addresses in ra and on the stack; some may be of calls that have returned. */
static inline void print_callers(Vcore &core, System &system)
{
	uint32_t pointer = register_of(core, 2) & ~3U;

	std::fprintf(stderr, "callers: 0x%x", register_of(core, 1));
	for (uint32_t at = 0; at < STACK_WORDS; at++) {
		uint32_t word = system.peek(pointer + 4 * at);

		if (system.may_be_code(word)) {
			std::fprintf(stderr, " 0x%x", word);
		}
	}
	std::fprintf(stderr, "\n");
}

/* Ends the program with last words as the bare-metal port writes them. */
[[noreturn]] static inline void stop(Vcore &core, System &system, const char *fault,
				     unsigned int cause, uint32_t address)
{
	std::fprintf(stderr, "fatal: %s at pc 0x%x, ra 0x%x, sp 0x%x, mcause %u, address 0x%x\n",
		     fault, pc_of(core), register_of(core, 1), register_of(core, 2), cause,
		     address);
	print_callers(core, system);
	std::exit(1);
}

/* The answer, of a bus that has no errors. */
static inline Answer must(Vcore &core, System &system, const Answer &answer, const char *fault,
			  unsigned int cause, uint32_t address)
{
	if (answer.error) {
		stop(core, system, fault, cause, address);
	}
	return answer;
}

#endif /* PROBES_H_ */
