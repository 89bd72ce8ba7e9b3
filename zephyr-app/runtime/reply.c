/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Messages to the client. A reply is described first and then sent, so that it can be sent again.
 * It is one session message: a head, data that is sent from its place in memory, and a tail.
 */
#include <string.h>

#include "rpc.h"

/*
 * The longest head is an array's: 4 + 8 + 4 up to the code, 4 + 12 + 8 of types, 8 + 16 of the
 * tensor.
 */
#define HEAD_MAX 64U
/* The longest tail: a byte offset, an array's handle, and a numbered message's check. */
#define TAIL_MAX 20U

void minrpc_send_message(struct minrpc_server *server, enum minrpc_message_type type,
			 const void *body, uint32_t size)
{
	uint16_t id = type == MINRPC_MESSAGE_LOG ? 0U : server->session.id;
	const uint8_t header[] = {(uint8_t)id, (uint8_t)(id >> 8), (uint8_t)type};

	minrpc_writer_begin(&server->writer, (uint32_t)sizeof(header) + size);
	minrpc_writer_put(&server->writer, header, sizeof(header));
	minrpc_writer_put(&server->writer, body, size);
	(void)minrpc_writer_end(&server->writer);
}

/* By memcpy: with minrpc_put_u32 at each call the flash of rv32 would grow by 376 bytes. */
static uint8_t *put_u32(uint8_t *at, uint32_t value)
{
	memcpy(at, &value, sizeof(value));
	return at + sizeof(value);
}

static uint8_t *put_u64(uint8_t *at, uint64_t value)
{
	memcpy(at, &value, sizeof(value));
	return at + sizeof(value);
}

/*
 * Writes the type codes. The reply to a call has the result's real type as an additional value in
 * front, and an array's handle as another value behind.
 */
static uint8_t *put_types(uint8_t *at, const struct minrpc_reply *reply)
{
	bool array = reply->wire_code == kTVMDLTensorHandle;

	if (reply->kind != MINRPC_REPLY_CALL) {
		return put_u32(put_u32(at, 1U), reply->wire_code);
	}
	at = put_u32(at, 2U + array);
	at = put_u32(at, kTVMArgInt);
	at = put_u32(at, reply->wire_code);
	if (array) {
		at = put_u32(at, kTVMOpaqueHandle);
	}
	return put_u64(at, reply->type_code);
}

/* Writes a value without its data. */
static uint8_t *put_value(uint8_t *at, const struct minrpc_reply *reply)
{
	const DLTensor *array = reply->value.v_handle;

	switch (reply->wire_code) {
	case kTVMNullptr:
		return at;
	case kTVMStr:
	case kTVMBytes:
		return put_u64(at, reply->size);
	case kTVMDLTensorHandle:
		at = put_u64(at, (uintptr_t)array->data);
		at = put_u32(at, (uint32_t)array->device.device_type);
		at = put_u32(at, (uint32_t)array->device.device_id);
		at = put_u32(at, (uint32_t)array->ndim);
		memcpy(at, &array->dtype, sizeof(array->dtype));
		return at + sizeof(array->dtype);
	default:
		return put_u64(at, (uint64_t)reply->value.v_int64);
	}
}

/*
 * In a numbered message the sequence number follows the header; otherwise the packet overwrites it.
 */
static uint8_t *put_session_header(uint8_t *at, const struct minrpc_server *server)
{
	memcpy(at, &server->session.id, sizeof(server->session.id));
	at[2] = minrpc_is_numbered(server) ? MINRPC_MESSAGE_NUMBERED : MINRPC_MESSAGE_NORMAL;
	at[MINRPC_SESSION_HEADER] = server->sequence;
	return at + MINRPC_SESSION_HEADER + minrpc_is_numbered(server);
}

/* Writes the packet up to the data. */
static uint8_t *put_head(uint8_t *at, const struct minrpc_server *server)
{
	const struct minrpc_reply *reply = &server->reply;

	at = put_u32(at, reply->kind & MINRPC_REPLY_CODE);
	if (MINRPC_ASK && reply->kind == MINRPC_REPLY_ASK) {
		return put_u32(at, minrpc_inbox_size(server) - MINRPC_ANSWER_EXTRA);
	}
	if (reply->kind != MINRPC_REPLY_DATA) {
		at = put_types(at, reply);
	}
	return put_value(at, reply);
}

/* Writes the part of an array behind its data. The data is the shape. */
static uint8_t *put_tail(uint8_t *at, const struct minrpc_server *server, const DLTensor *array)
{
	if (server->dialect != MINRPC_DIALECT_0_7) {
		at = put_u64(at, array->byte_offset);
	}
	return put_u64(at, (uintptr_t)array);
}

void minrpc_reply_send(struct minrpc_server *server)
{
	const struct minrpc_reply *reply = &server->reply;
	struct minrpc_writer *writer = &server->writer;
	const void *data = reply->value.v_handle;
	uint8_t head[HEAD_MAX];
	uint8_t tail[TAIL_MAX];
	uint8_t *tail_end = tail;
	uint8_t *length = put_session_header(head, server);
	uint8_t *head_end;
	uint32_t head_size;

	if (reply->kind == MINRPC_REPLY_NONE) {
		return;
	}
	head_end = put_head(length + MINRPC_PACKET_LENGTH, server);
	if (reply->wire_code == kTVMDLTensorHandle) {
		const DLTensor *array = data;

		data = array->shape;
		tail_end = put_tail(tail, server, array);
	}
	(void)put_u64(length, (uint32_t)(head_end - length) - MINRPC_PACKET_LENGTH + reply->size +
				      (uint32_t)(tail_end - tail));
	head_size = (uint32_t)(head_end - head);
	if (minrpc_is_numbered(server)) {
		uint32_t check = minrpc_crc32(0U, head, head_size);

		check = minrpc_crc32(check, data, reply->size);
		check = minrpc_crc32(check, tail, (uint32_t)(tail_end - tail));
		tail_end = put_u32(tail_end, check);
	}
	minrpc_writer_begin(writer, head_size + reply->size + (uint32_t)(tail_end - tail));
	minrpc_writer_put(writer, head, head_size);
	minrpc_writer_put(writer, data, reply->size);
	minrpc_writer_put(writer, tail, (uint32_t)(tail_end - tail));
	(void)minrpc_writer_end(writer);
}

static bool set(struct minrpc_server *server, enum minrpc_reply_kind kind, int wire_code,
		uintptr_t value)
{
	struct minrpc_reply *reply = &server->reply;

	reply->value.v_int64 = (int64_t)value;
	reply->size = 0U;
	reply->wire_code = (uint8_t)wire_code;
	reply->kind = (uint8_t)kind;
	return true;
}

bool minrpc_reply_void(struct minrpc_server *server)
{
	return set(server, MINRPC_REPLY_VALUE, kTVMNullptr, 0U);
}

bool minrpc_reply_value(struct minrpc_server *server, const struct minrpc_call *call)
{
	return set(server, MINRPC_REPLY_VALUE, call->type_code, (uintptr_t)call->value.v_int64);
}

bool minrpc_reply_data(struct minrpc_server *server, void *data, uint32_t size)
{
	(void)set(server, MINRPC_REPLY_DATA, kTVMNullptr, (uintptr_t)data);
	server->reply.size = size;
	return true;
}

void minrpc_reply_exception(struct minrpc_server *server)
{
	(void)set(server, MINRPC_REPLY_EXCEPTION, kTVMStr, (uintptr_t)server->error);
	server->reply.size = (uint32_t)strlen(server->error);
}

bool minrpc_reply_call(struct minrpc_server *server, const struct minrpc_call *call)
{
	const TVMByteArray *bytes = call->value.v_handle;
	const DLTensor *array = call->value.v_handle;
	struct minrpc_reply *reply = &server->reply;
	bool sendable = true;

	(void)set(server, MINRPC_REPLY_CALL, call->type_code, 0U);
	reply->value = call->value;
	reply->type_code = (uint8_t)call->type_code;
	switch (call->type_code) {
	case kTVMArgInt:
	case kTVMArgUInt:
	case kTVMArgFloat:
	case kTVMOpaqueHandle:
	case kTVMNullptr:
	case kTVMDataType:
	case kDLDevice:
		break;
	case kTVMModuleHandle:
	case kTVMPackedFuncHandle:
		reply->wire_code = kTVMOpaqueHandle;
		break;
	case kTVMStr:
		if (call->value.v_str == NULL) {
			sendable = false;
			break;
		}
		reply->size = (uint32_t)strlen(call->value.v_str);
		break;
	case kTVMBytes:
		if (bytes == NULL || (bytes->data == NULL && bytes->size != 0U)) {
			sendable = false;
			break;
		}
		reply->size = (uint32_t)bytes->size;
		reply->value.v_str = bytes->data;
		break;
	case kTVMNDArrayHandle:
		/* The client must be able to name the array again. */
		if (!minrpc_arena_find(&server->arena, (uintptr_t)array, MINRPC_ARENA_NDARRAY,
				       &reply->size)) {
			sendable = false;
			break;
		}
		reply->size = (uint32_t)array->ndim * (uint32_t)sizeof(*array->shape);
		reply->wire_code = kTVMDLTensorHandle;
		break;
	case kTVMArgBool:
		/* Only the newest clients know this type code. */
		reply->type_code = kTVMArgInt;
		reply->wire_code = kTVMArgInt;
		break;
	default:
		/* A tensor or an object would be freed before the client could name it. */
		sendable = false;
		break;
	}
	return sendable || minrpc_fail(server, "the returned %s can't be sent",
				       minrpc_type_name(call->type_code));
}
