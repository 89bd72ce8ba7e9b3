/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The frame reader and writer beyond the golden table: cuts, sinks, refusals.
 */
#include <stdlib.h>

#include <minrpc/frame.h>

#include "check.h"
#include "wire.h"

/* Gives the reader bytes until its next event. */
static enum minrpc_reader_event feed(struct minrpc_reader *reader, const uint8_t **at,
				     const uint8_t *end)
{
	uint32_t size = (uint32_t)(end - *at);

	return minrpc_reader_feed(reader, at, &size);
}

/* ------------------------------------------------------------------ writer */

struct link {
	struct bytes sent;
	uint32_t writes;
	uint32_t refuse_at; /* the write with this number fails; 0: none */
};

static int link_write(void *context, const uint8_t *data, uint32_t size)
{
	struct link *link = context;

	link->writes++;
	if (link->writes == link->refuse_at) {
		return -1;
	}
	put(&link->sent, data, size);
	return 0;
}

static int write_frame(struct minrpc_writer *writer, const uint8_t *payload, uint32_t size)
{
	minrpc_writer_begin(writer, size);
	minrpc_writer_put(writer, payload, size);
	return minrpc_writer_end(writer);
}

TEST(the_buffers_size_changes_nothing_on_the_wire)
{
	static const uint8_t payload[] = {0xff, 0xfd, 0xfe, 0xff, 0x00, 0xff};
	struct bytes expected = {0};

	put_u8(&expected, 0xfeU);
	put_frame(&expected, payload, sizeof(payload));
	for (uint32_t capacity = 1U; capacity < 40U; capacity++) {
		uint8_t *buffer = malloc(capacity);
		struct link link = {0};
		struct minrpc_writer writer = {0};

		minrpc_writer_init(&writer, buffer, capacity, link_write, &link);
		CHECK_EQ(write_frame(&writer, payload, sizeof(payload)), 0);
		CHECK_EQ(link.sent.size, expected.size);
		CHECK_MEM(link.sent.data, expected.data, expected.size);
		CHECK_EQ(link.writes, (expected.size + capacity - 1U) / capacity);
		bytes_free(&link.sent);
		free(buffer);
	}
	bytes_free(&expected);
}

TEST(a_frame_that_fits_goes_out_in_one_write)
{
	uint8_t buffer[64];
	uint8_t payload[48] = {0};
	struct link link = {0};
	struct minrpc_writer writer = {0};

	minrpc_writer_init(&writer, buffer, sizeof(buffer), link_write, &link);
	CHECK_EQ(write_frame(&writer, payload, sizeof(payload)), 0);
	CHECK_EQ(link.writes, 1U);
	bytes_free(&link.sent);
}

/*
 * At each byte that the port refuses the frame fails, and the next starts with the byte that ends
 * the cut frame.
 */
TEST(a_refused_frame_fails_and_the_next_starts_afresh)
{
	static const uint8_t payload[20] = {1, 2, 3, 0xff};

	for (uint32_t refused = 1U; refused <= 7U; refused++) {
		uint8_t buffer[4];
		struct link link = {.refuse_at = refused};
		struct minrpc_writer writer = {0};
		struct bytes got = {0};
		const uint8_t *at;

		minrpc_writer_init(&writer, buffer, sizeof(buffer), link_write, &link);
		CHECK_EQ(write_frame(&writer, payload, sizeof(payload)), -1);
		link.sent.size = 0U;
		CHECK_EQ(write_frame(&writer, payload, sizeof(payload)), 0);
		CHECK_EQ(link.sent.data[0], 0xfeU);
		at = link.sent.data;
		CHECK(take_frame(&at, at + link.sent.size, &got));
		CHECK_EQ(got.size, sizeof(payload));
		link.sent.size = 0U;
		CHECK_EQ(write_frame(&writer, payload, sizeof(payload)), 0);
		CHECK_EQ(link.sent.data[0], 0xffU);
		bytes_free(&got);
		bytes_free(&link.sent);
	}
}

/*
 * A device that dies while it sends: at any place, and with any part sent by the port, the next
 * frame arrives.
 */
TEST(an_abandoned_frame_does_not_spoil_the_next)
{
	static const uint8_t payload[] = {0xff, 1, 0xff, 0xff, 2, 0xfd, 0xff, 3, 0xfe, 0xff};
	static const uint8_t words[] = {'e', 'n', 'd', 0xff};

	for (uint32_t capacity = 1U; capacity <= 16U; capacity++) {
		for (uint32_t put_of_it = 0U; put_of_it <= sizeof(payload); put_of_it++) {
			uint8_t buffer[16];
			uint8_t got[sizeof(payload)];
			struct link link = {0};
			struct minrpc_writer writer = {0};
			struct minrpc_reader reader = {0};
			enum minrpc_reader_event event = MINRPC_READER_MORE;
			const uint8_t *at;
			const uint8_t *end;

			minrpc_writer_init(&writer, buffer, capacity, link_write, &link);
			minrpc_writer_begin(&writer, sizeof(payload));
			minrpc_writer_put(&writer, payload, put_of_it);
			minrpc_writer_abandon(&writer);
			CHECK(!writer.open);
			CHECK_EQ(write_frame(&writer, words, sizeof(words)), 0);
			at = link.sent.data;
			end = at + link.sent.size;
			while (at != end) {
				event = feed(&reader, &at, end);
				if (event == MINRPC_READER_LENGTH) {
					minrpc_reader_sink(&reader, got, sizeof(got));
				}
			}
			CHECK_EQ(event, MINRPC_READER_FRAME);
			CHECK_EQ(reader.length, sizeof(words));
			CHECK_MEM(got, words, sizeof(words));
			bytes_free(&link.sent);
		}
	}
}

/* Once the port has refused bytes of a frame, it gets no more of it. */
TEST(a_port_that_refused_is_left_alone_until_the_next_frame)
{
	static const uint8_t payload[20] = {0};
	uint8_t buffer[4];
	struct link link = {.refuse_at = 2U};
	struct minrpc_writer writer = {0};

	minrpc_writer_init(&writer, buffer, sizeof(buffer), link_write, &link);
	CHECK_EQ(write_frame(&writer, payload, sizeof(payload)), -1);
	CHECK_EQ(link.writes, 2U);
	bytes_free(&link.sent);
}

/* ------------------------------------------------------------------ reader */

TEST(a_payload_in_several_sinks)
{
	static const uint8_t payload[] = {0, 1, 2, 3, 4, 0xff, 6, 7, 0xff, 9};

	for (uint32_t first = 1U; first <= sizeof(payload); first++) {
		uint8_t got[sizeof(payload)];
		struct bytes wire = {0};
		struct minrpc_reader reader;
		const uint8_t *at;
		const uint8_t *end;

		put_frame(&wire, payload, sizeof(payload));
		at = wire.data;
		end = at + wire.size;
		reader = (struct minrpc_reader){0};
		CHECK_EQ(feed(&reader, &at, end), MINRPC_READER_LENGTH);
		CHECK_EQ(reader.length, sizeof(payload));
		minrpc_reader_sink(&reader, got, first);
		if (first < sizeof(payload)) {
			CHECK_EQ(feed(&reader, &at, end), MINRPC_READER_FULL);
			minrpc_reader_sink(&reader, got + first, UINT32_MAX);
		}
		CHECK_EQ(feed(&reader, &at, end), MINRPC_READER_FRAME);
		CHECK(at == end);
		CHECK_MEM(got, payload, sizeof(payload));
		bytes_free(&wire);
	}
}

TEST(a_payload_without_a_sink_is_counted_and_checked)
{
	struct bytes payload = {0};
	struct bytes wire = {0};
	struct minrpc_reader reader;
	const uint8_t *at;
	const uint8_t *end;

	for (uint32_t i = 0U; i < 5000U; i++) {
		put_u8(&payload, (uint8_t)(i * 13U));
	}
	put_frame(&wire, payload.data, payload.size);
	at = wire.data;
	end = at + wire.size;
	reader = (struct minrpc_reader){0};
	CHECK_EQ(feed(&reader, &at, end), MINRPC_READER_LENGTH);
	CHECK_EQ(feed(&reader, &at, end), MINRPC_READER_FRAME);
	bytes_free(&payload);
	bytes_free(&wire);
}

/* Every single bit of a frame, flipped: never the same frame again. */
TEST(no_flipped_bit_goes_unseen)
{
	static const uint8_t payload[] = {0x10, 0xff, 0x00, 0xfd, 0x55};
	struct bytes wire = {0};

	put_frame(&wire, payload, sizeof(payload));
	for (uint32_t bit = 0U; bit < 8U * wire.size; bit++) {
		struct minrpc_reader reader;
		const uint8_t *at = wire.data;
		const uint8_t *end = at + wire.size;

		wire.data[bit / 8U] ^= (uint8_t)(1U << bit % 8U);
		reader = (struct minrpc_reader){0};
		while (at < end) {
			CHECK(feed(&reader, &at, end) != MINRPC_READER_FRAME);
		}
		wire.data[bit / 8U] ^= (uint8_t)(1U << bit % 8U);
	}
	bytes_free(&wire);
}

TEST(every_length_up_to_four_gibibytes_is_read)
{
	static const uint32_t lengths[] = {1U,          254U,        255U,        256U,
					   0xff00U,     0xffffU,     0x10000U,    0xffffffU,
					   0x7fffffffU, 0x80000000U, 0xfffffffeU, UINT32_MAX};

	for (size_t i = 0U; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct bytes wire = {0};
		struct minrpc_reader reader;
		const uint8_t *at;

		put(&wire, (const uint8_t[]){0xff, 0xfd}, 2U);
		for (int shift = 0; shift < 32; shift += 8) {
			uint8_t byte = (uint8_t)(lengths[i] >> shift);

			put_u8(&wire, byte);
			if (byte == 0xffU) {
				put_u8(&wire, byte);
			}
		}
		reader = (struct minrpc_reader){0};
		at = wire.data;
		CHECK_EQ(feed(&reader, &at, at + wire.size), MINRPC_READER_LENGTH);
		CHECK_EQ(reader.length, lengths[i]);
		bytes_free(&wire);
	}
}

TEST(crc_of_known_bytes)
{
	/*
	 * The check value that catalogues of CRCs give for CRC-16/IBM-3740, and zlib's for CRC-32.
	 */
	static const char digits[] = "123456789";
	uint16_t crc = MINRPC_CRC_INIT;

	for (const char *at = digits; *at != '\0'; at++) {
		crc = minrpc_crc16(crc, (uint8_t)*at);
	}
	CHECK_EQ(crc, 0x29b1U);
	CHECK_EQ(minrpc_crc32(0U, digits, 9U), 0xcbf43926U);
	CHECK_EQ(minrpc_crc32(minrpc_crc32(0U, digits, 4U), digits + 4, 5U), 0xcbf43926U);
}

CHECK_MAIN(CASE(the_buffers_size_changes_nothing_on_the_wire),
	   CASE(a_frame_that_fits_goes_out_in_one_write),
	   CASE(a_refused_frame_fails_and_the_next_starts_afresh),
	   CASE(an_abandoned_frame_does_not_spoil_the_next),
	   CASE(a_port_that_refused_is_left_alone_until_the_next_frame),
	   CASE(a_payload_in_several_sinks), CASE(a_payload_without_a_sink_is_counted_and_checked),
	   CASE(no_flipped_bit_goes_unseen), CASE(every_length_up_to_four_gibibytes_is_read),
	   CASE(crc_of_known_bytes))
