/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Textbook leaks, some with a constant-time twin: a check must distinguish the two.
 */
#include <stdint.h>

#define BLOCK 16

int top_bit(uint8_t x)
{
	volatile int result = 1;

	if (x & 0x80U) {
		result = 2;
	}
	return result;
}

int above_100(uint8_t x)
{
	volatile int result = 1;

	if (x > 100U) {
		result = 2;
	}
	return result;
}

/* Ends at the lowest bit that is set. */
int lowest_bit(uint8_t x)
{
	int bit = 0;

	for (volatile uint8_t rest = x; bit < 8 && !(rest & 1U); rest >>= 1U) {
		bit++;
	}
	return bit;
}

int early_compare(const uint8_t *secret, const uint8_t *known, int n)
{
	for (int i = 0; i < n; i++) {
		if (((const volatile uint8_t *)secret)[i] != known[i]) {
			return i;
		}
	}
	return n;
}

int whole_compare(const uint8_t *secret, const uint8_t *known, int n)
{
	uint8_t differs = 0U;

	for (int i = 0; i < n; i++) {
		differs |= secret[i] ^ known[i];
	}
	return differs;
}

/* The secret gives the address of each load. */
uint8_t lookup(const uint8_t *secret, const uint8_t *known, int n)
{
	static const uint8_t table[256] = {7, 3, 5, 1};
	uint8_t sum = 0U;

	for (int i = 0; i < n; i++) {
		sum ^= ((const volatile uint8_t *)table)[secret[i]] ^ known[i];
	}
	return sum;
}

uint32_t quotient(uint32_t secret, uint32_t divisor)
{
	return secret / divisor;
}

/* Enough rounds that a trace has more steps than are kept; the last round depends on the secret. */
uint32_t long_way(uint8_t secret, uint32_t rounds)
{
	volatile uint32_t sum = 0U;

	for (uint32_t i = 0U; i < rounds; i++) {
		sum += i;
	}
	if (secret & 1U) {
		sum++;
	}
	return sum;
}

uint32_t long_straight_way(uint8_t secret, uint32_t rounds)
{
	volatile uint32_t sum = secret;

	for (uint32_t i = 0U; i < rounds; i++) {
		sum += i;
	}
	return sum;
}

static uint8_t doubled(uint8_t x)
{
	return (uint8_t)((x << 1) ^ ((x >> 7) * 0x1bU));
}

/* The S-box of AES (FIPS 197, 5.1.1): the inverse in GF(2^8), and an affine map of it. */
static void make_sbox(uint8_t *sbox)
{
	uint8_t p = 1U;
	uint8_t q = 1U;

	do {
		p ^= doubled(p); /* times 3 */
		q ^= (uint8_t)(q << 1);
		q ^= (uint8_t)(q << 2);
		q ^= (uint8_t)(q << 4);
		q ^= (q & 0x80U) ? 0x09U : 0U; /* divided by 3 */
		sbox[p] = q ^ (uint8_t)(q << 1 | q >> 7) ^ (uint8_t)(q << 2 | q >> 6) ^
			  (uint8_t)(q << 3 | q >> 5) ^ (uint8_t)(q << 4 | q >> 4) ^ 0x63U;
	} while (p != 1U);
	sbox[0] = 0x63U;
}

static void next_round_key(uint8_t *key, const uint8_t *sbox, uint8_t constant)
{
	key[0] ^= sbox[key[13]] ^ constant;
	key[1] ^= sbox[key[14]];
	key[2] ^= sbox[key[15]];
	key[3] ^= sbox[key[12]];
	for (int i = 4; i < BLOCK; i++) {
		key[i] ^= key[i - 4];
	}
}

static void mix(uint8_t *column)
{
	uint8_t all = column[0] ^ column[1] ^ column[2] ^ column[3];
	uint8_t first = column[0];

	for (int i = 0; i < 4; i++) {
		uint8_t next = i == 3 ? first : column[i + 1];

		column[i] ^= all ^ doubled(column[i] ^ next);
	}
}

/* AES-128 of one block, with a table that the secret indexes. */
void aes_by_table(const uint8_t *secret, const uint8_t *in, uint8_t *out)
{
	static uint8_t sbox[256];
	uint8_t key[BLOCK];
	uint8_t state[BLOCK];
	uint8_t constant = 1U;

	make_sbox(sbox);
	for (int i = 0; i < BLOCK; i++) {
		key[i] = secret[i];
		state[i] = in[i] ^ key[i];
	}
	for (int round = 1; round <= 10; round++) {
		uint8_t shifted[BLOCK];

		for (int i = 0; i < BLOCK; i++) {
			shifted[i] = sbox[state[(i * 5) % BLOCK]];
		}
		next_round_key(key, sbox, constant);
		constant = doubled(constant);
		for (int i = 0; i < BLOCK; i += 4) {
			if (round < 10) {
				mix(shifted + i);
			}
		}
		for (int i = 0; i < BLOCK; i++) {
			state[i] = shifted[i] ^ key[i];
		}
	}
	for (int i = 0; i < BLOCK; i++) {
		out[i] = state[i];
	}
}
