/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Copies. Each end must be the start of a live allocation, and every byte touched inside it.
 */
#include <string.h>

#include "rpc.h"

/* What clients may name: their own data, and data that a function keeps and returned an array over. */
#define NAMEABLE ((uint32_t)MINRPC_ARENA_DATA | (uint32_t)MINRPC_ARENA_LIBRARY)

/* One end of a copy, both dialects alike. */
struct span {
	uintptr_t data;
	uint32_t offset;
	uint32_t size;
};

/* Counts of bytes over 32 bits become one that fits no allocation. */
static uint32_t bytes_of(uint64_t value)
{
	return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

static tvm_crt_error_t locate(struct minrpc_server *server, const struct span *span, uint8_t **at)
{
	uint32_t allocated = 0U;

	if (!minrpc_arena_find(&server->arena, span->data, NAMEABLE, &allocated)) {
		return minrpc_fail_handle(server, "allocation", span->data);
	}
	if (span->offset > allocated || span->size > allocated - span->offset) {
		return minrpc_server_fail(server, kTvmErrorPlatformCheckFailure,
					  "%u bytes at %u do not fit the allocation of %u",
					  (unsigned int)span->size, (unsigned int)span->offset,
					  (unsigned int)allocated);
	}
	*at = (uint8_t *)span->data + span->offset;
	return kTvmErrorNoError;
}

tvm_crt_error_t minrpc_fail_shape(struct minrpc_server *server)
{
	return minrpc_server_fail(server, kTvmErrorPlatformCheckFailure,
				  "bad dtype, or shape negative or over 4 GiB");
}

static bool span_of(const DLTensor *tensor, struct span *span)
{
	span->data = (uintptr_t)tensor->data;
	span->offset = bytes_of(tensor->byte_offset);
	return minrpc_tensor_size(tensor, &span->size);
}

tvm_crt_error_t minrpc_bind_tensor(struct minrpc_server *server, DLTensor *tensor)
{
	struct span span;
	uint8_t *at;
	tvm_crt_error_t error;

	if (!span_of(tensor, &span)) {
		return minrpc_fail_shape(server);
	}
	/* Functions read elements where they lie: on some cores one that lies askew is a fault. */
	if (span.offset % ((tensor->dtype.bits + 7U) / 8U) != 0U) {
		return minrpc_server_fail(server, kTvmErrorPlatformCheckFailure,
					  "byte offset %u is between elements",
					  (unsigned int)span.offset);
	}
	error = locate(server, &span, &at);
	if (error == kTvmErrorNoError) {
		tensor->data = at;
		tensor->byte_offset = 0U;
	}
	return error;
}

/* v0.7's fixed header: data, offset, size, device, dtype. */
#define HEADER_0_7 36U

/* Told by the length. In v0.8's form the third field holds ndim and dtype: never a plausible size. */
static bool take_0_7(struct minrpc_cursor *body, uint32_t total, bool carries_data,
		     struct span *span)
{
	struct minrpc_cursor cursor = *body;

	span->data = minrpc_handle(minrpc_take_u64(&cursor));
	span->offset = minrpc_take_size(&cursor);
	span->size = minrpc_take_size(&cursor);
	(void)minrpc_take(&cursor, sizeof(DLDevice) + sizeof(DLDataType));
	if (cursor.bad || total - HEADER_0_7 != (carries_data ? span->size : 0U)) {
		return false;
	}
	*body = cursor;
	return true;
}

/* Reads a copy's header out of a body of `total` bytes, which ends with the data where it carries any. */
static tvm_crt_error_t take_header(struct minrpc_server *server, struct minrpc_cursor *body,
				   uint32_t total, bool carries_data, struct span *span)
{
	const uint8_t *start = body->at;
	struct minrpc_wire_tensor tensor;
	uint32_t tensor_bytes;

	if (take_0_7(body, total, carries_data, span)) {
		server->dialect = MINRPC_DIALECT_0_7;
		return kTvmErrorNoError;
	}
	minrpc_take_tensor(body, MINRPC_DIALECT_0_8, &tensor);
	span->data = minrpc_handle(tensor.data);
	span->offset = bytes_of(tensor.byte_offset);
	span->size = minrpc_take_size(body);
	if (!minrpc_wire_tensor_size(&tensor, &tensor_bytes)) {
		return minrpc_fail_shape(server);
	}
	if (body->bad || span->size > tensor_bytes ||
	    total - (uint32_t)(body->at - start) != (carries_data ? span->size : 0U)) {
		return minrpc_server_fail(server, kTvmErrorFramingPayloadIncomplete,
					  "malformed copy");
	}
	server->dialect = MINRPC_DIALECT_0_8;
	return kTvmErrorNoError;
}

tvm_crt_error_t minrpc_copy_from_remote(struct minrpc_server *server, struct minrpc_cursor *body)
{
	struct span span;
	uint8_t *at;
	tvm_crt_error_t error =
		take_header(server, body, minrpc_cursor_left(body), false, &span);

	if (error == kTvmErrorNoError) {
		error = locate(server, &span, &at);
	}
	return error == kTvmErrorNoError ? minrpc_reply_data(server, at, span.size) : error;
}

tvm_crt_error_t minrpc_copy_stream(struct minrpc_server *server, struct minrpc_cursor *body,
				   uint32_t total, uint8_t **destination)
{
	struct span span;
	tvm_crt_error_t error = take_header(server, body, total, true, &span);

	return error == kTvmErrorNoError ? locate(server, &span, destination) : error;
}

tvm_crt_error_t minrpc_copy_to_remote(struct minrpc_server *server, struct minrpc_cursor *body)
{
	uint8_t *destination = NULL;
	tvm_crt_error_t error =
		minrpc_copy_stream(server, body, minrpc_cursor_left(body), &destination);

	if (error == kTvmErrorNoError) {
		memcpy(destination, body->at, minrpc_cursor_left(body));
		return minrpc_reply_void(server);
	}
	return error;
}

static tvm_crt_error_t copy_between(struct minrpc_server *server, const struct span *from,
				    const struct span *to)
{
	uint8_t *source = NULL;
	uint8_t *destination = NULL;
	tvm_crt_error_t error = locate(server, from, &source);

	if (error == kTvmErrorNoError) {
		error = locate(server, to, &destination);
	}
	if (error == kTvmErrorNoError) {
		memmove(destination, source, from->size);
		return minrpc_reply_void(server);
	}
	return error;
}

tvm_crt_error_t minrpc_copy_among_remote(struct minrpc_server *server, const struct minrpc_args *args)
{
	static const char name[] = "CopyAmongRemote";
	const TVMValue *values = args->values;
	struct span from;
	struct span to;
	tvm_crt_error_t error;

	if (args->count == 9) {
		error = minrpc_check_args(server, name, args, "hihiiddph");
		if (error != kTvmErrorNoError) {
			return error;
		}
		from.data = minrpc_handle((uint64_t)values[0].v_int64);
		from.offset = bytes_of((uint64_t)values[1].v_int64);
		to.data = minrpc_handle((uint64_t)values[2].v_int64);
		to.offset = bytes_of((uint64_t)values[3].v_int64);
		from.size = bytes_of((uint64_t)values[4].v_int64);
	} else {
		error = minrpc_check_args(server, name, args, "tth");
		if (error != kTvmErrorNoError) {
			return error;
		}
		if (!span_of(values[0].v_handle, &from) || !span_of(values[1].v_handle, &to)) {
			return minrpc_fail_shape(server);
		}
		if (from.size != to.size) {
			return minrpc_server_fail(server, kTvmErrorPlatformCheckFailure,
						  "%s: %u bytes into %u", name,
						  (unsigned int)from.size, (unsigned int)to.size);
		}
	}
	to.size = from.size;
	return copy_between(server, &from, &to);
}
