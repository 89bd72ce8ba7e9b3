/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Replies: each is one session message whose length is known before its first byte is sent.
 */
#include <string.h>

#include "rpc.h"

static void put_u32(struct minrpc_server *server, uint32_t value)
{
	minrpc_writer_put(&server->writer, &value, sizeof(value));
}

static void put_u64(struct minrpc_server *server, uint64_t value)
{
	minrpc_writer_put(&server->writer, &value, sizeof(value));
}

/* `size` bytes follow the code. */
static void open(struct minrpc_server *server, enum minrpc_rpc_code code, uint32_t size)
{
	const uint8_t header[] = {(uint8_t)server->session.id, (uint8_t)(server->session.id >> 8),
				  MINRPC_MESSAGE_NORMAL};

	minrpc_writer_begin(&server->writer, MINRPC_SESSION_HEADER + MINRPC_PACKET_LENGTH +
						     MINRPC_PACKET_CODE + size);
	minrpc_writer_put(&server->writer, header, sizeof(header));
	put_u64(server, (uint64_t)MINRPC_PACKET_CODE + size);
	put_u32(server, code);
}

static void close(struct minrpc_server *server)
{
	(void)minrpc_writer_end(&server->writer);
}

void minrpc_reply_void(struct minrpc_server *server)
{
	open(server, MINRPC_RPC_RETURN, 8U);
	put_u32(server, 1U);
	put_u32(server, kTVMNullptr);
	close(server);
}

void minrpc_reply_handle(struct minrpc_server *server, uint64_t handle)
{
	open(server, MINRPC_RPC_RETURN, 16U);
	put_u32(server, 1U);
	put_u32(server, kTVMOpaqueHandle);
	put_u64(server, handle);
	close(server);
}

/* As a string or as bytes: the same form. */
static void put_bytes(struct minrpc_server *server, const void *data, uint32_t size)
{
	put_u64(server, size);
	minrpc_writer_put(&server->writer, data, size);
}

void minrpc_reply_exception(struct minrpc_server *server)
{
	uint32_t size = (uint32_t)strlen(server->error);

	open(server, MINRPC_RPC_EXCEPTION, 16U + size);
	put_u32(server, 1U);
	put_u32(server, kTVMStr);
	put_bytes(server, server->error, size);
	close(server);
}

void minrpc_reply_data(struct minrpc_server *server, const void *data, uint32_t size)
{
	open(server, MINRPC_RPC_COPY_ACK, size);
	minrpc_writer_put(&server->writer, data, size);
	close(server);
}

/* Count, type codes, and the first value, which says what the function returned; `size` bytes follow. */
static void open_call(struct minrpc_server *server, uint32_t count, int type_code, int wire_code,
		      uint32_t size)
{
	open(server, MINRPC_RPC_RETURN, 4U + 4U * count + 8U + size);
	put_u32(server, count);
	put_u32(server, kTVMArgInt);
	put_u32(server, (uint32_t)wire_code);
	if (count == 3U) {
		put_u32(server, kTVMOpaqueHandle);
	}
	put_u64(server, (uint64_t)type_code);
}

static void reply_bytes(struct minrpc_server *server, int type_code, const char *data, uint32_t size)
{
	open_call(server, 2U, type_code, type_code, 8U + size);
	put_bytes(server, data, size);
	close(server);
}

static void reply_ndarray(struct minrpc_server *server, const DLTensor *tensor)
{
	bool offset = server->dialect != MINRPC_DIALECT_0_7;
	uint32_t shape = (uint32_t)tensor->ndim * (uint32_t)sizeof(int64_t);

	open_call(server, 3U, kTVMNDArrayHandle, kTVMDLTensorHandle,
		  32U + shape + (offset ? 8U : 0U));
	put_u64(server, (uintptr_t)tensor->data);
	minrpc_writer_put(&server->writer, &tensor->device, sizeof(tensor->device));
	put_u32(server, (uint32_t)tensor->ndim);
	minrpc_writer_put(&server->writer, &tensor->dtype, sizeof(tensor->dtype));
	minrpc_writer_put(&server->writer, tensor->shape, shape);
	if (offset) {
		put_u64(server, tensor->byte_offset);
	}
	put_u64(server, (uintptr_t)tensor);
	close(server);
}

static void reply_scalar(struct minrpc_server *server, int type_code, int wire_code, uint64_t value)
{
	open_call(server, 2U, type_code, wire_code, wire_code == kTVMNullptr ? 0U : 8U);
	if (wire_code != kTVMNullptr) {
		put_u64(server, value);
	}
	close(server);
}

static tvm_crt_error_t fail_type(struct minrpc_server *server, int type_code)
{
	return minrpc_server_fail(server, kTvmErrorFunctionCallWrongArgType,
				  "the function returned a %s that can't be sent",
				  minrpc_type_name(type_code));
}

tvm_crt_error_t minrpc_reply_call(struct minrpc_server *server, const struct minrpc_call *call)
{
	const TVMByteArray *bytes = call->value.v_handle;
	uint64_t value = (uint64_t)call->value.v_int64;
	uint32_t size;

	switch (call->type_code) {
	case kTVMArgInt:
	case kTVMArgUInt:
	case kTVMArgFloat:
	case kTVMNullptr:
	case kTVMDataType:
	case kDLDevice:
		reply_scalar(server, call->type_code, call->type_code, value);
		break;
	case kTVMArgBool: /* a code that only the newest clients know */
		reply_scalar(server, kTVMArgInt, kTVMArgInt, value);
		break;
	case kTVMOpaqueHandle:
	case kTVMModuleHandle:
	case kTVMPackedFuncHandle:
		reply_scalar(server, call->type_code, kTVMOpaqueHandle, value);
		break;
	case kTVMStr:
		reply_bytes(server, kTVMStr, call->value.v_str, (uint32_t)strlen(call->value.v_str));
		break;
	case kTVMBytes:
		reply_bytes(server, kTVMBytes, bytes->data, (uint32_t)bytes->size);
		break;
	case kTVMNDArrayHandle:
		/* Only one that the client could name again. */
		if (!minrpc_arena_find(&server->arena, (uintptr_t)call->value.v_handle,
				       MINRPC_ARENA_NDARRAY, &size)) {
			return fail_type(server, call->type_code);
		}
		reply_ndarray(server, call->value.v_handle);
		break;
	default:
		return fail_type(server, call->type_code);
	}
	return kTvmErrorNoError;
}
