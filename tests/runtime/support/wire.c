/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

/* Most messages are smaller. */
#define FIRST_CAPACITY 256U

void bytes_free(struct bytes *bytes)
{
	free(bytes->data);
	*bytes = (struct bytes){0};
}

static void reserve(struct bytes *bytes, uint32_t size)
{
	if (bytes->capacity - bytes->size < size) {
		bytes->capacity = (bytes->size + size) * 2U + FIRST_CAPACITY;
		bytes->data = realloc(bytes->data, bytes->capacity);
		CHECK(bytes->data != NULL);
	}
}

void put(struct bytes *bytes, const void *data, uint32_t size)
{
	if (size == 0U) {
		return;
	}
	reserve(bytes, size);
	memcpy(bytes->data + bytes->size, data, size);
	bytes->size += size;
}

void put_u8(struct bytes *bytes, uint8_t value)
{
	put(bytes, &value, 1U);
}

static void put_little_endian(struct bytes *bytes, uint64_t value, unsigned int width)
{
	reserve(bytes, width);
	for (unsigned int i = 0U; i < width; i++) {
		bytes->data[bytes->size++] = (uint8_t)(value >> (8U * i));
	}
}

void put_u16(struct bytes *bytes, uint16_t value)
{
	put_little_endian(bytes, value, 2U);
}

void put_u32(struct bytes *bytes, uint32_t value)
{
	put_little_endian(bytes, value, 4U);
}

void put_u64(struct bytes *bytes, uint64_t value)
{
	put_little_endian(bytes, value, 8U);
}

void put_fill(struct bytes *bytes, uint8_t value, uint32_t count)
{
	if (count == 0U) {
		return;
	}
	reserve(bytes, count);
	memset(bytes->data + bytes->size, value, count);
	bytes->size += count;
}

void put_string(struct bytes *bytes, const char *text)
{
	put_u64(bytes, strlen(text));
	put(bytes, text, (uint32_t)strlen(text));
}

uint64_t get_u64(const uint8_t *at)
{
	return get_u32(at) | (uint64_t)get_u32(at + 4) << 32;
}

uint32_t get_u32(const uint8_t *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

double get_f64(const uint8_t *at)
{
	double value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* Bit by bit, for one byte. */
static uint16_t crc_step(uint8_t byte)
{
	uint16_t crc = (uint16_t)(byte << 8);

	for (int bit = 0; bit < 8; bit++) {
		bool out = crc & 0x8000U;

		crc = (uint16_t)((unsigned int)crc << 1);
		crc ^= out ? 0x1021U : 0U;
	}
	return crc;
}

uint16_t wire_crc(uint16_t crc, const uint8_t *data, uint32_t size)
{
	static uint16_t steps[256];

	if (steps[1] == 0U) {
		for (unsigned int i = 0U; i < 256U; i++) {
			steps[i] = crc_step((uint8_t)i);
		}
	}
	for (uint32_t i = 0U; i < size; i++) {
		crc = (uint16_t)((unsigned int)crc << 8) ^ steps[(crc >> 8) ^ data[i]];
	}
	return crc;
}

static uint32_t crc32_step(uint32_t crc)
{
	for (int bit = 0; bit < 8; bit++) {
		crc = (crc >> 1) ^ (crc & 1U ? 0xedb88320U : 0U);
	}
	return crc;
}

uint32_t wire_crc32(const uint8_t *data, uint32_t size)
{
	static uint32_t steps[256];
	uint32_t crc = UINT32_MAX;

	if (steps[1] == 0U) {
		for (uint32_t i = 0U; i < 256U; i++) {
			steps[i] = crc32_step(i);
		}
	}
	for (uint32_t i = 0U; i < size; i++) {
		crc = (crc >> 8) ^ steps[(crc ^ data[i]) & 0xffU];
	}
	return ~crc;
}

static void put_escaped(struct bytes *wire, const uint8_t *data, uint32_t size)
{
	reserve(wire, 2U * size);
	for (uint32_t i = 0U; i < size; i++) {
		wire->data[wire->size++] = data[i];
		if (data[i] == 0xffU) {
			wire->data[wire->size++] = 0xffU;
		}
	}
}

void put_frame(struct bytes *wire, const uint8_t *payload, uint32_t size)
{
	struct bytes field = {0};
	uint32_t start = wire->size;

	put(wire, (const uint8_t[]){0xff, 0xfd}, 2U);
	put_u32(&field, size);
	put_escaped(wire, field.data, field.size);
	put_escaped(wire, payload, size);
	field.size = 0U;
	put_u16(&field, wire_crc(0xffffU, wire->data + start, wire->size - start));
	put_escaped(wire, field.data, field.size);
	bytes_free(&field);
}

void put_message(struct bytes *wire, uint16_t session, uint8_t type, const uint8_t *body,
		 uint32_t size)
{
	struct bytes message = {0};

	put_u16(&message, session);
	put_u8(&message, type);
	put(&message, body, size);
	put_frame(wire, message.data, message.size);
	bytes_free(&message);
}

/* One byte of a frame's inside, unescaped. */
static uint8_t take_byte(const uint8_t **at, const uint8_t *end)
{
	CHECK(*at < end);
	if (**at != 0xffU) {
		return *(*at)++;
	}
	CHECK(*at + 1 < end);
	CHECK_EQ((*at)[1], 0xffU);
	*at += 2;
	return 0xffU;
}

static uint32_t take_field(const uint8_t **at, const uint8_t *end, unsigned int width)
{
	uint32_t value = 0U;

	for (unsigned int i = 0U; i < width; i++) {
		value |= (uint32_t)take_byte(at, end) << (8U * i);
	}
	return value;
}

bool take_frame(const uint8_t **at, const uint8_t *end, struct bytes *payload)
{
	const uint8_t *start;
	uint32_t length;
	uint16_t crc;

	payload->size = 0U;
	if (*at < end && **at == 0xfeU) {
		(*at)++;
	}
	if (*at == end) {
		return false;
	}
	start = *at;
	CHECK(end - start >= 2 && start[0] == 0xffU && start[1] == 0xfdU);
	*at += 2;
	length = take_field(at, end, 4U);
	CHECK(length <= (uint32_t)(end - *at));
	reserve(payload, length);
	while (length-- != 0U) {
		payload->data[payload->size++] = take_byte(at, end);
	}
	crc = wire_crc(0xffffU, start, (uint32_t)(*at - start));
	CHECK_EQ(take_field(at, end, 2U), crc);
	return true;
}

void put_tensor(struct bytes *bytes, enum dialect dialect, const struct tensor *tensor)
{
	put_u64(bytes, tensor->data);
	put_u32(bytes, 1U);
	put_u32(bytes, 0U);
	put_u32(bytes, tensor->ndim);
	put_u8(bytes, tensor->code);
	put_u8(bytes, tensor->bits);
	put_u16(bytes, tensor->lanes);
	for (uint32_t i = 0U; i < tensor->ndim; i++) {
		put_u64(bytes, (uint64_t)tensor->shape[i]);
	}
	if (dialect == V8) {
		put_u64(bytes, tensor->offset);
	}
}

struct tensor tensor_1d(uint64_t data, uint8_t code, uint8_t bits, int64_t extent)
{
	return (struct tensor){.data = data,
			       .code = code,
			       .bits = bits,
			       .lanes = 1U,
			       .ndim = 1U,
			       .shape = {extent}};
}
