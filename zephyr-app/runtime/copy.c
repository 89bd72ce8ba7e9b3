/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Memory that a client names, and copies to and from it. An address must be the start of a live
 * block, or lie in the memory that the port declares as read-only. Every byte of an access must lie
 * inside.
 */
#include <string.h>

#include "rpc.h"

/* One end of a copy, in either dialect. */
struct span {
	uintptr_t data;
	uint32_t offset;
	uint32_t size;
};

/* The kinds of blocks that clients may name: data, code, and memory that a function shares. */
static const uint32_t nameable = (uint32_t)MINRPC_ARENA_DATA | (uint32_t)MINRPC_ARENA_SHARED |
				 (uint32_t)MINRPC_ARENA_CODE | (uint32_t)MINRPC_ARENA_CODE_IN_USE;

/* Finds the number of bytes at this address; false when the client may not name it. */
static bool find_memory(struct minrpc_server *server, uintptr_t address, bool writable,
			uint32_t *size)
{
	const struct minrpc_config *config = server->config;
	uintptr_t within = address - (uintptr_t)config->read_only;

	if (minrpc_arena_find(&server->arena, address, nameable, size)) {
		return true;
	}
#if MINRPC_CODE_LOADING
	if (minrpc_arena_find(minrpc_code_arena(server), address, nameable, size)) {
		return true;
	}
#endif
	*size = config->read_only_size - (uint32_t)within;
	return !writable && within < config->read_only_size;
}

/* Returns the address in the device's memory, or NULL after a failure. */
static uint8_t *locate(struct minrpc_server *server, const struct span *span, bool writable)
{
	uint32_t size;

	if (span->size == MINRPC_NO_SIZE) {
		(void)minrpc_fail_shape(server);
	} else if (!find_memory(server, span->data, writable, &size)) {
		(void)minrpc_fail_handle(server, kTVMDLTensorHandle, span->data);
	} else if (span->offset > size || span->size > size - span->offset) {
		(void)minrpc_fail(server, "%u bytes at %u in an allocation of %u",
				  (unsigned int)span->size, (unsigned int)span->offset,
				  (unsigned int)size);
	} else {
		return (uint8_t *)span->data + span->offset;
	}
	return NULL;
}

static void set_span(struct span *span, const DLTensor *tensor, const void *extents)
{
	span->data = (uintptr_t)tensor->data;
	span->offset = minrpc_size(tensor->byte_offset);
	span->size = minrpc_tensor_size(tensor, extents);
}

bool minrpc_bind_tensor(struct minrpc_server *server, DLTensor *tensor, bool writable)
{
	/*
	 * The alignment of an element is the largest power of two that divides its size, up to 8
	 * bytes.
	 */
	uintptr_t element = (tensor->dtype.bits + 7U) / 8U | 8U;
	struct span span;
	uint8_t *at;

	set_span(&span, tensor, tensor->shape);
	at = locate(server, &span, writable);
	if (at == NULL) {
		return false;
	}
	/* Functions access elements in place, and some cores fault on unaligned elements. */
	if (((uintptr_t)at & ((element & -element) - 1U)) != 0U) {
		return minrpc_fail(server, "unaligned byte offset %u", (unsigned int)span.offset);
	}
	tensor->data = at;
	tensor->byte_offset = 0U;
	return true;
}

/* Reads an address and an offset in v0.7's form. */
static void take_end(struct minrpc_cursor *cursor, struct span *span)
{
	span->data = minrpc_take_handle(cursor);
	span->offset = minrpc_take_size(cursor);
}

/* Reads v0.7's header: data, offset, size, device, dtype. Returns the number of bytes to copy. */
static uint32_t take_0_7(struct minrpc_cursor *body, struct span *span)
{
	take_end(body, span);
	span->size = minrpc_take_size(body);
	(void)minrpc_take_bytes(body, sizeof(DLDevice) + sizeof(DLDataType));
	return span->size;
}

/* Reads v0.8's header: a tensor, and the number of bytes to copy, which it returns. */
static uint32_t take_0_8(struct minrpc_cursor *body, struct span *span)
{
	DLTensor tensor;
	const uint8_t *extents = minrpc_take_tensor(body, MINRPC_DIALECT_0_8, &tensor);
	uint32_t size = minrpc_take_size(body);

	if (!minrpc_cursor_bad(body)) {
		set_span(span, &tensor, extents);
	}
	return size;
}

/*
 * Reads the header of a copy from `body`, of which `beyond` bytes have not arrived. Returns the
 * address of the data. The length of the body shows the dialect: v0.8's ndim and dtype, read as
 * v0.7's size, never give a plausible length.
 */
static uint8_t *take_header(struct minrpc_server *server, struct minrpc_cursor *body,
			    uint32_t beyond, bool carries_data, struct span *span)
{
	const struct minrpc_cursor start = *body;

	for (uint8_t dialect = MINRPC_DIALECT_0_7; dialect <= MINRPC_DIALECT_0_8; dialect++) {
		uint32_t size;

		*body = start;
		size = dialect == MINRPC_DIALECT_0_7 ? take_0_7(body, span) : take_0_8(body, span);
		if (!minrpc_cursor_bad(body) && size <= span->size &&
		    minrpc_cursor_left(body) + beyond == size * carries_data) {
			server->dialect = dialect;
			/* locate reports a malformed shape. */
			if (span->size != MINRPC_NO_SIZE) {
				span->size = size;
			}
			return locate(server, span, carries_data);
		}
	}
	(void)minrpc_fail(server, "malformed copy");
	return NULL;
}

bool minrpc_copy_from_remote(struct minrpc_server *server, struct minrpc_cursor *body)
{
	struct span span;
	uint8_t *at = take_header(server, body, 0U, false, &span);

	if (at == NULL) {
		return false;
	}
	return minrpc_reply_data(server, at, span.size);
}

uint8_t *minrpc_copy_stream(struct minrpc_server *server, struct minrpc_cursor *body,
			    uint32_t beyond)
{
	struct span span;

	return take_header(server, body, beyond, true, &span);
}

bool minrpc_copy_to_remote(struct minrpc_server *server, struct minrpc_cursor *body)
{
	uint8_t *at = minrpc_copy_stream(server, body, 0U);

	if (at == NULL) {
		return false;
	}
	memcpy(at, body->at, minrpc_cursor_left(body));
	return minrpc_reply_void(server);
}

/* v0.7's form has this number of arguments; v0.8's has fewer. */
#define AMONG_0_7_COUNT 9

static bool take_ends(struct minrpc_call *call, struct span *from, struct span *to)
{
	const TVMValue *values = call->args.values;
	const DLTensor *tensors[2];

	if (call->args.count == AMONG_0_7_COUNT) {
		/* The decoded arguments lie side by side, as on the wire. */
		struct minrpc_cursor ends = {(uint8_t *)call->args.values,
					     (uint8_t *)(call->args.values + AMONG_0_7_COUNT)};

		take_end(&ends, from);
		take_end(&ends, to);
		from->size = minrpc_take_size(&ends);
		to->size = from->size;
		return minrpc_check_arguments(call, "hihiiddyh");
	}
	if (!minrpc_check_arguments(call, "tth")) {
		return false;
	}
	tensors[0] = values[0].v_handle;
	tensors[1] = values[1].v_handle;
	set_span(from, tensors[0], tensors[0]->shape);
	set_span(to, tensors[1], tensors[1]->shape);
	return true;
}

bool minrpc_copy_among_remote(struct minrpc_call *call)
{
	struct minrpc_server *server = call->server;
	struct span from;
	struct span to;
	uint8_t *source;
	uint8_t *destination;

	if (!take_ends(call, &from, &to)) {
		return false;
	}
	source = locate(server, &from, false);
	destination = source == NULL ? NULL : locate(server, &to, true);
	if (destination == NULL) {
		return false;
	}
	if (from.size != to.size) {
		return minrpc_fail(server, "a copy of %u bytes to %u", (unsigned int)from.size,
				   (unsigned int)to.size);
	}
	memmove(destination, source, from.size);
	return true;
}
