/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Runs a Verilated core with memory and a debug probe. core.h is generated: the clock, the reset,
 * constant inputs and the bus of the core.
 */
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "Vcore.h"
#include "core.h"
#include "recorder.hpp"
#include "system.hpp"

namespace
{

constexpr int RESET_CYCLES = 4;
constexpr uint32_t RECORDING_SIZE = 16U << 20;

/* Set by the signal of a harness that asks for the place. */
volatile std::sig_atomic_t asked;

void ask(int)
{
	asked = 1;
}

Recording *recording_in(const Options &options)
{
	if (options.recording < 0) {
		return nullptr;
	}
	return static_cast<Recording *>(System::map(options.recording, RECORDING_SIZE));
}

struct Option {
	const char *name;
	void (*set)(Options &options, uint32_t value);
};

constexpr Option OPTIONS[] = {
	{"--fd", [](Options &o, uint32_t value) { o.link = static_cast<int>(value); }},
	{"--memory", [](Options &o, uint32_t value) { o.memory = static_cast<int>(value); }},
	{"--base", [](Options &o, uint32_t value) { o.base = value; }},
	{"--size", [](Options &o, uint32_t value) { o.size = value; }},
	{"--flash-size", [](Options &o, uint32_t value) { o.flash_size = value; }},
	{"--ram-size", [](Options &o, uint32_t value) { o.ram_size = value; }},
	{"--entry", [](Options &o, uint32_t value) { o.entry = value; }},
	{"--rtt", [](Options &o, uint32_t value) { o.rtt = value; }},
	{"--waits", [](Options &o, uint32_t value) { o.waits = value; }},
	{"--recording", [](Options &o, uint32_t value) { o.recording = static_cast<int>(value); }},
};

Options parse(int argc, char **argv)
{
	Options options;

	if (argc % 2 == 0) { /* The last argument is the path of a waveform. */
		options.wave = argv[--argc];
	}
	for (int at = 1; at + 1 < argc; at += 2) {
		for (const Option &option : OPTIONS) {
			if (std::strcmp(argv[at], option.name) == 0) {
				option.set(options, static_cast<uint32_t>(std::strtoul(
							    argv[at + 1], nullptr, 0)));
			}
		}
	}
	return options;
}

class Machine
{
      public:
	explicit Machine(const Options &options)
		: system(options), bus(core, system),
		  recorder(core, recording_in(options), options.wave)
	{
		tie(core);
	}

	/* Some cores only begin at the edge of their reset. */
	void reset()
	{
		core.CORE_RESET = 1;
		settle();
		core.CORE_RESET = 0;
		for (int at = 0; at < RESET_CYCLES; at++) {
			settle();
			edge();
		}
		core.CORE_RESET = 1;
		bus.reset();
	}

	[[noreturn]] void run()
	{
		for (;;) {
			reset();
			do {
				settle();
				bus.sample();
				recorder.level(2 * system.cycles);
				edge();
				recorder.level(2 * system.cycles + 1);
				recorder.cycle();
				if (asked) {
					tell_place();
				}
			} while (!system.tick());
		}
	}

      private:
	void tell_place()
	{
		asked = 0;
		print_callers(core, system);
		std::fprintf(stderr, "place: pc 0x%x\n", pc_of(core));
	}

	void settle()
	{
		bus.drive();
		core.CORE_CLOCK = 0;
		core.eval();
	}

	void edge()
	{
		core.CORE_CLOCK = 1;
		core.eval();
	}

	Vcore core;
	System system;
	Bus bus;
	Recorder recorder;
};

} // namespace

int main(int argc, char **argv)
{
	Machine machine(parse(argc, argv));

	std::signal(SIGURG, ask);

	machine.run();
}
