/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Replies. One is described first and then sent, so that it can be sent again. Each is one session message: a head,
 * data that is sent from where it lies, and a tail.
 */
#include <string.h>

#include "rpc.h"

/* An array's are the longest: 4 + 8 + 4 up to the code, 4 + 12 + 8 of types, 8 + 16 of the tensor. */
#define HEAD_MAX 64U
/* A byte offset, an array's handle, a numbered message's check. */
#define TAIL_MAX 20U

struct message {
	uint8_t head[HEAD_MAX];
	uint8_t tail[TAIL_MAX];
	uint8_t *head_end;
	uint8_t *tail_end;
	const void *data;
	uint32_t size; /* of the data */
};

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

/* How a returned value's type is told on the wire. */
static uint32_t wire_code(int type_code)
{
	if (type_code == kTVMModuleHandle || type_code == kTVMPackedFuncHandle) {
		return kTVMOpaqueHandle;
	}
	return type_code == kTVMNDArrayHandle ? (uint32_t)kTVMDLTensorHandle : (uint32_t)type_code;
}

/* Before what a function returned its real type goes as a value too, and an array's handle is one more. */
static uint8_t *put_types(uint8_t *at, const struct minrpc_reply *reply)
{
	uint32_t array = reply->type_code == kTVMNDArrayHandle;

	if (reply->kind != MINRPC_REPLY_CALL) {
		return put_u32(put_u32(at, 1U), (uint32_t)reply->type_code);
	}
	at = put_u32(at, 2U + array);
	at = put_u32(at, kTVMArgInt);
	at = put_u32(at, wire_code(reply->type_code));
	if (array != 0U) {
		at = put_u32(at, kTVMOpaqueHandle);
	}
	return put_u64(at, (uint64_t)reply->type_code);
}

static void put_array(struct message *message, const DLTensor *tensor, uint8_t dialect)
{
	message->head_end = put_u64(message->head_end, (uintptr_t)tensor->data);
	memcpy(message->head_end, minrpc_tensor_core(tensor), MINRPC_TENSOR_CORE_SIZE);
	message->head_end += MINRPC_TENSOR_CORE_SIZE;
	message->data = tensor->shape;
	message->size = (uint32_t)tensor->ndim * (uint32_t)sizeof(int64_t);
	if (dialect != MINRPC_DIALECT_0_7) {
		message->tail_end = put_u64(message->tail_end, tensor->byte_offset);
	}
	message->tail_end = put_u64(message->tail_end, (uintptr_t)tensor);
}

static void put_value(struct message *message, const struct minrpc_server *server)
{
	const struct minrpc_reply *reply = &server->reply;

	switch (reply->type_code) {
	case kTVMNullptr:
		break;
	case kTVMStr:
	case kTVMBytes:
		message->head_end = put_u64(message->head_end, reply->size);
		message->size = reply->size;
		break;
	case kTVMNDArrayHandle:
		put_array(message, reply->value.v_handle, server->dialect);
		break;
	default:
		message->head_end = put_u64(message->head_end, (uint64_t)reply->value.v_int64);
		break;
	}
}

/* The packet but for its length: its code, and a value or the device's memory. */
static void put_packet(struct message *message, const struct minrpc_server *server)
{
	const struct minrpc_reply *reply = &server->reply;

	message->head_end = put_u32(message->head_end, reply->kind & MINRPC_REPLY_CODE);
	message->tail_end = message->tail;
	message->data = reply->value.v_handle;
	if (reply->kind == MINRPC_REPLY_DATA) {
		message->size = reply->size;
		return;
	}
	message->size = 0U;
	message->head_end = put_types(message->head_end, reply);
	put_value(message, server);
}

static uint8_t *put_session_header(uint8_t *at, const struct minrpc_server *server)
{
	*at++ = (uint8_t)server->session.id;
	*at++ = (uint8_t)(server->session.id >> 8);
	if (!server->numbered) {
		*at++ = MINRPC_MESSAGE_NORMAL;
		return at;
	}
	*at++ = MINRPC_MESSAGE_NUMBERED;
	*at++ = server->sequence;
	return at;
}

/* Puts the check at the end. */
static void put_check(struct message *message, uint32_t head_size)
{
	uint32_t check = minrpc_crc32(0U, message->head, head_size);

	check = minrpc_crc32(check, message->data, message->size);
	check = minrpc_crc32(check, message->tail, (uint32_t)(message->tail_end - message->tail));
	message->tail_end = put_u32(message->tail_end, check);
}

void minrpc_reply_send(struct minrpc_server *server)
{
	struct minrpc_writer *writer = &server->writer;
	struct message message;
	uint8_t *packet = put_session_header(message.head, server) + MINRPC_PACKET_LENGTH;
	uint32_t head_size;
	uint32_t tail_size;

	if (server->reply.kind == MINRPC_REPLY_NONE) {
		return;
	}
	message.head_end = packet;
	put_packet(&message, server);
	head_size = (uint32_t)(message.head_end - message.head);
	tail_size = (uint32_t)(message.tail_end - message.tail);
	(void)put_u64(packet - MINRPC_PACKET_LENGTH,
		      (uint32_t)(message.head_end - packet) + message.size + tail_size);
	if (server->numbered) {
		put_check(&message, head_size);
		tail_size += (uint32_t)sizeof(uint32_t);
	}
	minrpc_writer_begin(writer, head_size + message.size + tail_size);
	minrpc_writer_put(writer, message.head, head_size);
	minrpc_writer_put(writer, message.data, message.size);
	minrpc_writer_put(writer, message.tail, tail_size);
	(void)minrpc_writer_end(writer);
}

static bool set(struct minrpc_server *server, enum minrpc_reply_kind kind, int type_code,
		uintptr_t value)
{
	server->reply.kind = (uint8_t)kind;
	server->reply.type_code = type_code;
	server->reply.value.v_int64 = (int64_t)value;
	return true;
}

bool minrpc_reply_void(struct minrpc_server *server)
{
	return set(server, MINRPC_REPLY_VALUE, kTVMNullptr, 0U);
}

bool minrpc_reply_handle(struct minrpc_server *server, uintptr_t handle)
{
	return set(server, MINRPC_REPLY_VALUE, kTVMOpaqueHandle, handle);
}

bool minrpc_reply_data(struct minrpc_server *server, void *data, uint32_t size)
{
	server->reply.size = size;
	return set(server, MINRPC_REPLY_DATA, kTVMNullptr, (uintptr_t)data);
}

void minrpc_reply_exception(struct minrpc_server *server)
{
	server->reply.size = (uint32_t)strlen(server->error);
	(void)set(server, MINRPC_REPLY_EXCEPTION, kTVMStr, (uintptr_t)server->error);
}

/* What a function may not return: a tensor or an object would be gone before the client could name it. */
#define NOT_RETURNABLE                                                                             \
	(1U << kTVMDLTensorHandle | 1U << kTVMObjectHandle | 1U << kTVMObjectRValueRefArg)

static bool returnable(const struct minrpc_server *server, const struct minrpc_call *call)
{
	uint32_t size;

	if ((uint32_t)call->type_code > kTVMArgBool || (NOT_RETURNABLE >> call->type_code & 1U) != 0U) {
		return false;
	}
	/* An array must be one that the client can name again. */
	return call->type_code != kTVMNDArrayHandle ||
	       minrpc_arena_find(&server->arena, (uintptr_t)call->value.v_handle,
				 MINRPC_ARENA_NDARRAY, &size);
}

bool minrpc_reply_call(struct minrpc_server *server, const struct minrpc_call *call)
{
	struct minrpc_reply *reply = &server->reply;

	if (!returnable(server, call)) {
		return minrpc_server_fail(server, "the function returned a %s that can't be sent",
					  minrpc_type_name(call->type_code));
	}
	reply->kind = MINRPC_REPLY_CALL;
	/* Only the newest clients know the code of a bool. */
	reply->type_code = call->type_code == kTVMArgBool ? kTVMArgInt : call->type_code;
	reply->value = call->value;
	if (call->type_code == kTVMStr) {
		reply->size = (uint32_t)strlen(call->value.v_str);
	} else if (call->type_code == kTVMBytes) {
		const TVMByteArray *bytes = call->value.v_handle;

		reply->size = (uint32_t)bytes->size;
		reply->value.v_str = bytes->data;
	}
	return true;
}
