/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "callers.h"

#include <string.h>

/* " 0x", the digits of an address, and the terminator. */
#define WORD_TEXT (4U + 2U * (uint32_t)sizeof(uintptr_t))

#if defined(__thumb__)

#define CALL_BYTES 4U

/* BL, and BLX with a register; bit 0 means Thumb. */
static bool follows_call(uintptr_t address)
{
	const uint16_t *behind = (const uint16_t *)(address & ~(uintptr_t)1U);

	return (address & 1U) != 0U &&
	       (((behind[-2] & 0xf800U) == 0xf000U && (behind[-1] & 0xd000U) == 0xd000U) ||
		(behind[-1] & 0xff87U) == 0x4780U);
}

#elif defined(__riscv)

#define CALL_BYTES 4U

/* jal ra, jalr ra, c.jalr, and with 32 bits c.jal. */
static bool follows_call(uintptr_t address)
{
	const uint16_t *behind = (const uint16_t *)address;

	return (address & 1U) == 0U &&
	       ((behind[-2] & 0xfffU) == 0x0efU || (behind[-2] & 0xfffU) == 0x0e7U ||
		(behind[-1] & 0xf07fU) == 0x9002U ||
		(__riscv_xlen == 32 && (behind[-1] & 0xe003U) == 0x2001U));
}

#elif defined(__i386__) || defined(__x86_64__)

#define CALL_BYTES 7U

/* FF /2: checks the second byte, `size - 1` bytes before the address. */
static bool is_indirect(const uint8_t *behind, int length)
{
	return behind[-length] == 0xffU && (behind[1 - length] & 0x38U) == 0x10U;
}

static bool follows_call(uintptr_t address)
{
	const uint8_t *behind = (const uint8_t *)address;

	return behind[-5] == 0xe8U || is_indirect(behind, 2) || is_indirect(behind, 3) ||
	       is_indirect(behind, 6) || is_indirect(behind, 7);
}

#elif defined(__aarch64__)

#define CALL_BYTES 4U

/* BL, and BLR. */
static bool follows_call(uintptr_t address)
{
	uint32_t call = ((const uint32_t *)(address & ~(uintptr_t)3U))[-1];

	return (address & 3U) == 0U &&
	       ((call & 0xfc000000U) == 0x94000000U || (call & 0xfffffc1fU) == 0xd63f0000U);
}

#else

#define CALL_BYTES 0U

static bool follows_call(uintptr_t address)
{
	(void)address;
	return false;
}

#endif

static char *put_address(char *to, uintptr_t address)
{
	uint32_t digits = 1U;

	while (digits < 2U * sizeof(address) && address >> 4U * digits != 0U) {
		digits++;
	}
	memcpy(to, " 0x", 3U);
	to += 3;
	while (digits-- != 0U) {
		*to++ = "0123456789abcdef"[address >> 4U * digits & 0xfU];
	}
	*to = '\0';
	return to;
}

struct scan {
	uintptr_t pointer;
	uintptr_t end;
	bool (*is_code)(uintptr_t address);
};

/* The next return address of the scan; 0 when there are no more. */
static uintptr_t next_caller(struct scan *scan)
{
	while (scan->pointer < scan->end) {
		uintptr_t word = *(const uintptr_t *)scan->pointer;

		scan->pointer += sizeof(word);
		if (scan->is_code(word - CALL_BYTES) && scan->is_code(word - 1U) &&
		    follows_call(word)) {
			return word;
		}
	}
	return 0U;
}

static uint32_t count_callers(struct scan scan)
{
	uint32_t count = 0U;

	while (next_caller(&scan) != 0U) {
		count++;
	}
	return count;
}

void callers_text(uintptr_t pointer, uintptr_t end, bool (*is_code)(uintptr_t address), char *text,
		  uint32_t room)
{
	static const char head[] = "callers:";
	struct scan scan = {pointer & ~(sizeof(uintptr_t) - 1U), end, is_code};
	uint32_t half = (room - (uint32_t)sizeof(head)) / WORD_TEXT / 2U;
	uint32_t count = count_callers(scan);

	memcpy(text, head, sizeof(head));
	text += sizeof(head) - 1U;
	for (uint32_t i = 0U; i < count; i++) {
		uintptr_t caller = next_caller(&scan);

		if (i < half || i + half >= count) {
			text = put_address(text, caller);
		}
	}
}
