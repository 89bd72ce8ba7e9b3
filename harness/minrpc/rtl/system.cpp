/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "system.hpp"

namespace
{

/* Offsets in RTT's block: zephyr-app/ports/baremetal/link_rtt.h. */
constexpr uint32_t UP = 24;
constexpr uint32_t DOWN = 48;
constexpr uint32_t DATA = 4;
constexpr uint32_t SIZE = 8;
constexpr uint32_t WRITTEN = 12;
constexpr uint32_t READ = 16;

/* The program waits for a request if it only reads the offsets of an empty ring, so many times. */
constexpr uint32_t IDLE_POLLS = 8;
/* Cycles between two looks at the link while the program runs. */
constexpr uint64_t LOOK_CYCLES = 4096;

[[noreturn]] void fail(const char *what)
{
	std::fprintf(stderr, "%s: %s\n", what, std::strerror(errno));
	std::exit(1);
}

} // namespace

System::System(const Options &given)
	: options(given), memory(static_cast<uint8_t *>(map(given.memory, given.size)))
{
}

void *System::map(int descriptor, uint32_t size)
{
	void *mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);

	if (mapped == MAP_FAILED) {
		fail("memory");
	}
	return mapped;
}

bool System::in_memory(uint32_t address) const
{
	return address - options.base < options.size;
}

uint32_t &System::word(uint32_t address)
{
	return *reinterpret_cast<uint32_t *>(&memory[(address - options.base) & ~3U]);
}

bool System::may_be_code(uint32_t address) const
{
	uint32_t at = address - options.base;

	return in_memory(address) &&
	       (at < options.flash_size || at - options.flash_size >= options.ram_size);
}

uint32_t System::peek(uint32_t address)
{
	return in_memory(address) ? word(address) : 0;
}

Answer System::fetch(uint32_t address)
{
	if (in_memory(address)) {
		return {word(address), false, options.waits};
	}
	switch (address - BOOT_BASE) {
	case BOOT_SIZE - 8: /* lui t0, entry */
		return {((options.entry + 0x800) & 0xfffff000) | 0x2b7, false, 0};
	case BOOT_SIZE - 4: /* jalr zero, entry(t0) */
		return {options.entry << 20 | 0x28067, false, 0};
	default: /* nop */
		return {0x13, address - BOOT_BASE >= BOOT_SIZE, 0};
	}
}

Answer System::load(uint32_t address)
{
	if (in_memory(address)) {
		bool flash = address - options.base < options.flash_size;

		note_poll(address);
		return {word(address), false, flash ? options.waits : 0};
	}
	polls = 0;
	if ((address & ~4U) == CYCLES_REGISTER) {
		return {static_cast<uint32_t>(address & 4U ? cycles >> 32 : cycles), false, 0};
	}
	return {0, true, 0};
}

Answer System::store(uint32_t address, uint32_t data, uint32_t bytes)
{
	polls = 0;
	if (address == RESET_REGISTER) {
		reset = true;
		return {0, false, 0};
	}
	if (!in_memory(address) || address - options.base < options.flash_size) {
		return {0, true, 0};
	}
	uint32_t mask = 0;
	for (unsigned int byte = 0; byte < 4; byte++) {
		mask |= (bytes >> byte & 1U) * 0xffU << 8 * byte;
	}
	word(address) = (word(address) & ~mask) | (data & mask);
	if (address == options.rtt + UP + WRITTEN && has_rings()) {
		send();
	}
	return {0, false, 0};
}

bool System::tick()
{
	cycles++;
	if (polls >= IDLE_POLLS || cycles % LOOK_CYCLES == 0) {
		receive(polls >= IDLE_POLLS);
		polls = 0;
	}
	return std::exchange(reset, false);
}

bool System::has_rings()
{
	static const char id[16] = "SEGGER RTT";

	return std::memcmp(&word(options.rtt), id, sizeof(id)) == 0;
}

void System::note_poll(uint32_t address)
{
	uint32_t ring = options.rtt + DOWN;
	bool offset = address == ring + WRITTEN || address == ring + READ;

	polls = offset && word(ring + WRITTEN) == word(ring + READ) ? polls + 1 : 0;
}

/* Moves bytes from the link to the ring, as many as have room. Ends the program with the link. */
void System::receive(bool wait)
{
	struct pollfd link = {options.link, POLLIN, 0};

	if (!has_rings() || poll(&link, 1, wait ? -1 : 0) <= 0) {
		return;
	}
	uint32_t ring = options.rtt + DOWN;
	uint32_t size = word(ring + SIZE);
	uint32_t written = word(ring + WRITTEN);
	uint32_t read_to = word(ring + READ);
	uint32_t room = (read_to + size - written - 1) % size;
	uint32_t piece = std::min(room, size - written);

	if (piece == 0 || !in_memory(word(ring + DATA) + size)) {
		return;
	}
	uint8_t *at = &memory[word(ring + DATA) - options.base + written];
	ssize_t got = read(options.link, at, piece);
	if (got > 0) {
		word(ring + WRITTEN) = (written + static_cast<uint32_t>(got)) % size;
	} else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
		std::exit(0);
	}
}

/* Moves all bytes of the ring to the link. */
void System::send()
{
	uint32_t ring = options.rtt + UP;
	uint32_t size = word(ring + SIZE);
	uint32_t end = word(ring + WRITTEN);

	while (word(ring + READ) != end && end < size && in_memory(word(ring + DATA) + size)) {
		uint32_t begin = word(ring + READ);
		uint32_t piece = (begin < end ? end : size) - begin;
		ssize_t sent = write(options.link,
				     &memory[word(ring + DATA) - options.base + begin], piece);

		if (sent > 0) {
			word(ring + READ) = (begin + static_cast<uint32_t>(sent)) % size;
		} else if (errno == EAGAIN) {
			struct pollfd link = {options.link, POLLOUT, 0};

			(void)poll(&link, 1, -1);
		} else if (errno != EINTR) {
			std::exit(0);
		}
	}
}
