/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Everything around the core: memory, a clock that counts cycles, a reset register, and a debug
 * probe that carries RPC through the rings of RTT.
 */
#ifndef SYSTEM_H_
#define SYSTEM_H_

#include <cstdint>

/* Where the core starts; the last words jump to the program. Ibex starts 128 bytes behind. */
constexpr uint32_t BOOT_BASE = 0x1000;
constexpr uint32_t BOOT_SIZE = 0x100;
constexpr uint32_t RESET_REGISTER = 0x00100000;
constexpr uint32_t CYCLES_REGISTER = 0x0200bff8;

struct Options {
	int link = -1;
	int memory = -1;
	uint32_t base = 0;
	uint32_t size = 0;
	uint32_t flash_size = 0; /* at the beginning of the memory; stores to it are errors */
	uint32_t ram_size = 0;   /* behind the flash; data only, no code */
	uint32_t entry = 0;
	uint32_t rtt = 0;   /* address of _SEGGER_RTT */
	uint32_t waits = 0; /* cycles more for a fetch, and for data in flash */
	int recording = -1; /* a file with a Recording; -1: none */
	const char *wave = nullptr;
};

struct Answer {
	uint32_t data;
	bool error;
	uint32_t waits;
};

class System
{
      public:
	explicit System(const Options &options);

	/* The aligned word at the address. */
	Answer load(uint32_t address);
	Answer fetch(uint32_t address);
	/* Writes the bytes of the aligned word whose bits are set in `bytes`. */
	Answer store(uint32_t address, uint32_t data, uint32_t bytes);
	/* False for numbers that are no address of code in flash or of loaded code. */
	bool may_be_code(uint32_t address) const;
	/* The word at the address, without effects; 0 where no memory is. */
	uint32_t peek(uint32_t address);
	/* Maps a file that the harness shares. */
	static void *map(int descriptor, uint32_t size);
	/* Once in each cycle. Returns true if the core is to be reset. */
	bool tick();

	uint64_t cycles = 0;

      private:
	bool in_memory(uint32_t address) const;
	uint32_t &word(uint32_t address);
	bool has_rings();
	void note_poll(uint32_t address);
	void receive(bool wait);
	void send();

	const Options options;
	uint8_t *memory;
	uint32_t polls = 0;
	bool reset = false;
};

#endif /* SYSTEM_H_ */
