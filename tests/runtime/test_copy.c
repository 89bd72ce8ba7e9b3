/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Memory: allocation, copies in both dialects, copies larger than the receive buffer, tensors as
 * arguments.
 */
#include "check.h"
#include "functions.h"
#include "host.h"

#include <minrpc/frame.h>

static const enum dialect dialects[] = {V7, V8};

static void fill(struct bytes *data, uint32_t size)
{
	for (uint32_t i = 0U; i < size; i++) {
		put_u8(data, (uint8_t)(i * 7U + i / 251U));
	}
}

static const struct answer *copy_to(struct host *host, enum dialect dialect,
				    const struct tensor *tensor, const struct bytes *data)
{
	struct bytes body = {0};

	put_copy(&body, dialect, tensor, data->size);
	put(&body, data->data, data->size);
	return host_request(host, RPC_COPY_TO, &body);
}

static const struct answer *copy_from(struct host *host, enum dialect dialect,
				      const struct tensor *tensor, uint64_t size)
{
	struct bytes body = {0};

	put_copy(&body, dialect, tensor, size);
	return host_request(host, RPC_COPY_FROM, &body);
}

static void expect_data(const struct answer *answer, const uint8_t *data, uint32_t size)
{
	CHECK_EQ(answer->code, RPC_COPY_ACK);
	CHECK_EQ(answer->size, size);
	CHECK_MEM(answer->body, data, size);
}

/* Sizes around the receive buffer of 8192, and sizes of every kind above it. */
TEST(copies_of_every_size_arrive_in_both_dialects)
{
	static const uint32_t sizes[] = {0U,    1U,    7U,    8140U, 8141U, 8142U, 8143U,  8144U,
					 8145U, 8146U, 8160U, 8191U, 8192U, 8193U, 16384U, 60000U};

	for (size_t i = 0U; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (int j = 0; j < 2; j++) {
			struct host *host = host_start();
			struct tensor tensor =
				tensor_1d(host_alloc(host, sizes[i]), 0U, 8U, sizes[i]);
			struct bytes data = {0};

			fill(&data, sizes[i]);
			expect_void(copy_to(host, dialects[j], &tensor, &data));
			expect_data(copy_from(host, dialects[j], &tensor, sizes[i]), data.data,
				    sizes[i]);
			bytes_free(&data);
			host_still_serves(host);
			host_stop(host);
		}
	}
}

TEST(a_streamed_copy_in_any_chunking)
{
	static const uint32_t pieces[] = {1U, 2U, 3U, 63U, 1000U, 8191U};

	for (size_t i = 0U; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		struct host *host = host_start();
		struct tensor tensor = tensor_1d(host_alloc(host, 20000U), 0U, 8U, 20000);
		struct bytes data = {0};
		struct bytes body = {0};
		struct bytes wire = {0};

		fill(&data, 20000U);
		put_copy(&body, V8, &tensor, 20000U);
		put(&body, data.data, data.size);
		put_request(&wire, host->session, RPC_COPY_TO, &body);
		for (uint32_t at = 0U; at < wire.size; at += pieces[i]) {
			struct bytes piece = {0};

			put(&piece, wire.data + at,
			    wire.size - at < pieces[i] ? wire.size - at : pieces[i]);
			host_give(host, &piece);
		}
		CHECK(host_take(host));
		expect_data(copy_from(host, V8, &tensor, 20000U), data.data, 20000U);
		bytes_free(&data);
		bytes_free(&wire);
		host_stop(host);
	}
}

TEST(a_streamed_copy_that_does_not_fit_writes_nothing)
{
	for (int j = 0; j < 2; j++) {
		struct host *host = host_start();
		uint64_t small = host_alloc(host, 10000U);
		uint64_t beside = host_alloc(host, 10000U);
		struct tensor tensor = tensor_1d(small, 0U, 8U, 10001);
		struct bytes data = {0};
		struct bytes zeros = {0};
		uint8_t now[10000];

		fill(&data, 10001U);
		put_fill(&zeros, 0U, 10000U);
		host_write(host, small, zeros.data, zeros.size);
		host_write(host, beside, zeros.data, zeros.size);
		/*
		 * Only in a session of v0.7 the destination of the copy is looked up, and the
		 * reason for the refusal is reported.
		 */
		expect_exception(copy_to(host, dialects[j], &tensor, &data), "skipped");
		host->server.dialect = MINRPC_DIALECT_0_7;
		expect_exception(copy_to(host, V7, &tensor, &data),
				 "10001 bytes at 0 in an allocation of 10000");
		tensor.data = small + 16U;
		expect_exception(copy_to(host, V7, &tensor, &data), "no live tensor");
		host_read(host, small, now, sizeof(now));
		CHECK_MEM(now, zeros.data, zeros.size);
		host_read(host, beside, now, sizeof(now));
		CHECK_MEM(now, zeros.data, zeros.size);
		bytes_free(&data);
		bytes_free(&zeros);
		host_stop(host);
	}
}

/* Flips a bit of the last byte that is not part of an escape, before or after the flip. */
static void damage_end(struct bytes *wire)
{
	const uint8_t escape = 0xffU;
	const uint8_t flip = 0x04U;

	for (size_t at = wire->size - 1U; at > 0U; at--) {
		uint8_t byte = wire->data[at];

		if (byte != escape && (byte ^ flip) != escape && wire->data[at - 1U] != escape) {
			wire->data[at] ^= flip;
			return;
		}
	}
}

TEST(a_streamed_copy_with_a_wrong_crc_is_not_answered)
{
	struct host *host = host_start();
	struct tensor tensor = tensor_1d(host_alloc(host, 20000U), 0U, 8U, 20000);
	struct bytes body = {0};
	struct bytes wire = {0};

	put_copy(&body, V8, &tensor, 20000U);
	fill(&body, 20000U);
	put_request(&wire, host->session, RPC_COPY_TO, &body);
	damage_end(&wire);
	host_give(host, &wire);
	host_expect_log(host, "damaged copy of 20063 bytes");
	host_expect_silence(host);
	host_still_serves(host);
	host_stop(host);
}

/*
 * The address in it is damaged and is another array's. Its CRC shows that, but comes last: in a
 * session other than v0.7's nothing is written before.
 */
TEST(a_long_copy_to_a_damaged_address_writes_nothing)
{
	static const uint8_t known[] = {MINRPC_DIALECT_UNKNOWN, MINRPC_DIALECT_0_8};

	for (size_t i = 0U; i < 2U * sizeof(known); i++) {
		struct host *host = host_start();
		uint64_t meant = host_alloc(host, 20000U);
		uint64_t other = host_alloc(host, 20000U);
		struct tensor tensor = tensor_1d(other, 0U, 8U, 20000);
		struct bytes ones = {0};
		struct bytes body = {0};
		struct bytes wire = {0};
		uint8_t now[20000];

		put_fill(&ones, 1U, 20000U);
		host_write(host, other, ones.data, ones.size);
		host->server.dialect = known[i / 2U];
		put_copy(&body, i % 2U == 0U ? V8 : V7, &tensor, 20000U);
		fill(&body, 20000U);
		put_request(&wire, host->session, RPC_COPY_TO, &body);
		damage_end(&wire);
		host_give(host, &wire);
		host_expect_log(host, "skipped");
		host_expect_silence(host);
		host_read(host, other, now, sizeof(now));
		CHECK_MEM(now, ones.data, sizeof(now));
		CHECK(meant != other);
		bytes_free(&ones);
		host_stop(host);
	}
}

/* A checked message: type 0x14, u32 CRC-32 of the packet up to its data, the packet. */
static void put_checked_copy(struct bytes *wire, const struct host *host,
			     const struct tensor *tensor, const struct bytes *data)
{
	struct bytes packet = {0};
	struct bytes copy = {0};
	struct bytes body = {0};

	put_copy(&copy, V8, tensor, data->size);
	put_u64(&packet, 4U + copy.size + data->size);
	put_u32(&packet, RPC_COPY_TO);
	put(&packet, copy.data, copy.size);
	put_u32(&body, minrpc_crc32(0U, packet.data, packet.size));
	put(&body, packet.data, packet.size);
	put(&body, data->data, data->size);
	put_message(wire, host->session, TYPE_CHECKED, body.data, body.size);
	bytes_free(&packet);
	bytes_free(&copy);
	bytes_free(&body);
}

TEST(a_checked_copy_in_any_chunking)
{
	static const uint32_t pieces[] = {1U, 7U, 63U, 8192U, 60000U};

	for (size_t i = 0U; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		struct host *host = host_start();
		struct tensor tensor = tensor_1d(host_alloc(host, 40000U), 0U, 8U, 40000);
		struct bytes data = {0};
		struct bytes wire = {0};

		fill(&data, 30000U);
		tensor.offset = 10000U;
		put_checked_copy(&wire, host, &tensor, &data);
		for (uint32_t at = 0U; at < wire.size; at += pieces[i]) {
			struct bytes piece = {0};

			put(&piece, wire.data + at,
			    wire.size - at < pieces[i] ? wire.size - at : pieces[i]);
			host_give(host, &piece);
		}
		CHECK(host_take(host));
		CHECK_EQ(get_u32(host->message.body.data + 8), RPC_RETURN);
		expect_data(copy_from(host, V8, &tensor, 30000U), data.data, 30000U);
		CHECK_EQ(host->server.counters[MINRPC_OVERSIZE_FRAMES], 0U);
		bytes_free(&data);
		bytes_free(&wire);
		host_still_serves(host);
		host_stop(host);
	}
}

/* Any byte of its destination may be damaged: nothing is written, here or elsewhere. */
TEST(a_checked_copy_with_a_damaged_front_writes_nothing)
{
	enum {
		FRONT = 6 + 3 + 4 + 12 + 48,
		SIZE = 16384
	};

	static uint8_t now[SIZE];
	static const uint8_t zeros[SIZE];

	for (uint32_t at = 6U; at < FRONT; at++) {
		struct host *host = host_start();
		uint64_t arrays[] = {host_alloc(host, SIZE), host_alloc(host, SIZE),
				     host_alloc(host, SIZE)};
		struct tensor tensor = tensor_1d(arrays[1], 0U, 8U, SIZE);
		struct bytes data = {0};
		struct bytes wire = {0};

		for (size_t i = 0U; i < 3U; i++) {
			host_write(host, arrays[i], zeros, SIZE);
		}
		fill(&data, SIZE);
		put_checked_copy(&wire, host, &tensor, &data);
		wire.data[at] ^= (uint8_t)(1U << at % 8U);
		host_give(host, &wire);
		bytes_free(&data);
		for (size_t i = 0U; i < 3U; i++) {
			host_read(host, arrays[i], now, SIZE);
			CHECK_MEM(now, zeros, SIZE);
		}
		host_stop(host);
	}
}

/* Pieces in the form of TVM's clients of v0.8 and later: the shape of the whole, the offset of the
 * piece. */
TEST(pieces_by_byte_offset)
{
	struct host *host = host_start();
	struct tensor tensor = tensor_1d(host_alloc(host, 4000U), 2U, 32U, 1000);
	struct bytes data = {0};
	struct bytes piece = {0};

	fill(&data, 4000U);
	for (tensor.offset = 0U; tensor.offset < 4000U; tensor.offset += 700U) {
		uint32_t left = 4000U - (uint32_t)tensor.offset;

		piece.size = 0U;
		put(&piece, data.data + tensor.offset, left < 700U ? left : 700U);
		expect_void(copy_to(host, V8, &tensor, &piece));
	}
	tensor.offset = 123U;
	expect_data(copy_from(host, V8, &tensor, 3000U), data.data + 123, 3000U);
	bytes_free(&data);
	bytes_free(&piece);
	host_stop(host);
}

TEST(a_copy_of_more_than_its_tensor_holds_is_malformed)
{
	struct host *host = host_start();
	struct tensor tensor = tensor_1d(host_alloc(host, 100U), 0U, 8U, 10);

	CHECK_EQ(copy_from(host, V8, &tensor, 10U)->code, RPC_COPY_ACK);
	expect_exception(copy_from(host, V8, &tensor, 11U), "");
	host_stop(host);
}

TEST(copies_of_no_bytes_need_a_live_address_too)
{
	struct host *host = host_start();
	struct tensor tensor = tensor_1d(host_alloc(host, 0U), 0U, 8U, 0);
	struct bytes nothing = {0};

	expect_data(copy_from(host, V8, &tensor, 0U), NULL, 0U);
	expect_void(copy_to(host, V8, &tensor, &nothing));
	tensor.data += 64U;
	expect_exception(copy_from(host, V8, &tensor, 0U), "");
	expect_exception(copy_to(host, V8, &tensor, &nothing), "");
	host_stop(host);
}

TEST(copies_on_the_device)
{
	struct host *host = host_start();
	uint64_t from = host_alloc(host, 8U);
	uint64_t to = host_alloc(host, 8U);
	struct tensor source = tensor_1d(from, 0U, 8U, 4);
	struct tensor target = tensor_1d(to, 0U, 8U, 4);
	struct args args = {0};
	uint8_t now[8];

	host_write(host, from, "abcdefgh", 8U);
	host_write(host, to, "--------", 8U);
	expect_void(host_copy_among(host, from, 2U, to, 1U, 3U));
	host_read(host, to, now, 8U);
	CHECK_MEM(now, "-cde----", 8U);
	/* Overlapping, and in v0.8's form. */
	source.offset = 4U;
	target.data = from;
	target.offset = 2U;
	arg_tensor(&args, V8, &source);
	arg_tensor(&args, V8, &target);
	arg(&args, ARG_NULL, 0U);
	expect_void(host_syscall(host, RPC_COPY_AMONG, &args));
	host_read(host, from, now, 8U);
	CHECK_MEM(now, "abefghgh", 8U);
	host_stop(host);
}

/*
 * Overlaps by less than a word and by much, up and down: the result is the same as with a copy
 * through other memory.
 */
TEST(overlapping_copies_on_the_device)
{
	enum {
		SIZE = 600,
	};
	static const uint32_t offsets[][2] = {{0U, 1U}, {1U, 0U},    {0U, 7U},   {9U, 0U},
					      {3U, 3U}, {100U, 50U}, {50U, 100U}};
	struct host *host = host_start();
	uint64_t data = host_alloc(host, SIZE);
	uint8_t bytes[SIZE];
	uint8_t now[SIZE];

	for (size_t i = 0U; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		for (uint32_t j = 0U; j < SIZE; j++) {
			bytes[j] = (uint8_t)(j * j + i);
		}
		host_write(host, data, bytes, SIZE);
		expect_void(host_copy_among(host, data, offsets[i][0], data, offsets[i][1], 500U));
		memmove(bytes + offsets[i][1], bytes + offsets[i][0], 500U);
		host_read(host, data, now, SIZE);
		CHECK_MEM(now, bytes, SIZE);
	}
	host_stop(host);
}

/* An object, a result and the memory for replies are the device's own, though in the arena. */
TEST(what_is_the_devices_own_is_no_memory_of_clients)
{
	struct host *host = host_start();
	struct args args = {0};
	uint64_t own[2];

	arg(&args, ARG_MODULE, 0x8000U);
	arg_string(&args, "tick");
	for (int i = 0; i < 5; i++) {
		arg(&args, ARG_INT, 1U);
	}
	arg_string(&args, "");
	(void)expect_returned(host_call(host, host_global(host, "runtime.RPCTimeEvaluator"), &args),
			      ARG_FUNCTION);
	own[0] = (uintptr_t)host->server.objects;
	own[1] = (uintptr_t)minrpc_arena_alloc(&host->server.arena, 64U, 1U, MINRPC_ARENA_RESULT);
	for (int i = 0; i < 2; i++) {
		struct tensor tensor = tensor_1d(own[i], 0U, 8U, 4);
		struct bytes body = {0};

		put_copy(&body, V8, &tensor, 4U);
		expect_exception(host_request(host, RPC_COPY_FROM, &body), "no live tensor");
		put_copy(&body, V8, &tensor, 4U);
		put_fill(&body, 0x5aU, 4U);
		expect_exception(host_request(host, RPC_COPY_TO, &body), "no live tensor");
		expect_exception(host_copy_among(host, own[i], 0U, own[i], 0U, 4U),
				 "no live tensor");
		expect_exception(host_try_free(host, own[i]), "no live tensor");
		arg_tensor(&args, V8, &tensor);
		expect_exception(host_call(host, host_function(host, "tick"), &args),
				 "no live tensor");
	}
	CHECK_EQ(host_functions.calls, 0U);
	host_stop(host);
}

TEST(copies_on_the_device_stay_inside)
{
	struct host *host = host_start();
	uint64_t from = host_alloc(host, 8U);
	uint64_t to = host_alloc(host, 16U);
	struct tensor source = tensor_1d(from, 0U, 8U, 8);
	struct tensor target = tensor_1d(to, 0U, 8U, 9);
	struct args args = {0};

	expect_exception(host_copy_among(host, from, 0U, to, 0U, 9U), "");
	expect_exception(host_copy_among(host, to, 0U, from, 0U, 9U), "");
	expect_exception(host_copy_among(host, from, 1U, to, 0U, 8U), "");
	expect_exception(host_copy_among(host, from, UINT64_MAX, to, 0U, 2U), "");
	expect_exception(host_copy_among(host, from, 0U, to, 1ULL << 32, 2U), "");
	expect_exception(host_copy_among(host, from, 0U, to, 0U, UINT64_MAX), "");
	expect_exception(host_copy_among(host, from, 0U, to, 0U, (1ULL << 32) + 1U), "");
	expect_exception(host_copy_among(host, from + 8U, 0U, to, 0U, 0U), "");
	arg_tensor(&args, V8, &source);
	arg_tensor(&args, V8, &target);
	arg(&args, ARG_NULL, 0U);
	expect_exception(host_syscall(host, RPC_COPY_AMONG, &args), "");
	host_still_serves(host);
	host_stop(host);
}

static const struct answer *alloc_scope(struct host *host, const struct tensor *tensor)
{
	struct args args = {0};

	arg_tensor(&args, V8, tensor);
	arg(&args, ARG_NULL, 0U);
	return host_syscall(host, RPC_ALLOC_SCOPE, &args);
}

TEST(tensors_are_allocated_by_shape_and_dtype)
{
	struct host *host = host_start();
	struct tensor tensor = {.code = 2U, .bits = 32U, .lanes = 4U, .ndim = 2U, .shape = {3, 5}};
	uint64_t data = expect_handle(alloc_scope(host, &tensor));
	struct tensor whole = tensor_1d(data, 0U, 8U, 3 * 5 * 16);

	CHECK_EQ(data % MINRPC_TENSOR_ALIGNMENT, 0U);
	CHECK_EQ(copy_from(host, V8, &whole, 240U)->code, RPC_COPY_ACK);
	whole.shape[0] = 241;
	expect_exception(copy_from(host, V8, &whole, 241U), "");
	/* A scalar; and bits that do not fill a byte. */
	tensor.ndim = 0U;
	(void)expect_handle(alloc_scope(host, &tensor));
	tensor = tensor_1d(0U, 1U, 1U, 10);
	(void)expect_handle(alloc_scope(host, &tensor));
	host_stop(host);
}

TEST(shapes_that_overflow_are_exceptions)
{
	static const int64_t shapes[][4] = {
		{65536, 65536, 1, 1},           {65536, 65536, 65536, 65536}, {-1, 1, 1, 1},
		{INT64_MIN, 1, 1, 1},           {INT64_MAX, 2, 1, 1},         {2147483648, 1, 1, 1},
		{2147483647, 2147483647, 4, 1}, {1LL << 32, 1LL << 32, 1, 1}, {0, -1, 1, 1},
	};
	struct host *host = host_start();
	uint64_t data = host_alloc(host, 64U);

	for (size_t i = 0U; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct tensor tensor = {.code = 0U, .bits = 8U, .lanes = 1U, .ndim = 4U};
		struct args args = {0};

		memcpy(tensor.shape, shapes[i], sizeof(shapes[i]));
		expect_exception(alloc_scope(host, &tensor), "");
		tensor.data = data;
		expect_exception(copy_from(host, V8, &tensor, 4U), "");
		arg_tensor(&args, V8, &tensor);
		expect_exception(host_call(host, host_function(host, "tick"), &args), "");
	}
	CHECK_EQ(host_functions.calls, 0U);
	host_still_serves(host);
	host_stop(host);
}

/* Any number of elements without size fits anywhere. */
TEST(dtypes_of_no_size_are_exceptions)
{
	struct host *host = host_start();
	struct tensor tensor = tensor_1d(0x1234U, 0U, 0U, 1000000);
	struct args args = {0};

	expect_exception(alloc_scope(host, &tensor), "dtype");
	arg_tensor(&args, V8, &tensor);
	expect_exception(host_call(host, host_function(host, "tick"), &args), "dtype");
	tensor.bits = 8U;
	tensor.lanes = 0U;
	arg_tensor(&args, V8, &tensor);
	expect_exception(host_call(host, host_function(host, "tick"), &args), "dtype");
	CHECK_EQ(host_functions.calls, 0U);
	host_stop(host);
}

TEST(alignments_that_are_none_are_exceptions)
{
	static const uint64_t alignments[] = {0U, 3U, 12U, 65536U, 1ULL << 32, UINT64_MAX};
	struct host *host = host_start();

	for (size_t i = 0U; i < sizeof(alignments) / sizeof(alignments[0]); i++) {
		expect_exception(host_try_alloc(host, 16U, alignments[i]), "");
	}
	host_stop(host);
}

/* A call argument's tensor must lie inside its allocation, to the byte. */
TEST(tensor_arguments_are_checked)
{
	struct host *host = host_start();
	uint64_t tick = host_function(host, "tick");
	uint64_t data = host_alloc(host, 64U);
	const struct tensor good[] = {
		{.data = data, .code = 0U, .bits = 8U, .lanes = 1U, .ndim = 1U, .shape = {64}},
		{.data = data, .offset = 60U, .code = 2U, .bits = 32U, .lanes = 1U, .ndim = 0U},
		{.data = data,
		 .offset = 64U,
		 .code = 0U,
		 .bits = 8U,
		 .lanes = 1U,
		 .ndim = 1U,
		 .shape = {0}},
		{.data = data, .code = 2U, .bits = 64U, .lanes = 2U, .ndim = 2U, .shape = {2, 2}},
		{.data = data, .offset = 8U, .code = 2U, .bits = 64U, .lanes = 7U, .ndim = 0U},
	};
	const struct tensor bad[] = {
		{.data = data, .code = 0U, .bits = 8U, .lanes = 1U, .ndim = 1U, .shape = {65}},
		{.data = data,
		 .offset = 1U,
		 .code = 0U,
		 .bits = 8U,
		 .lanes = 1U,
		 .ndim = 1U,
		 .shape = {64}},
		{.data = data,
		 .offset = 65U,
		 .code = 0U,
		 .bits = 8U,
		 .lanes = 1U,
		 .ndim = 1U,
		 .shape = {0}},
		{.data = data, .offset = 64U, .code = 2U, .bits = 32U, .lanes = 1U, .ndim = 0U},
		{.data = data + 1U, .code = 0U, .bits = 8U, .lanes = 1U, .ndim = 0U},
		{.data = 0U, .code = 0U, .bits = 8U, .lanes = 1U, .ndim = 1U, .shape = {0}},
		{.data = data,
		 .offset = 1ULL << 32,
		 .code = 0U,
		 .bits = 8U,
		 .lanes = 1U,
		 .ndim = 0U},
		{.data = data,
		 .offset = UINT64_MAX,
		 .code = 0U,
		 .bits = 8U,
		 .lanes = 1U,
		 .ndim = 1U,
		 .shape = {2}},
		/* An offset between elements is a fault on some cores. */
		{.data = data, .offset = 1U, .code = 2U, .bits = 32U, .lanes = 1U, .ndim = 0U},
		{.data = data, .offset = 4U, .code = 2U, .bits = 64U, .lanes = 1U, .ndim = 0U},
	};

	for (size_t i = 0U; i < sizeof(good) / sizeof(good[0]); i++) {
		struct args args = {0};

		arg_tensor(&args, V8, &good[i]);
		expect_returned(host_call(host, tick, &args), ARG_NULL);
	}
	CHECK_EQ(host_functions.calls, 5U);
	for (size_t i = 0U; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct args args = {0};

		arg_tensor(&args, V8, &bad[i]);
		expect_exception(host_call(host, tick, &args), "");
	}
	CHECK_EQ(host_functions.calls, 5U);
	host_stop(host);
}

TEST(a_session_takes_its_memory_with_it)
{
	struct host *host = host_start();
	uint64_t data = host_alloc(host, 1000U);
	struct tensor tensor = tensor_1d(data, 0U, 8U, 1000);

	CHECK(host->server.arena.used != 0U);
	host_open(host, 0x24U);
	CHECK_EQ(host->server.arena.used, 0U);
	expect_exception(copy_from(host, V8, &tensor, 1000U), "");
	host_stop(host);
}

TEST(a_terminate_frees_the_memory)
{
	struct host *host = host_start();
	struct bytes wire = {0};

	(void)host_alloc(host, 1000U);
	put_message(&wire, 0U, TYPE_TERMINATE, NULL, 0U);
	host_give(host, &wire);
	CHECK_EQ(host->server.arena.used, 0U);
	host_stop(host);
}

CHECK_MAIN(CASE(copies_of_every_size_arrive_in_both_dialects),
	   CASE(a_streamed_copy_in_any_chunking),
	   CASE(a_streamed_copy_that_does_not_fit_writes_nothing),
	   CASE(a_streamed_copy_with_a_wrong_crc_is_not_answered),
	   CASE(a_long_copy_to_a_damaged_address_writes_nothing),
	   CASE(a_checked_copy_in_any_chunking),
	   CASE(a_checked_copy_with_a_damaged_front_writes_nothing), CASE(pieces_by_byte_offset),
	   CASE(a_copy_of_more_than_its_tensor_holds_is_malformed),
	   CASE(copies_of_no_bytes_need_a_live_address_too), CASE(copies_on_the_device),
	   CASE(overlapping_copies_on_the_device),
	   CASE(what_is_the_devices_own_is_no_memory_of_clients),
	   CASE(copies_on_the_device_stay_inside), CASE(tensors_are_allocated_by_shape_and_dtype),
	   CASE(shapes_that_overflow_are_exceptions), CASE(dtypes_of_no_size_are_exceptions),
	   CASE(alignments_that_are_none_are_exceptions), CASE(tensor_arguments_are_checked),
	   CASE(a_session_takes_its_memory_with_it), CASE(a_terminate_frees_the_memory))
