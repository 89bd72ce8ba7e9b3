/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Kernels whose cycles are compared between a timing table and a core's RTL. Each does `n` rounds
 * and returns a number that depends on all of them. None calls a function of a library, whose code
 * would lie elsewhere in another firmware.
 */
#include <stdint.h>

#define SIZE 64U

static uint32_t words[SIZE];
static uint8_t bytes[4U * SIZE];

static void fill(uint32_t seed)
{
	for (uint32_t at = 0U; at < SIZE; at++) {
		seed = seed * 1664525U + 1013904223U;
		words[at] = seed;
		bytes[at] = (uint8_t)(seed >> 24);
	}
}

uint32_t crc_by_bits(uint32_t n)
{
	uint32_t crc = ~0U;

	for (uint32_t round = 0U; round < n; round++) {
		crc ^= round & 0xffU;
		for (int bit = 0; bit < 8; bit++) {
			crc = (crc & 1U) != 0U ? crc >> 1 ^ 0xedb88320U : crc >> 1;
		}
	}
	return crc;
}

uint32_t crc_by_table(uint32_t n)
{
	static const uint32_t table[16] = {
		0x00000000U, 0x1db71064U, 0x3b6e20c8U, 0x26d930acU, 0x76dc4190U, 0x6b6b51f4U,
		0x4db26158U, 0x5005713cU, 0xedb88320U, 0xf00f9344U, 0xd6d6a3e8U, 0xcb61b38cU,
		0x9b64c2b0U, 0x86d3d2d4U, 0xa00ae278U, 0xbdbdf21cU,
	};
	uint32_t crc = ~0U;

	for (uint32_t round = 0U; round < n; round++) {
		crc = crc >> 4 ^ table[(crc ^ round) & 15U];
		crc = crc >> 4 ^ table[(crc ^ round >> 4) & 15U];
	}
	return crc;
}

uint32_t matrix_product(uint32_t n)
{
	uint32_t sum = 0U;

	fill(1U);
	for (uint32_t round = 0U; round < n; round++) {
		for (uint32_t row = 0U; row < 4U; row++) {
			for (uint32_t column = 0U; column < 4U; column++) {
				for (uint32_t k = 0U; k < 4U; k++) {
					sum += words[row * 4U + k] * words[16U + k * 4U + column];
				}
			}
		}
	}
	return sum;
}

uint32_t fir(uint32_t n)
{
	int32_t sum = 0;

	fill(2U);
	for (uint32_t round = 0U; round < n; round++) {
		for (uint32_t tap = 0U; tap < 16U; tap++) {
			sum += (int8_t)bytes[tap] * (int8_t)bytes[(tap + round) % 32U];
		}
	}
	return (uint32_t)sum;
}

uint32_t insertion_sort(uint32_t n)
{
	uint32_t sum = 0U;

	for (uint32_t round = 0U; round < n; round++) {
		fill(round);
		for (uint32_t at = 1U; at < 24U; at++) {
			uint32_t value = words[at];
			uint32_t to = at;

			for (; to > 0U && words[to - 1U] > value; to--) {
				words[to] = words[to - 1U];
			}
			words[to] = value;
		}
		sum += words[12];
	}
	return sum;
}

uint32_t binary_search(uint32_t n)
{
	uint32_t found = 0U;

	for (uint32_t at = 0U; at < SIZE; at++) {
		words[at] = at * at;
	}
	for (uint32_t round = 0U; round < n; round++) {
		uint32_t low = 0U;
		uint32_t high = SIZE;

		while (low < high) {
			uint32_t middle = (low + high) / 2U;

			if (words[middle] < round * 7U) {
				low = middle + 1U;
			} else {
				high = middle;
			}
		}
		found += low;
	}
	return found;
}

__attribute__((noinline)) static uint32_t fibonacci(uint32_t n)
{
	return n < 2U ? n : fibonacci(n - 1U) + fibonacci(n - 2U);
}

uint32_t recursion(uint32_t n)
{
	return fibonacci(n % 8U + 4U) + n;
}

static uint32_t twice(uint32_t x)
{
	return 2U * x;
}

static uint32_t next(uint32_t x)
{
	return x + 1U;
}

static uint32_t mixed(uint32_t x)
{
	return x ^ x >> 3;
}

uint32_t calls_by_pointer(uint32_t n)
{
	static uint32_t (*const volatile functions[])(uint32_t) = {twice, next, mixed};
	uint32_t value = 1U;

	for (uint32_t round = 0U; round < n; round++) {
		value = functions[round % 3U](value);
	}
	return value;
}

uint32_t switches(uint32_t n)
{
	uint32_t value = 0U;

	for (uint32_t round = 0U; round < n; round++) {
		switch (round % 9U) {
		case 0U:
			value += 3U;
			break;
		case 1U:
			value ^= round;
			break;
		case 2U:
			value <<= 1;
			break;
		case 3U:
			value -= 5U;
			break;
		case 4U:
			value |= 1U;
			break;
		case 5U:
			value *= 3U;
			break;
		case 6U:
			value = ~value;
			break;
		default:
			value++;
			break;
		}
	}
	return value;
}

uint32_t division(uint32_t n)
{
	uint32_t sum = 0U;

	for (uint32_t round = 1U; round <= n; round++) {
		sum += 0xfedcba98U / round + 1000003U % round;
	}
	return sum;
}

uint32_t signed_division(uint32_t n)
{
	int32_t sum = 0;

	for (int32_t round = 1; round <= (int32_t)n; round++) {
		sum += -1000000007 / round + 77777 % -round;
	}
	return (uint32_t)sum;
}

uint32_t long_products(uint32_t n)
{
	uint64_t product = 0x123456789abcdefU;

	for (uint32_t round = 0U; round < n; round++) {
		product = (uint32_t)product * (uint64_t)0x9e3779b9U + (product >> 32) + round;
	}
	return (uint32_t)(product ^ product >> 32);
}

uint32_t signed_long_products(uint32_t n)
{
	int64_t sum = 0;

	for (int32_t round = 0; round < (int32_t)n; round++) {
		sum += (int64_t)(round * 77777 - 1000000) * (round - 999);
	}
	return (uint32_t)(sum ^ sum >> 32);
}

struct __attribute__((packed)) packed {
	uint8_t first;
	uint32_t word;
	uint16_t half;
};

uint32_t unaligned_loads(uint32_t n)
{
	const volatile struct packed *items = (const volatile struct packed *)bytes;
	uint32_t sum = 0U;

	fill(3U);
	for (uint32_t round = 0U; round < n; round++) {
		sum += items[round % 8U].word ^ items[round % 5U].half;
	}
	return sum;
}

uint32_t unaligned_stores(uint32_t n)
{
	volatile struct packed *items = (volatile struct packed *)bytes;

	fill(4U);
	for (uint32_t round = 0U; round < n; round++) {
		items[round % 8U].word = round;
		items[round % 5U].half = (uint16_t)round;
	}
	return items[3].word + items[4].half;
}

uint32_t copy_of_bytes(uint32_t n)
{
	fill(5U);
	for (uint32_t round = 0U; round < n; round++) {
		for (uint32_t at = 0U; at < 32U; at++) {
			bytes[32U + at] = bytes[at] + 1U;
		}
	}
	return bytes[40];
}

uint32_t copy_of_words(uint32_t n)
{
	fill(6U);
	for (uint32_t round = 0U; round < n; round++) {
		for (uint32_t at = 0U; at < 32U; at++) {
			words[32U + at] = words[at] ^ round;
		}
	}
	return words[40];
}

uint32_t count_of_bits(uint32_t n)
{
	uint32_t sum = 0U;

	for (uint32_t round = 0U; round < n; round++) {
		for (uint32_t left = round * 2654435761U; left != 0U; left &= left - 1U) {
			sum++;
		}
	}
	return sum;
}

uint32_t xorshift(uint32_t n)
{
	uint32_t state = 2463534242U;

	while (n-- != 0U) {
		state ^= state << 13;
		state ^= state >> 17;
		state ^= state << 5;
	}
	return state;
}

uint32_t sieve(uint32_t n)
{
	uint32_t primes = 0U;

	for (uint32_t round = 0U; round < n; round++) {
		for (uint32_t at = 0U; at < SIZE; at++) {
			bytes[at] = 1U;
		}
		for (uint32_t at = 2U; at < SIZE; at++) {
			primes += bytes[at];
			for (uint32_t multiple = 2U * at; multiple < SIZE; multiple += at) {
				bytes[multiple] = 0U;
			}
		}
	}
	return primes;
}

uint32_t histogram(uint32_t n)
{
	fill(7U);
	for (uint32_t round = 0U; round < n; round++) {
		words[bytes[round % 32U] % 16U]++;
	}
	return words[3] + words[11];
}

uint32_t collatz(uint32_t n)
{
	uint32_t steps = 0U;

	for (uint32_t start = 1U; start <= n; start++) {
		for (uint32_t value = start; value != 1U; steps++) {
			value = (value & 1U) != 0U ? 3U * value + 1U : value / 2U;
		}
	}
	return steps;
}

uint32_t common_divisor(uint32_t n)
{
	uint32_t sum = 0U;

	for (uint32_t round = 1U; round <= n; round++) {
		uint32_t a = 360360U;
		uint32_t b = round * 12U;

		while (b != 0U) {
			uint32_t rest = a % b;

			a = b;
			b = rest;
		}
		sum += a;
	}
	return sum;
}

uint32_t square_root(uint32_t n)
{
	uint32_t sum = 0U;

	for (uint32_t round = 0U; round < n; round++) {
		uint32_t rest = round * 65537U;
		uint32_t root = 0U;

		for (uint32_t bit = 1U << 30; bit != 0U; bit >>= 2) {
			if (rest >= root + bit) {
				rest -= root + bit;
				root = (root >> 1) + bit;
			} else {
				root >>= 1;
			}
		}
		sum += root;
	}
	return sum;
}

uint32_t saturation(uint32_t n)
{
	int32_t sum = 0;

	for (uint32_t round = 0U; round < n; round++) {
		sum += (int32_t)(round * 2654435761U) >> 8;
		sum = sum > 1000000 ? 1000000 : sum;
		sum = sum < -1000000 ? -1000000 : sum;
	}
	return (uint32_t)sum;
}

uint32_t transposition(uint32_t n)
{
	fill(8U);
	for (uint32_t round = 0U; round < n; round++) {
		for (uint32_t row = 0U; row < 8U; row++) {
			for (uint32_t column = row + 1U; column < 8U; column++) {
				uint32_t kept = words[row * 8U + column];

				words[row * 8U + column] = words[column * 8U + row];
				words[column * 8U + row] = kept;
			}
		}
	}
	return words[9] ^ words[17];
}

uint32_t list(uint32_t n)
{
	uint32_t at = 0U;

	for (uint32_t from = 0U; from < SIZE; from++) {
		words[from] = (from * 29U + 17U) % SIZE;
	}
	for (uint32_t round = 0U; round < n; round++) {
		at = words[at];
	}
	return at;
}

uint32_t hash(uint32_t n)
{
	uint32_t value = 2166136261U;

	fill(9U);
	for (uint32_t round = 0U; round < n; round++) {
		value = (value ^ bytes[round % SIZE]) * 16777619U;
	}
	return value;
}

uint32_t rotations(uint32_t n)
{
	uint32_t a = 1U;
	uint32_t b = 2U;

	for (uint32_t round = 0U; round < n; round++) {
		a += b;
		b = (b << 7 | b >> 25) ^ a;
		a = a << 19 | a >> 13;
	}
	return a ^ b;
}

uint32_t reversed_bits(uint32_t n)
{
	uint32_t sum = 0U;

	for (uint32_t round = 0U; round < n; round++) {
		uint32_t x = round;

		x = (x & 0x55555555U) << 1 | (x >> 1 & 0x55555555U);
		x = (x & 0x33333333U) << 2 | (x >> 2 & 0x33333333U);
		x = (x & 0x0f0f0f0fU) << 4 | (x >> 4 & 0x0f0f0f0fU);
		sum += x;
	}
	return sum;
}

uint32_t length_of_text(uint32_t n)
{
	static const char text[] = "a text that is neither short nor long";
	uint32_t sum = 0U;

	for (uint32_t round = 0U; round < n; round++) {
		const volatile char *end = &text[round % 8U];

		while (*end != '\0') {
			end++;
		}
		sum += (uint32_t)(end - text);
	}
	return sum;
}
