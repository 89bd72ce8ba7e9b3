/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The link through the debugger, by Arm's semihosting: the console ":tt" of its host carries RPC. A
 * read halts the processor until bytes are there, so none arrive while a function runs.
 */
#include "machine.h"
#include "port.h"

/* Operations, and modes of SYS_OPEN, of Arm's "Semihosting for AArch32 and AArch64". */
#define SYS_OPEN   0x01U
#define SYS_WRITE  0x05U
#define SYS_READ   0x06U
#define MODE_READ  1U /* "rb" */
#define MODE_WRITE 5U /* "wb" */

/* Rounds of a loop between two reads of a host that has no bytes. */
#define PAUSE_ROUNDS 50000U

static uintptr_t input;
static uintptr_t output;
static uint8_t received[MACHINE_RING_BYTES];
struct link_count link_count;

static uintptr_t open_console(uintptr_t mode)
{
	static const char name[] = ":tt";
	const uintptr_t block[] = {(uintptr_t)name, mode, sizeof(name) - 1U};

	return cpu_semihosting(SYS_OPEN, block);
}

/* Returns the number of bytes that were transferred. */
static uint32_t transfer(uintptr_t operation, uintptr_t file, const uint8_t *data, uint32_t size)
{
	const uintptr_t block[] = {file, (uintptr_t)data, size};
	uintptr_t left = cpu_semihosting(operation, block);

	return left < size ? size - (uint32_t)left : 0U;
}

void link_init(void)
{
	console_init();
	input = open_console(MODE_READ);
	output = open_console(MODE_WRITE);
}

/* Bytes that the host refuses are lost, as on a UART that is not connected. */
void link_write(const uint8_t *data, uint32_t size)
{
	uint32_t sent;

	do {
		sent = transfer(SYS_WRITE, output, data, size);
		data += sent;
		size -= sent;
	} while (size != 0U && sent != 0U);
}

/* The server has all bytes of the last read. */
uint32_t link_peek(uint32_t from, const uint8_t **data)
{
	(void)from;
	(void)data;
	return 0U;
}

/*
 * While QEMU serves a read, its monitor waits. OpenOCD without a client returns from a read at
 * once.
 */
static void pause_reading(void)
{
	for (volatile uint32_t round = 0U; round < PAUSE_ROUNDS; round++) {
	}
}

uint32_t link_wait(const uint8_t **data)
{
	uint32_t size;

	while ((size = transfer(SYS_READ, input, received, sizeof(received))) == 0U) {
		pause_reading();
	}
	link_count.in += size;
	*data = received;
	return size;
}

void link_make_room(uint32_t held)
{
	(void)held;
}

void link_consume(uint32_t size)
{
	(void)size;
}

uint32_t link_overruns(void)
{
	return link_count.lost;
}
