/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The stack that functions run on. It is at the beginning of RAM: the memory below it is
 * write-protected, so that a function that needs more stack faults. It is painted: a word without
 * paint was used.
 */
#include <minrpc/stack.h>

#include "../callers.h"
#include "machine.h"
#include "port.h"

#define PAINT      0x5ac35ac3U
/*
 * Largest distance from the stack pointer at which an instruction that stores several registers
 * writes.
 */
#define PUSH_BYTES 256U

/* picolibc's linker script begins the RAM with these sections, sorted by name. */
uint32_t minrpc_stack[MACHINE_STACK_BYTES / sizeof(uint32_t)]
	__attribute__((section(".preserve.0"), aligned(32)));

/* Symbols of the linker script: the RAM beside data and stacks. */
extern uint8_t __heap_start[], __heap_end[];

static uintptr_t bottom(void)
{
	return (uintptr_t)minrpc_stack;
}

void stack_paint(void)
{
	/* Interrupts may overwrite the paint, without damage. */
	uint32_t *end = minrpc_stack_pointer();

	for (volatile uint32_t *at = minrpc_stack; at < end; at++) {
		*at = PAINT;
	}
}

void stack_use(uint32_t *size, uint32_t *peak)
{
	const volatile uint32_t *end = minrpc_stack_pointer();
	const volatile uint32_t *at = minrpc_stack;

	while (at < end && *at == PAINT) {
		at++;
	}
	*size = MACHINE_STACK_BYTES;
	*peak = (uint32_t)(bottom() + MACHINE_STACK_BYTES - (uintptr_t)at);
}

bool stack_ran_out(uintptr_t pointer, uintptr_t address)
{
	return pointer < bottom() || (address < bottom() && pointer - address <= PUSH_BYTES);
}

static bool is_within(uintptr_t address, uintptr_t base, uintptr_t size)
{
	return address - base < size;
}

/* The memory of the image's code and of loaded code. */
static bool may_be_code(uintptr_t address)
{
	uintptr_t heap = (uintptr_t)__heap_start;

#ifdef MACHINE_ARENA_BASE
	if (is_within(address, MACHINE_ARENA_BASE, MACHINE_ARENA_SIZE)) {
		return true;
	}
#endif
	return is_within(address, MACHINE_FLASH_BASE + VECTORS_BYTES,
			 MACHINE_FLASH_SIZE - VECTORS_BYTES) ||
	       is_within(address, heap, (uintptr_t)__heap_end - heap);
}

void stack_callers(uintptr_t pointer, char *text, uint32_t room)
{
	uintptr_t from = pointer < bottom() ? bottom() : pointer;

	callers_text(from, bottom() + MACHINE_STACK_BYTES, may_be_code, text, room);
}
