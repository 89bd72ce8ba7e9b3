/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Replies. One is described first and then sent, so that it can be sent again. Each is one session message whose
 * length comes before its content: it is encoded once to be measured, and once more to be written.
 */
#include <string.h>

#include "rpc.h"

static void put(struct minrpc_server *server, const void *data, uint32_t size)
{
	server->reply_length += size;
	if (!server->writer.open) {
		return;
	}
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

static void put_ndarray(struct minrpc_server *server, const DLTensor *tensor)
{
	put_u64(server, (uintptr_t)tensor->data);
	put(server, &tensor->device, sizeof(tensor->device));
	put_u32(server, (uint32_t)tensor->ndim);
	put(server, &tensor->dtype, sizeof(tensor->dtype));
	put(server, tensor->shape, (uint32_t)tensor->ndim * (uint32_t)sizeof(int64_t));
	if (server->dialect != MINRPC_DIALECT_0_7) {
		put_u64(server, tensor->byte_offset);
	}
	put_u64(server, (uintptr_t)tensor);
}

static void put_value(struct minrpc_server *server)
{
	const struct minrpc_reply *reply = &server->reply;

	switch (reply->type_code) {
	case kTVMNullptr:
		break;
	case kTVMStr:
	case kTVMBytes:
		put_u64(server, reply->size);
		put(server, reply->value.v_handle, reply->size);
		break;
	case kTVMNDArrayHandle:
		put_ndarray(server, reply->value.v_handle);
		break;
	default:
		put_u64(server, (uint64_t)reply->value.v_int64);
		break;
	}
}

/* How a returned value's type is told on the wire. */
static uint32_t wire_code(int type_code)
{
	if (type_code == kTVMModuleHandle || type_code == kTVMPackedFuncHandle) {
		return kTVMOpaqueHandle;
	}
	return type_code == kTVMNDArrayHandle ? (uint32_t)kTVMDLTensorHandle : (uint32_t)type_code;
}

/* One value; before that of a function its real type goes as a value too, and an array's handle is one more. */
static void put_values(struct minrpc_server *server)
{
	const struct minrpc_reply *reply = &server->reply;
	uint32_t code = wire_code(reply->type_code);
	uint32_t array = reply->type_code == kTVMNDArrayHandle;

	if (reply->kind == MINRPC_REPLY_CALL) {
		put_u32(server, 2U + array);
		put_u32(server, kTVMArgInt);
		put_u32(server, code);
		if (array != 0U) {
			put_u32(server, kTVMOpaqueHandle);
		}
		put_u64(server, (uint64_t)reply->type_code);
	} else {
		put_u32(server, 1U);
		put_u32(server, code);
	}
	put_value(server);
}

/* The message. `size` is the packet's, known the second time. */
static void put_message(struct minrpc_server *server, uint32_t size)
{
	static const uint8_t codes[] = {
		[MINRPC_REPLY_VALUE] = MINRPC_RPC_RETURN,
		[MINRPC_REPLY_CALL] = MINRPC_RPC_RETURN,
		[MINRPC_REPLY_DATA] = MINRPC_RPC_COPY_ACK,
		[MINRPC_REPLY_EXCEPTION] = MINRPC_RPC_EXCEPTION,
	};
	const uint8_t header[] = {
		(uint8_t)server->session.id,
		(uint8_t)(server->session.id >> 8),
		server->numbered ? MINRPC_MESSAGE_NUMBERED : MINRPC_MESSAGE_NORMAL,
		server->sequence,
	};

	server->check = 0U;
	server->reply_length = 0U;
	put(server, header, MINRPC_SESSION_HEADER + server->numbered);
	put_u64(server, size);
	put_u32(server, codes[server->reply.kind]);
	if (server->reply.kind == MINRPC_REPLY_DATA) {
		put(server, server->reply.value.v_handle, server->reply.size);
	} else {
		put_values(server);
	}
	if (server->numbered) {
		put_u32(server, server->check);
	}
}

void minrpc_reply_send(struct minrpc_server *server)
{
	uint32_t around = MINRPC_SESSION_HEADER + MINRPC_PACKET_LENGTH +
			  (server->numbered ? MINRPC_NUMBERED_EXTRA : 0U);

	if (server->reply.kind == MINRPC_REPLY_NONE) {
		return;
	}
	put_message(server, 0U);
	minrpc_writer_begin(&server->writer, server->reply_length);
	put_message(server, server->reply_length - around);
	(void)minrpc_writer_end(&server->writer);
}

static tvm_crt_error_t set(struct minrpc_server *server, enum minrpc_reply_kind kind, int type_code,
			   uint64_t value)
{
	server->reply.kind = (uint8_t)kind;
	server->reply.type_code = type_code;
	server->reply.value.v_int64 = (int64_t)value;
	return kTvmErrorNoError;
}

tvm_crt_error_t minrpc_reply_void(struct minrpc_server *server)
{
	return set(server, MINRPC_REPLY_VALUE, kTVMNullptr, 0U);
}

tvm_crt_error_t minrpc_reply_handle(struct minrpc_server *server, uintptr_t handle)
{
	return set(server, MINRPC_REPLY_VALUE, kTVMOpaqueHandle, handle);
}

tvm_crt_error_t minrpc_reply_data(struct minrpc_server *server, void *data, uint32_t size)
{
	server->reply.size = size;
	return set(server, MINRPC_REPLY_DATA, kTVMNullptr, (uintptr_t)data);
}

void minrpc_reply_exception(struct minrpc_server *server)
{
	server->reply.size = (uint32_t)strlen(server->error);
	(void)set(server, MINRPC_REPLY_EXCEPTION, kTVMStr, (uintptr_t)server->error);
}

/* What a function may return. A tensor or an object would be gone before the client could name it. */
#define RETURNABLE                                                                                 \
	(1U << kTVMArgInt | 1U << kTVMArgUInt | 1U << kTVMArgFloat | 1U << kTVMOpaqueHandle |      \
	 1U << kTVMNullptr | 1U << kTVMDataType | 1U << kDLDevice | 1U << kTVMModuleHandle |       \
	 1U << kTVMPackedFuncHandle | 1U << kTVMStr | 1U << kTVMBytes | 1U << kTVMNDArrayHandle |  \
	 1U << kTVMArgBool)

tvm_crt_error_t minrpc_reply_call(struct minrpc_server *server, const struct minrpc_call *call)
{
	uint32_t type_code = (uint32_t)call->type_code;
	TVMValue value = call->value;
	uint32_t size;

	/* An array must be one that the client can name again. */
	if (type_code > kTVMArgBool || (RETURNABLE >> type_code & 1U) == 0U ||
	    (type_code == kTVMNDArrayHandle &&
	     !minrpc_arena_find(&server->arena, (uintptr_t)call->value.v_handle,
				MINRPC_ARENA_NDARRAY, &size))) {
		return minrpc_server_fail(server, kTvmErrorFunctionCallWrongArgType,
					  "the function returned a %s that can't be sent",
					  minrpc_type_name(call->type_code));
	}
	if (type_code == kTVMStr) {
		server->reply.size = (uint32_t)strlen(value.v_str);
	} else if (type_code == kTVMBytes) {
		const TVMByteArray *bytes = value.v_handle;

		server->reply.size = (uint32_t)bytes->size;
		value.v_str = bytes->data;
	}
	/* Only the newest clients know the code of a bool. */
	return set(server, MINRPC_REPLY_CALL, type_code == kTVMArgBool ? kTVMArgInt : (int)type_code,
		   (uint64_t)value.v_int64);
}
