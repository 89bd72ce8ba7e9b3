/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Structs by value whose alignment or packing differs from the compiler's own.
 */
#include <stdint.h>

struct pair {
	_Alignas(8) uint32_t a;
	uint32_t b;
};
struct whole {
	uint32_t a, b;
} __attribute__((aligned(8)));
typedef uint32_t wide __attribute__((aligned(8)));
struct by_type {
	wide a;
	uint32_t b;
};
struct inner {
	struct pair pair;
};
struct near {
	uint64_t a;
	uint32_t b;
} __attribute__((packed, aligned(4)));
struct low {
	uint32_t z;
	uint64_t a __attribute__((packed, aligned(4)));
};
typedef struct inner inner_near __attribute__((aligned(4)));

typedef struct pair pair_far __attribute__((aligned(32)));
typedef struct pair pair_low __attribute__((aligned(4)));

struct __attribute__((packed)) stamp {
	uint64_t ms;
};
#pragma pack(4)
struct by_pragma {
	uint64_t a, b;
};
#pragma pack()
struct holder {
	struct stamp stamp;
	uint64_t plain;
};
struct mixed {
	uint16_t a;
	uint64_t b __attribute__((aligned(8)));
} __attribute__((packed));
struct own {
	uint64_t a, b;
};
struct __attribute__((packed)) nameless {
	union {
		uint64_t a;
	};
	uint64_t b;
};
struct __attribute__((packed, aligned(4))) bits {
	uint8_t a: 3;
	uint64_t b: 60;
};
struct ended {
	uint32_t a, b;
	uint64_t: 20;
};
struct apart {
	uint8_t: 7;
	uint8_t a: 7;
	uint8_t: 0;
	uint8_t b: 4;
};
#pragma pack(push, 2)
struct within {
	union {
		uint64_t a: 39;
	};
	uint16_t b;
};
#pragma pack(pop)
struct __attribute__((packed, aligned(8))) loose {
	union {
		uint64_t a;
	};
	uint64_t b;
};
struct begun {
	uint64_t: 40;
	uint32_t a: 32;
	uint64_t b __attribute__((packed));
};
struct moved {
	float a;
	uint64_t b: 47;
};
struct hidden {
	uint16_t a, b;
	uint64_t: 20;
};
struct __attribute__((packed, aligned(8))) unnamed {
	struct {
		uint64_t a;
	};
};
struct __attribute__((packed)) reserved {
	uint64_t: 1;
	uint8_t a: 7;
	uint32_t b;
};
struct __attribute__((packed)) filled {
	uint8_t a: 5;
	uint64_t: 3;
	uint32_t b;
};
struct __attribute__((packed)) unfilled {
	uint32_t a, b;
	uint8_t c: 5;
	uint64_t: 3;
};
struct separated {
	uint64_t: 0;
	uint32_t a, b;
};
struct parted {
	struct separated s;
	uint32_t a, b;
};
union __attribute__((packed)) chosen {
	uint64_t: 3;
	uint32_t a;
};
#pragma pack(push, 4)
struct number_of_4 {
	uint64_t b: 64;
};
#pragma pack(1)
struct number_of_1 {
	uint32_t b: 32;
};
#pragma pack(pop)
struct number {
	uint32_t b: 32;
};
struct __attribute__((packed)) number_in_bits {
	uint32_t b: 32;
};
struct by_4 {
	float a;
	struct number_of_4 n;
};
struct by_1 {
	uint8_t a;
	struct number_of_1 n;
};
struct __attribute__((packed)) by_none {
	uint8_t a;
	struct number n;
};
struct by_bits {
	uint8_t a;
	struct number_in_bits n;
};
union __attribute__((packed, aligned(2))) either {
	uint32_t a: 3;
	uint8_t b[3];
};

struct pair turned(struct pair s);
uint32_t stack_taken(uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t e, uint32_t f,
		     uint32_t g, uint32_t h, uint32_t i, pair_far s, uint32_t last, pair_low t);
struct stamp later(uint32_t by, struct stamp s);

uint64_t ms_of(uint32_t first, struct stamp s)
{
	return s.ms + first;
}

/* A function with a struct between numbers: it tells which bytes arrived. */
#define SUM_OF(name, type, result)                                                                 \
	result of_##name(uint32_t first, type s, uint32_t last)                                    \
	{                                                                                          \
		return first + 10 * s.a + 100 * s.b + 1000 * last;                                 \
	}

SUM_OF(pragma, struct by_pragma, uint64_t)
SUM_OF(mixed, struct mixed, uint64_t)
SUM_OF(nameless, struct nameless, uint64_t)
SUM_OF(bits, struct bits, uint64_t)
SUM_OF(ended, struct ended, uint32_t)
SUM_OF(apart, struct apart, uint32_t)
SUM_OF(within, struct within, uint64_t)
SUM_OF(loose, struct loose, uint64_t)
SUM_OF(begun, struct begun, uint64_t)
SUM_OF(own, struct own, uint64_t)
SUM_OF(pair, struct pair, uint32_t)
SUM_OF(whole, struct whole, uint32_t)
SUM_OF(type, struct by_type, uint32_t)
SUM_OF(hidden, struct hidden, uint32_t)
SUM_OF(reserved, struct reserved, uint32_t)
SUM_OF(filled, struct filled, uint32_t)
SUM_OF(unfilled, struct unfilled, uint32_t)
SUM_OF(separated, struct separated, uint32_t)
SUM_OF(parted, struct parted, uint32_t)

uint64_t of_holder(uint32_t first, struct holder s, uint32_t last)
{
	return first + 10 * s.stamp.ms + 100 * s.plain + 1000 * last;
}

uint64_t of_moved(uint32_t first, struct moved s, uint32_t last)
{
	return first + 10 * (uint32_t)s.a + 100 * s.b + 1000 * last;
}

#define SUM_OF_NUMBER(name)                                                                        \
	uint64_t of_##name(uint32_t first, struct name s, uint32_t last)                           \
	{                                                                                          \
		return first + 10 * (uint32_t)s.a + 100 * s.n.b + 1000 * last;                     \
	}

SUM_OF_NUMBER(by_4)
SUM_OF_NUMBER(by_1)
SUM_OF_NUMBER(by_none)
SUM_OF_NUMBER(by_bits)

uint64_t of_unnamed(uint32_t first, struct unnamed s, uint32_t last)
{
	return first + 10 * s.a + 300 + 1000 * last;
}

uint32_t of_chosen(uint32_t first, union chosen s, uint32_t last)
{
	return first + 10 * s.a + 300 + 1000 * last;
}

uint32_t of_either(uint32_t first, union either s, uint32_t last)
{
	return first + 10 * s.a + 300 + 1000 * last;
}

struct stamp later_by(uint32_t by, struct stamp s)
{
	return later(by, s);
}

uint64_t called(uint64_t (*f)(uint32_t first, struct stamp s), uint64_t ms)
{
	return f(1, (struct stamp){ms});
}

uint32_t of_inner(uint32_t first, struct inner s, uint32_t last)
{
	return first + 10 * s.pair.a + 100 * s.pair.b + 1000 * last;
}

uint32_t of_typedef(uint32_t first, inner_near s, uint32_t last)
{
	return first + 10 * s.pair.a + 100 * s.pair.b + 1000 * last;
}

uint32_t of_near(uint32_t first, struct near s, uint32_t last)
{
	return first + 10 * (uint32_t)s.a + 100 * s.b + 1000 * last;
}

uint32_t of_low(uint32_t first, struct low s, uint32_t last)
{
	return first + 10 * (uint32_t)s.a + 100 * s.z + 1000 * last;
}

uint32_t behind(uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t e, uint32_t f, uint32_t g,
		struct pair s, uint32_t last)
{
	return a + b + c + d + e + f + g + 10 * s.a + 100 * s.b + 1000 * last;
}

uint32_t stacked(uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t e, uint32_t f, uint32_t g,
		 uint32_t h, uint32_t i, pair_far s, uint32_t last, pair_low t)
{
	return a + b + c + d + e + f + g + h + i + 10 * s.a + 100 * s.b + 1000 * last +
	       10000 * t.a + 100000 * t.b;
}

uint32_t stacks(uint32_t a, uint32_t b)
{
	return stack_taken(0, 1, 2, 3, 4, 5, 6, 7, 8, (pair_far){a, b}, 9, (pair_low){b, a});
}

uint32_t misplaced(const uint8_t *bytes, const pair_far *far, const pair_far *const *row)
{
	return (uintptr_t)far % 32 + (uintptr_t)row[0] % 32 + (uintptr_t)row[1] % 32 + bytes[0];
}

struct pair made(uint32_t first, struct pair s)
{
	return (struct pair){s.b + first, s.a};
}

uint32_t asks(uint32_t a, uint32_t b)
{
	struct pair s = turned((struct pair){a, b});

	return s.a * 10 + s.b;
}

uint32_t calls(uint32_t (*f)(uint32_t first, struct pair s, uint32_t last))
{
	return f(1, (struct pair){2, 3}, 4);
}
