/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * PRESENT's S-box of a secret in two shares, by a table that is masked anew for each call.
 */
#include <stdint.h>

static const uint8_t sbox[16] = {12, 5, 6, 11, 9, 0, 10, 13, 3, 14, 15, 8, 4, 7, 1, 2};

static void mask_table(uint8_t *table, uint8_t in, uint8_t out)
{
	for (uint32_t x = 0U; x < 16U; x++) {
		table[x ^ in] = sbox[x] ^ out;
	}
}

void masked(const uint8_t *shares, const uint8_t *mask, uint8_t *table, uint8_t *out)
{
	mask_table(table, shares[1] & 15U, mask[0] & 15U);
	*out = table[shares[0] & 15U];
}

/* The same in one function: GCC 12 loads the second share into the register of the first. */
void inlined(const uint8_t *shares, const uint8_t *mask, uint8_t *table, uint8_t *out)
{
	for (uint32_t x = 0U; x < 16U; x++) {
		table[x ^ (shares[1] & 15U)] = sbox[x] ^ mask[0];
	}
	*out = table[shares[0] & 15U];
}

/* The same with a flaw: one share overwrites the other in a register. */
void overwritten(const uint8_t *shares, const uint8_t *mask, uint8_t *table, uint8_t *out)
{
	masked(shares, mask, table, out);
	__asm__ volatile("lbu t0, 0(%0)\n\tlbu t0, 1(%0)" ::"r"(shares) : "t0", "memory");
}

void plain(const uint8_t *secret, uint8_t *out)
{
	*out = sbox[secret[0] & 15U];
}

uint32_t early(const uint8_t *secret)
{
	uint32_t rounds = 0U;

	for (uint32_t left = secret[0]; left != 0U; left >>= 1) {
		rounds++;
	}
	return rounds;
}
