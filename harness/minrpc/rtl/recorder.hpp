/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Records the calls of one function, cycle by cycle: the address in the pipeline and the number of
 * registers' bits that changed, in a file that the harness shares; and a waveform of the first
 * call.
 */
#ifndef RECORDER_H_
#define RECORDER_H_

#include <bit>
#include <cstdint>

#include "Vcore.h"
#include "system.hpp"
#ifdef CORE_WAVE
#include "verilated_fst_c.h"
#endif

/* The layout that minrpc/rtl/cycle_record.py has, too. */
struct Recording {
	uint32_t function; /* 0: nothing is recorded */
	uint32_t calls;    /* that have returned */
	uint32_t cycles;   /* of the last call */
	uint32_t capacity; /* of `samples`, cycles beyond are counted only */
	struct {
		uint32_t pc;
		uint32_t changed;
	} samples[];
};

class Recorder
{
      public:
	Recorder(Vcore &given_core, Recording *given, const char *path)
		: core(given_core), recording(given), wave_path(path)
	{
#ifdef CORE_WAVE
		Verilated::traceEverOn(true);
		core.trace(&wave, DEPTH);
#endif
	}

	/* After the core's clock has changed. */
	void level(uint64_t half_cycle)
	{
#ifdef CORE_WAVE
		if (wave.isOpen()) {
			wave.dump(half_cycle);
		}
#else
		(void)half_cycle;
#endif
	}

	/* After each cycle. */
	void cycle()
	{
		if (recording == nullptr || recording->function == 0) {
			return;
		}
		uint32_t pc = pc_of(core);
		if (!inside && pc == recording->function) {
			begin();
		} else if (inside && pc == back) {
			end();
		}
		if (inside) {
			sample();
		}
		/* An instruction's registers change at the end of its cycle. */
		before = pc;
	}

      private:
	void begin()
	{
		inside = true;
		back = register_of(core, 1);
		cycles = 0;
		before = recording->function;
		for (unsigned int index = 0; index < REGISTERS; index++) {
			registers[index] = register_of(core, index);
		}
#ifdef CORE_WAVE
		if (recording->calls == 0) {
			wave.open(wave_path);
		}
#endif
	}

	void end()
	{
		inside = false;
		recording->cycles = cycles;
		recording->calls++;
#ifdef CORE_WAVE
		wave.close();
#endif
	}

	void sample()
	{
		uint32_t changed = 0;

		for (unsigned int index = 1; index < REGISTERS; index++) {
			uint32_t now = register_of(core, index);

			changed += static_cast<uint32_t>(std::popcount(now ^ registers[index]));
			registers[index] = now;
		}
		if (cycles < recording->capacity) {
			recording->samples[cycles].pc = before;
			recording->samples[cycles].changed = changed;
		}
		cycles++;
	}

	static constexpr unsigned int REGISTERS = 32;
	static constexpr int DEPTH = 99;
	Vcore &core;
	Recording *recording;
	const char *wave_path;
	bool inside = false;
	uint32_t back = 0;
	uint32_t before = 0;
	uint32_t cycles = 0;
	uint32_t registers[REGISTERS] = {};
#ifdef CORE_WAVE
	VerilatedFstC wave;
#endif
};

#endif /* RECORDER_H_ */
