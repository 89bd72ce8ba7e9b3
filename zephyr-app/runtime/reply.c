/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Replies. One is described first and then sent, so that it can be sent again: each is one session message
 * whose length is known before its first byte goes out.
 */
#include <string.h>

#include "rpc.h"

static void put(struct minrpc_server *server, const void *data, uint32_t size)
{
	minrpc_writer_put(&server->writer, data, size);
	if (server->numbered) {
		server->check = minrpc_crc32(server->check, data, size);
	}
}

static void put_u32(struct minrpc_server *server, uint32_t value)
{
	put(server, &value, sizeof(value));
}

static void put_u64(struct minrpc_server *server, uint64_t value)
{
	put(server, &value, sizeof(value));
}

/* `size` bytes follow the code. */
static void open(struct minrpc_server *server, enum minrpc_rpc_code code, uint32_t size)
{
	const uint8_t header[] = {
		(uint8_t)server->session.id,
		(uint8_t)(server->session.id >> 8),
		server->numbered ? MINRPC_MESSAGE_NUMBERED : MINRPC_MESSAGE_NORMAL,
		server->sequence,
	};
	uint32_t extra = server->numbered ? MINRPC_NUMBERED_EXTRA : 0U;

	server->check = 0U;
	minrpc_writer_begin(&server->writer, MINRPC_SESSION_HEADER + MINRPC_PACKET_LENGTH +
						     MINRPC_PACKET_CODE + size + extra);
	put(server, header, MINRPC_SESSION_HEADER + server->numbered);
	put_u64(server, (uint64_t)MINRPC_PACKET_CODE + size);
	put_u32(server, code);
}

static void close(struct minrpc_server *server)
{
	if (server->numbered) {
		put_u32(server, server->check);
	}
	(void)minrpc_writer_end(&server->writer);
}

/* A string or bytes: the same form. */
static void put_bytes(struct minrpc_server *server, const void *data, uint32_t size)
{
	put_u64(server, size);
	put(server, data, size);
}

/* Count, type codes, and the first value, which says what the function returned; `size` bytes follow. */
static void open_call(struct minrpc_server *server, uint32_t count, int wire_code, uint32_t size)
{
	const uint32_t head[] = {count, kTVMArgInt, (uint32_t)wire_code, kTVMOpaqueHandle};

	open(server, MINRPC_RPC_RETURN, 4U + 4U * count + 8U + size);
	put(server, head, 4U + 4U * count);
	put_u64(server, (uint64_t)server->reply.type_code);
}

static void send_bytes(struct minrpc_server *server, const char *data, uint32_t size)
{
	open_call(server, 2U, server->reply.type_code, 8U + size);
	put_bytes(server, data, size);
}

static void send_ndarray(struct minrpc_server *server, const DLTensor *tensor)
{
	bool offset = server->dialect != MINRPC_DIALECT_0_7;
	uint32_t shape = (uint32_t)tensor->ndim * (uint32_t)sizeof(int64_t);

	open_call(server, 3U, kTVMDLTensorHandle, 32U + shape + (offset ? 8U : 0U));
	put_u64(server, (uintptr_t)tensor->data);
	put(server, &tensor->device, sizeof(tensor->device));
	put_u32(server, (uint32_t)tensor->ndim);
	put(server, &tensor->dtype, sizeof(tensor->dtype));
	put(server, tensor->shape, shape);
	if (offset) {
		put_u64(server, tensor->byte_offset);
	}
	put_u64(server, (uintptr_t)tensor);
}

static void send_call(struct minrpc_server *server)
{
	const struct minrpc_reply *reply = &server->reply;
	const TVMByteArray *bytes = reply->value.v_handle;
	int wire_code = reply->type_code;

	switch (reply->type_code) {
	case kTVMStr:
		send_bytes(server, reply->value.v_str, (uint32_t)strlen(reply->value.v_str));
		return;
	case kTVMBytes:
		send_bytes(server, bytes->data, (uint32_t)bytes->size);
		return;
	case kTVMNDArrayHandle:
		send_ndarray(server, reply->value.v_handle);
		return;
	case kTVMModuleHandle:
	case kTVMPackedFuncHandle:
		wire_code = kTVMOpaqueHandle;
		break;
	default:
		break;
	}
	open_call(server, 2U, wire_code, wire_code == kTVMNullptr ? 0U : 8U);
	if (wire_code != kTVMNullptr) {
		put_u64(server, (uint64_t)reply->value.v_int64);
	}
}

/* What a system call returns: one value, null or a handle. */
static void send_value(struct minrpc_server *server)
{
	const uint32_t head[] = {1U, (uint32_t)server->reply.type_code};
	bool handle = server->reply.type_code == kTVMOpaqueHandle;

	open(server, MINRPC_RPC_RETURN, sizeof(head) + (handle ? 8U : 0U));
	put(server, head, sizeof(head));
	if (handle) {
		put_u64(server, (uint64_t)server->reply.value.v_int64);
	}
}

static void send_exception(struct minrpc_server *server)
{
	const uint32_t head[] = {1U, kTVMStr};
	uint32_t size = (uint32_t)strlen(server->error);

	open(server, MINRPC_RPC_EXCEPTION, (uint32_t)sizeof(head) + 8U + size);
	put(server, head, sizeof(head));
	put_bytes(server, server->error, size);
}

void minrpc_reply_send(struct minrpc_server *server)
{
	switch (server->reply.kind) {
	case MINRPC_REPLY_VALUE:
		send_value(server);
		break;
	case MINRPC_REPLY_CALL:
		send_call(server);
		break;
	case MINRPC_REPLY_DATA:
		open(server, MINRPC_RPC_COPY_ACK, server->reply.size);
		put(server, server->reply.value.v_handle, server->reply.size);
		break;
	case MINRPC_REPLY_EXCEPTION:
		send_exception(server);
		break;
	default:
		return;
	}
	close(server);
}

static tvm_crt_error_t set(struct minrpc_server *server, enum minrpc_reply_kind kind, int type_code,
			   TVMValue value)
{
	server->reply.kind = (uint8_t)kind;
	server->reply.type_code = type_code;
	server->reply.value = value;
	return kTvmErrorNoError;
}

tvm_crt_error_t minrpc_reply_void(struct minrpc_server *server)
{
	return set(server, MINRPC_REPLY_VALUE, kTVMNullptr, (TVMValue){.v_int64 = 0});
}

tvm_crt_error_t minrpc_reply_handle(struct minrpc_server *server, uintptr_t handle)
{
	return set(server, MINRPC_REPLY_VALUE, kTVMOpaqueHandle,
		   (TVMValue){.v_int64 = (int64_t)(uint64_t)handle});
}

tvm_crt_error_t minrpc_reply_data(struct minrpc_server *server, void *data, uint32_t size)
{
	server->reply.size = size;
	return set(server, MINRPC_REPLY_DATA, kTVMNullptr, (TVMValue){.v_handle = data});
}

tvm_crt_error_t minrpc_reply_call(struct minrpc_server *server, const struct minrpc_call *call)
{
	int type_code = call->type_code;
	uint32_t size;
	/* An array must be one that the client can name again; a bool is a code that only the newest clients know. */
	bool good = type_code == kTVMNDArrayHandle
			    ? minrpc_arena_find(&server->arena, (uintptr_t)call->value.v_handle,
						MINRPC_ARENA_NDARRAY, &size)
			    : type_code >= kTVMArgInt && type_code <= kTVMArgBool &&
				      type_code != kTVMDLTensorHandle &&
				      type_code != kTVMObjectHandle &&
				      type_code != kTVMObjectRValueRefArg;

	if (!good) {
		return minrpc_server_fail(server, kTvmErrorFunctionCallWrongArgType,
					  "the function returned a %s that can't be sent",
					  minrpc_type_name(type_code));
	}
	return set(server, MINRPC_REPLY_CALL, type_code == kTVMArgBool ? kTVMArgInt : type_code,
		   call->value);
}
