/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Arrays that are filled and compared on the device. The values of `minrpc.threefry` for seed 7 are
 * the values of random_values, in numpy.
 */
#include "check.h"
#include "host.h"

struct golden {
	uint8_t code;
	uint8_t bits;
	const char *bytes; /* of four elements */
};

static const struct golden table[] = {
	{0U, 8U, "\x6a\x2f\xb1\xb4"},
	{1U, 64U,
	 "\x6a\x29\x92\xe8\xb9\x53\x3b\xbc\x2f\xa1\xb8\xb0\xd0\x93\x8b\x4f"
	 "\xb1\x8e\x4f\x18\x77\xf6\xc0\x12\xb4\x90\x8f\x2b\x54\x35\xde\xfd"},
	{2U, 16U, "\x3e\xb8\xf8\x38\xb0\x30\x80\xa4"},
	{2U, 32U, "\x5a\x89\x07\xbf\x26\x17\x1f\x3f\xb0\x07\x16\x3e\xc0\x72\x88\xbc"},
	{2U, 64U,
	 "\x76\xdb\x85\x11\x2b\xf1\xe0\xbf\x28\x2e\x2c\xf4\xe4\xe2\xe3\x3f"
	 "\x88\x4f\x18\x77\xf6\xc0\xc2\x3f\x80\x83\xa3\x5e\x55\x0e\x91\xbf"},
	{4U, 16U, "\x08\xbf\x1e\x3f\x10\x3e\xc0\xbc"},
	{1U, 1U, "\x01\x00\x00\x01"},
};

/* The known answer of Random123 for threefry2x32, 20 rounds, with key and counter 0. */
TEST(the_first_element_of_seed_0_is_random123s)
{
	struct host *host = host_start();
	struct tensor tensor = tensor_1d(host_alloc(host, 8U), 1U, 64U, 1);
	struct args args = {0};
	uint8_t made[8];

	arg_tensor(&args, V8, &tensor);
	arg(&args, ARG_INT, 0U);
	(void)expect_returned(host_call(host, host_global(host, "minrpc.threefry"), &args),
			      ARG_NULL);
	host_read(host, tensor.data, made, sizeof(made));
	CHECK_EQ(get_u64(made), 0x99ba4efe6b200159ULL);
	host_stop(host);
}

TEST(a_seed_gives_what_numpy_makes_of_it)
{
	struct host *host = host_start();
	uint64_t random = host_global(host, "minrpc.threefry");

	for (size_t i = 0U; i < sizeof(table) / sizeof(table[0]); i++) {
		uint32_t size = (table[i].bits + 7U) / 8U * 4U;
		uint64_t data = host_alloc(host, size);
		struct tensor tensor = tensor_1d(data, table[i].code, table[i].bits, 4);
		struct args args = {0};
		uint8_t made[32];

		arg_tensor(&args, V8, &tensor);
		arg(&args, ARG_INT, 7U);
		(void)expect_returned(host_call(host, random, &args), ARG_NULL);
		host_read(host, data, made, size);
		CHECK_MEM(made, table[i].bytes, size);
	}
	host_stop(host);
}

/* Each bit of a seed matters, also in the upper half. */
TEST(other_seeds_give_other_elements)
{
	static const uint64_t seeds[] = {
		7U, 8U, 7U + (1ULL << 32), 7U + (1ULL << 63), 1ULL << 32, 1ULL << 33, UINT64_MAX};
	uint8_t made[7][16];
	struct host *host = host_start();
	uint64_t random = host_global(host, "minrpc.threefry");
	struct tensor tensor = tensor_1d(host_alloc(host, 16U), 1U, 8U, 16);

	for (size_t i = 0U; i < 7U; i++) {
		struct args args = {0};

		arg_tensor(&args, V8, &tensor);
		arg(&args, ARG_INT, seeds[i]);
		(void)expect_returned(host_call(host, random, &args), ARG_NULL);
		host_read(host, tensor.data, made[i], 16U);
		for (size_t j = 0U; j < i; j++) {
			CHECK(memcmp(made[i], made[j], 16U) != 0);
		}
	}
	host_stop(host);
}

TEST(types_without_random_elements_are_refused)
{
	static const struct golden none[] = {{3U, 64U, ""}, {2U, 8U, ""},  {2U, 80U, ""},
					     {0U, 4U, ""},  {1U, 12U, ""}, {4U, 32U, ""},
					     {0U, 128U, ""}};
	struct host *host = host_start();
	uint64_t data = host_alloc(host, 64U);

	for (size_t i = 0U; i < sizeof(none) / sizeof(none[0]); i++) {
		struct tensor tensor = tensor_1d(data, none[i].code, none[i].bits, 2);
		struct args args = {0};

		arg_tensor(&args, V8, &tensor);
		arg(&args, ARG_INT, 7U);
		expect_exception(host_call(host, host_global(host, "minrpc.threefry"), &args),
				 "no random elements");
	}
	/* Two lanes of a bit share a byte. */
	struct tensor bits = tensor_1d(data, 1U, 1U, 2);
	struct args args = {0};

	bits.lanes = 2U;
	arg_tensor(&args, V8, &bits);
	arg(&args, ARG_INT, 7U);
	expect_exception(host_call(host, host_global(host, "minrpc.threefry"), &args),
			 "no random elements of 1 bits");
	host_still_serves(host);
	host_stop(host);
}

static const struct answer *fill(struct host *host, uint64_t data, int64_t count,
				 const char *pattern, uint32_t size)
{
	struct tensor tensor = tensor_1d(data, 1U, 8U, count);
	struct args args = {0};

	arg_tensor(&args, V8, &tensor);
	arg_bytes(&args, pattern, size);
	return host_call(host, host_global(host, "minrpc.fill"), &args);
}

TEST(a_pattern_fills_all_and_no_more)
{
	struct host *host = host_start();
	uint64_t data = host_alloc(host, 12U);
	char bytes[12];

	(void)expect_returned(fill(host, data, 12, "abc", 3U), ARG_NULL);
	(void)expect_returned(fill(host, data, 6, "xy", 2U), ARG_NULL);
	(void)expect_returned(fill(host, data, 0, "xy", 2U), ARG_NULL);
	host_read(host, data, bytes, sizeof(bytes));
	CHECK_MEM(bytes, "xyxyxyabcabc", sizeof(bytes));
	expect_exception(fill(host, data, 12, "12345", 5U),
			 "12 bytes are no multiple of a pattern of 5");
	expect_exception(fill(host, data, 12, "", 0U), "a pattern of 0");
	expect_exception(fill(host, data, 13, "a", 1U), "13 bytes");
	host_stop(host);
}

TEST(a_checksum_is_crc_32)
{
	struct host *host = host_start();
	uint64_t data = host_alloc(host, 9U);
	struct tensor tensor = tensor_1d(data, 1U, 8U, 9);
	struct args args = {0};

	host_write(host, data, "123456789", 9U);
	arg_tensor(&args, V8, &tensor);
	CHECK_EQ(get_u64(expect_returned(
			 host_call(host, host_global(host, "minrpc.checksum"), &args), ARG_INT)),
		 0xcbf43926U);
	host_stop(host);
}

CHECK_MAIN(CASE(a_seed_gives_what_numpy_makes_of_it),
	   CASE(the_first_element_of_seed_0_is_random123s), CASE(other_seeds_give_other_elements),
	   CASE(types_without_random_elements_are_refused), CASE(a_pattern_fills_all_and_no_more),
	   CASE(a_checksum_is_crc_32))
