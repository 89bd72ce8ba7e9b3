/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Packed values: every code, both dialects, cut at every byte. The buffer ends where its block
 * does, so that the sanitizer sees a byte too many.
 */
#include <stdlib.h>

#include <minrpc/packed.h>

#include "check.h"
#include "packed_args.h"

/* A decode of `bytes` in a buffer of `room` bytes. */
struct decoded {
	uint8_t *buffer;
	struct minrpc_args args;
	uint8_t dialect;
	uint32_t culprit;
	enum minrpc_packed_status status;
};

static struct decoded decode(const struct bytes *bytes, uint32_t room)
{
	struct decoded decoded = {.buffer = malloc(room == 0U ? 1U : room)};
	struct minrpc_packed packed = {.args = &decoded.args};

	CHECK(decoded.buffer != NULL && bytes->size <= room);
	memset(decoded.buffer, 0xa5, room);
	if (bytes->size != 0U) {
		memcpy(decoded.buffer, bytes->data, bytes->size);
	}
	packed.wire = (struct minrpc_cursor){decoded.buffer, decoded.buffer + bytes->size};
	packed.scratch = (struct minrpc_cursor){packed.wire.end, decoded.buffer + room};
	decoded.status = minrpc_packed_decode(&packed);
	decoded.dialect = packed.dialect;
	decoded.culprit = packed.culprit;
	return decoded;
}

static void put_every_code(struct args *args, enum dialect dialect)
{
	static const struct tensor tensor = {.data = 0x1234U,
					     .offset = 8U,
					     .code = 2U,
					     .bits = 32U,
					     .lanes = 1U,
					     .ndim = 3U,
					     .shape = {2, 3, 5}};

	arg(args, ARG_INT, (uint64_t)-5);
	arg(args, ARG_UINT, UINT64_MAX);
	arg_float(args, 1.5);
	arg(args, ARG_HANDLE, 0x80008000U);
	arg(args, ARG_NULL, 0U);
	arg_dtype(args, 2U, 32U, 4U);
	arg_device(args);
	arg_tensor(args, dialect, &tensor);
	arg_object(args, 77U);
	arg(args, ARG_MODULE, 0x8000U);
	arg(args, ARG_FUNCTION, 0x80008001U);
	arg_string(args, "text");
	arg_bytes(args, "\0b", 2U);
	arg_string(args, "");
	arg(args, ARG_BOOL, 1U);
}

static void check_every_value(const struct minrpc_args *args, enum dialect dialect)
{
	const TVMValue *values = args->values;
	const DLTensor *tensor = values[7].v_handle;
	const TVMByteArray *bytes = values[12].v_handle;

	CHECK_EQ(args->count, 15);
	CHECK_EQ(values[0].v_int64, -5);
	CHECK_EQ((uint64_t)values[1].v_int64, UINT64_MAX);
	CHECK(values[2].v_float64 == 1.5);
	CHECK_EQ(values[3].v_int64, 0x80008000);
	CHECK_EQ(values[4].v_int64, 0);
	CHECK(values[5].v_type.code == 2U && values[5].v_type.bits == 32U &&
	      values[5].v_type.lanes == 4U);
	CHECK(values[6].v_device.device_type == kDLCPU && values[6].v_device.device_id == 0);
	CHECK_EQ((uintptr_t)tensor->data, 0x1234U);
	CHECK_EQ(tensor->byte_offset, dialect == V8 ? 8U : 0U);
	CHECK_EQ(tensor->ndim, 3);
	CHECK(tensor->shape[0] == 2 && tensor->shape[1] == 3 && tensor->shape[2] == 5);
	CHECK(tensor->strides == NULL);
	CHECK(tensor->dtype.code == 2U && tensor->dtype.bits == 32U && tensor->dtype.lanes == 1U);
	CHECK_EQ(values[8].v_int64, 77);
	CHECK_EQ(values[9].v_int64, 0x8000);
	CHECK_EQ(values[10].v_int64, 0x80008001);
	CHECK_STR(values[11].v_str, "text");
	CHECK_EQ(bytes->size, 2U);
	CHECK_MEM(bytes->data, "\0b", 2U);
	CHECK_STR(values[13].v_str, "");
	CHECK_EQ(values[14].v_int64, 1);
}

static void check_dialect(enum dialect dialect)
{
	struct args args = {0};
	struct bytes bytes = {0};
	struct decoded decoded;

	put_every_code(&args, dialect);
	put_args(&bytes, &args);
	decoded = decode(&bytes, 2048U);
	CHECK_EQ(decoded.status, MINRPC_PACKED_OK);
	CHECK_EQ(decoded.dialect, dialect == V8 ? MINRPC_DIALECT_0_8 : MINRPC_DIALECT_0_7);
	check_every_value(&decoded.args, dialect);
	free(decoded.buffer);
	bytes_free(&bytes);
}

TEST(every_code_in_both_dialects)
{
	check_dialect(V7);
	check_dialect(V8);
}

TEST(cut_at_every_byte)
{
	static const enum dialect dialects[] = {V7, V8};

	for (int i = 0; i < 2; i++) {
		struct args args = {0};
		struct bytes bytes = {0};
		uint32_t whole;

		put_every_code(&args, dialects[i]);
		put_args(&bytes, &args);
		whole = bytes.size;
		for (bytes.size = 0U; bytes.size < whole; bytes.size++) {
			struct decoded decoded = decode(&bytes, 2048U);

			CHECK_EQ(decoded.status, MINRPC_PACKED_SHORT);
			free(decoded.buffer);
		}
		bytes_free(&bytes);
	}
}

TEST(bytes_too_many)
{
	for (uint32_t more = 1U; more < 20U; more++) {
		struct args args = {0};
		struct bytes bytes = {0};
		struct decoded decoded;

		arg(&args, ARG_INT, 1U);
		put_args(&bytes, &args);
		put_fill(&bytes, 0U, more);
		decoded = decode(&bytes, 2048U);
		CHECK_EQ(decoded.status, MINRPC_PACKED_SHORT);
		free(decoded.buffer);
		bytes_free(&bytes);
	}
}

/* For any room: the whole result, or an error. */
TEST(every_amount_of_room)
{
	struct args args = {0};
	struct bytes bytes = {0};
	bool fits = false;

	put_every_code(&args, V8);
	put_args(&bytes, &args);
	for (uint32_t room = bytes.size; room < bytes.size + 600U; room++) {
		struct decoded decoded = decode(&bytes, room);

		/* A size that fits also fits in a larger buffer. */
		CHECK(decoded.status == MINRPC_PACKED_OK ||
		      (decoded.status == MINRPC_PACKED_SCRATCH && !fits));
		fits = decoded.status == MINRPC_PACKED_OK;
		if (fits) {
			check_every_value(&decoded.args, V8);
		}
		free(decoded.buffer);
	}
	CHECK(fits);
	bytes_free(&bytes);
}

TEST(codes_without_a_form)
{
	static const uint32_t codes[] = {13U,  14U,         16U,         17U,       255U,
					 256U, 0x7fffffffU, 0x80000000U, UINT32_MAX};

	for (size_t i = 0U; i < sizeof(codes) / sizeof(codes[0]); i++) {
		struct bytes bytes = {0};
		struct decoded decoded;

		put_u32(&bytes, 1U);
		put_u32(&bytes, codes[i]);
		put_u64(&bytes, 0U);
		decoded = decode(&bytes, 256U);
		CHECK_EQ(decoded.status, MINRPC_PACKED_TYPE);
		CHECK_EQ(decoded.culprit, codes[i]);
		free(decoded.buffer);
		bytes_free(&bytes);
	}
}

TEST(no_arguments)
{
	struct bytes bytes = {0};
	struct decoded decoded;

	put_u32(&bytes, 0U);
	decoded = decode(&bytes, 64U);
	CHECK_EQ(decoded.status, MINRPC_PACKED_OK);
	CHECK_EQ(decoded.args.count, 0);
	CHECK_EQ(decoded.dialect, MINRPC_DIALECT_UNKNOWN);
	free(decoded.buffer);
	bytes_free(&bytes);
}

TEST(a_tensor_without_dimensions)
{
	static const enum dialect dialects[] = {V7, V8};

	for (int i = 0; i < 2; i++) {
		struct tensor tensor = {.data = 1U, .bits = 8U, .lanes = 1U};
		struct args args = {0};
		struct bytes bytes = {0};
		struct decoded decoded;

		arg_tensor(&args, dialects[i], &tensor);
		put_args(&bytes, &args);
		decoded = decode(&bytes, 256U);
		CHECK_EQ(decoded.status, MINRPC_PACKED_OK);
		CHECK_EQ(((const DLTensor *)decoded.args.values[0].v_handle)->ndim, 0);
		free(decoded.buffer);
		bytes_free(&bytes);
	}
}

TEST(addresses_that_do_not_fit_are_nobodys)
{
	struct tensor tensor = {.data = UINT64_MAX - 15U, .bits = 8U, .lanes = 1U};
	struct args args = {0};
	struct bytes bytes = {0};
	struct decoded decoded;

	arg_tensor(&args, V8, &tensor);
	put_args(&bytes, &args);
	decoded = decode(&bytes, 256U);
	CHECK_EQ(decoded.status, MINRPC_PACKED_OK);
	CHECK_EQ((uintptr_t)((const DLTensor *)decoded.args.values[0].v_handle)->data,
		 sizeof(void *) == 8U ? UINT64_MAX - 15U : UINT32_MAX);
	free(decoded.buffer);
	bytes_free(&bytes);
}

TEST(every_type_has_a_name)
{
	static const char *const names[] = {
		"int",    "uint",   "float",    "handle", "null",  "dtype",   "device", "tensor",
		"object", "module", "function", "string", "bytes", "ndarray", "rvalue", "bool"};

	for (int i = 0; i < 16; i++) {
		CHECK_STR(minrpc_type_name(i), names[i]);
	}
	CHECK_STR(minrpc_type_name(16), "unknown");
	CHECK_STR(minrpc_type_name(-1), "unknown");
	CHECK_STR(minrpc_type_name(INT32_MIN), "unknown");
}

CHECK_MAIN(CASE(every_code_in_both_dialects), CASE(cut_at_every_byte), CASE(bytes_too_many),
	   CASE(every_amount_of_room), CASE(codes_without_a_form), CASE(no_arguments),
	   CASE(a_tensor_without_dimensions), CASE(addresses_that_do_not_fit_are_nobodys),
	   CASE(every_type_has_a_name))
