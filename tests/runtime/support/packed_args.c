/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include "packed_args.h"

#include <string.h>

#include "check.h"

static void add_code(struct args *args, uint32_t code)
{
	CHECK(args->count < ARGS_MAX);
	args->codes[args->count++] = code;
}

void arg(struct args *args, uint32_t code, uint64_t value)
{
	add_code(args, code);
	if (code != ARG_NULL) {
		put_u64(&args->values, value);
	}
}

void arg_string(struct args *args, const char *text)
{
	add_code(args, ARG_STRING);
	put_string(&args->values, text);
}

void arg_bytes(struct args *args, const void *data, uint32_t size)
{
	add_code(args, ARG_BYTES);
	put_u64(&args->values, size);
	put(&args->values, data, size);
}

void arg_dtype(struct args *args, uint8_t code, uint8_t bits, uint16_t lanes)
{
	add_code(args, ARG_DTYPE);
	put_u8(&args->values, code);
	put_u8(&args->values, bits);
	put_u16(&args->values, lanes);
	put_u32(&args->values, 0U);
}

void arg_device(struct args *args)
{
	add_code(args, ARG_DEVICE);
	put_u32(&args->values, 1U);
	put_u32(&args->values, 0U);
}

void arg_tensor(struct args *args, enum dialect dialect, const struct tensor *tensor)
{
	add_code(args, ARG_TENSOR);
	put_tensor(&args->values, dialect, tensor);
}

void put_args(struct bytes *bytes, struct args *args)
{
	put_u32(bytes, args->count);
	for (uint32_t i = 0U; i < args->count; i++) {
		put_u32(bytes, args->codes[i]);
	}
	put(bytes, args->values.data, args->values.size);
	bytes_free(&args->values);
	args->count = 0U;
}
