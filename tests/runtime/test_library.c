/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Tables of functions, ours and registries as TVM's generators write them, and error texts.
 */
#include <minrpc/function.h>
#include <minrpc/text.h>

#include "check.h"

#define FUNCTION(name)                                                                             \
	static int name(TVMValue *args, int *codes, int count, TVMValue *value, int *code,         \
			void *resource)                                                            \
	{                                                                                          \
		(void)args;                                                                        \
		(void)codes;                                                                       \
		(void)count;                                                                       \
		(void)value;                                                                       \
		(void)code;                                                                        \
		(void)resource;                                                                    \
		return 0;                                                                          \
	}

FUNCTION(one)
FUNCTION(two)
FUNCTION(three)

static const TVMBackendPackedCFunc functions[] = {one, two};
static const TVMBackendPackedCFunc more[] = {three};

/* Up to v0.8 the count is one byte, from v0.9 on two bytes. */
static const TVMFuncRegistry short_count = {"\002one\0two\0", functions};
static const TVMFuncRegistry long_count = {"\002\000one\0two\0", functions};
static const TVMFuncRegistry third = {"\001_three\0", more};
static const TVMFuncRegistry empty_short = {"\000", NULL};
static const TVMFuncRegistry empty_long = {"\000\000", NULL};

static TVMBackendPackedCFunc packed_at(const struct minrpc_library *library, uint32_t index)
{
	struct minrpc_callee callee;

	if (!minrpc_library_at(library, index, &callee)) {
		return NULL;
	}
	CHECK(callee.function == NULL);
	CHECK_EQ(minrpc_library_find(library, minrpc_callee_name(&callee)) <= index, true);
	return callee.packed->funcs[callee.index];
}

static void check_two(const TVMFuncRegistry *registry)
{
	const struct minrpc_module module = {.packed = registry};
	struct minrpc_library library = {&module, 1U};

	CHECK(packed_at(&library, minrpc_library_find(&library, "one")) == one);
	CHECK(packed_at(&library, minrpc_library_find(&library, "two")) == two);
	CHECK_EQ(minrpc_library_find(&library, "tw"), MINRPC_NO_FUNCTION);
	CHECK_EQ(minrpc_library_find(&library, "twoo"), MINRPC_NO_FUNCTION);
	CHECK_EQ(minrpc_library_find(&library, ""), MINRPC_NO_FUNCTION);
	for (uint32_t index = 2U; index < 10U; index++) {
		CHECK(packed_at(&library, index) == NULL);
	}
	CHECK(packed_at(&library, UINT32_MAX) == NULL);
}

TEST(counts_of_one_byte_and_of_two)
{
	check_two(&short_count);
	check_two(&long_count);
}

static bool run_nothing(struct minrpc_call *call)
{
	(void)call;
	return true;
}

static const struct minrpc_function ours[] = {
	{"ours", "", run_nothing}, {"two", "i", run_nothing}, {"last", NULL, run_nothing}};

TEST(modules_are_numbered_through)
{
	static char resource;
	const struct minrpc_module modules[] = {
		{.packed = &empty_short}, {.packed = &short_count, .resource = &resource},
		{.packed = &empty_long},  {.functions = ours, .count = 3U, .packed = &third},
		{.packed = NULL},         {.packed = &long_count},
	};
	static const char *const names[] = {"one",  "two",    "ours", "two",
					    "last", "_three", "one",  "two"};
	struct minrpc_library library = {modules, 6U};
	struct minrpc_callee callee;

	CHECK_EQ(minrpc_library_find(&library, "_three"), 5U);
	CHECK(packed_at(&library, 5U) == three);
	/* The first function of a name is used. */
	CHECK_EQ(minrpc_library_find(&library, "two"), 1U);
	CHECK_EQ(minrpc_library_find(&library, "last"), 4U);
	CHECK(minrpc_library_at(&library, 1U, &callee));
	CHECK(callee.resource == &resource);
	CHECK(minrpc_library_at(&library, 4U, &callee));
	CHECK(callee.function == &ours[2] && callee.resource == NULL);
	for (uint32_t i = 0U; i < 8U; i++) {
		CHECK(minrpc_library_at(&library, i, &callee));
		CHECK_STR(minrpc_callee_name(&callee), names[i]);
	}
	CHECK(!minrpc_library_at(&library, 8U, &callee));
}

TEST(an_empty_library)
{
	struct minrpc_library library = {NULL, 0U};
	struct minrpc_callee callee;

	CHECK_EQ(minrpc_library_find(&library, "one"), MINRPC_NO_FUNCTION);
	CHECK(!minrpc_library_at(&library, 0U, &callee));
}

/* Three hundred functions: a count whose first byte alone would be another. */
TEST(counts_over_255)
{
	enum {
		MANY = 300,
	};
	static char names[2 + MANY * 5 + 1];
	static TVMBackendPackedCFunc many[MANY];
	const TVMFuncRegistry large = {names, many};
	const struct minrpc_module module = {.packed = &large};
	struct minrpc_library library = {&module, 1U};
	char *at = names + 2;

	names[0] = (char)(MANY & 0xff);
	names[1] = (char)(MANY >> 8);
	for (int i = 0; i < MANY; i++) {
		*at++ = 'f';
		*at++ = (char)('a' + i / 100);
		*at++ = (char)('a' + i / 10 % 10);
		*at++ = (char)('a' + i % 10);
		at++;
		many[i] = i == 277 ? two : one;
	}
	CHECK_EQ(minrpc_library_find(&library, "fchh"), 277U);
	CHECK(packed_at(&library, 277U) == two);
	CHECK(packed_at(&library, 300U) == NULL);
}

TEST(texts_of_every_kind)
{
	char text[64];

	minrpc_text(text, sizeof(text), "%s is %u, %d or %x", "it", 4294967295U, -2147483647 - 1,
		    0xdeadbeefU);
	CHECK_STR(text, "it is 4294967295, -2147483648 or deadbeef");
	minrpc_text(text, sizeof(text), "%u%d%x%s%%", 0U, 0, 0U, "");
	CHECK_STR(text, "000%");
	minrpc_text(text, sizeof(text), "%lx-%lx%u", 0xfedcba98UL, 0UL, 7U);
	CHECK_STR(text, "fedcba98-07");
#if UINTPTR_MAX > UINT32_MAX
	/* An address is never cut. */
	minrpc_text(text, sizeof(text), "0x%lx", 0xfedcba9876543210UL);
	CHECK_STR(text, "0xfedcba9876543210");
#endif
}

TEST(texts_are_cut_at_the_end)
{
	char text[8];

	for (uint32_t capacity = 1U; capacity <= sizeof(text); capacity++) {
		memset(text, 'z', sizeof(text));
		minrpc_text(text, capacity, "%s%u", "abc", 123456U);
		CHECK_EQ(strlen(text), capacity - 1U);
		CHECK_MEM(text, "abc1234", capacity - 1U);
	}
}

CHECK_MAIN(CASE(counts_of_one_byte_and_of_two), CASE(modules_are_numbered_through),
	   CASE(an_empty_library), CASE(counts_over_255), CASE(texts_of_every_kind),
	   CASE(texts_are_cut_at_the_end))
