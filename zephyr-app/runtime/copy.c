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

bool minrpc_fail_shape(struct minrpc_server *server)
{
	return minrpc_server_fail(server, "bad dtype or shape, or over 4 GiB");
}

/* Where it is in the device's memory, or NULL. */
static uint8_t *locate(struct minrpc_server *server, const struct span *span)
{
	uint32_t allocated;

	if (span->size == MINRPC_NO_SIZE) {
		(void)minrpc_fail_shape(server);
	} else if (!minrpc_arena_find(&server->arena, span->data, NAMEABLE, &allocated)) {
		(void)minrpc_fail_handle(server, kTVMDLTensorHandle, span->data);
	} else if (span->offset > allocated || span->size > allocated - span->offset) {
		(void)minrpc_server_fail(server, "%u bytes at %u in an allocation of %u",
					 (unsigned int)span->size, (unsigned int)span->offset,
					 (unsigned int)allocated);
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

bool minrpc_bind_tensor(struct minrpc_server *server, DLTensor *tensor, bool constants)
{
	struct span span;
	uint8_t *at;

	set_span(&span, tensor, tensor->shape);
	if (constants && span.offset == 0U && span.size != MINRPC_NO_SIZE &&
	    minrpc_server_is_constant(server, tensor->data)) {
		return true;
	}
	at = locate(server, &span);
	if (at == NULL) {
		return false;
	}
	/* Functions read elements where they lie: on some cores one that lies askew is a fault. */
	if (span.offset % ((tensor->dtype.bits + 7U) / 8U) != 0U) {
		return minrpc_server_fail(server, "unaligned byte offset %u",
					  (unsigned int)span.offset);
	}
	tensor->data = at;
	tensor->byte_offset = 0U;
	return true;
}

/* As v0.7 names it. */
static void take_end(struct minrpc_cursor *cursor, struct span *span)
{
	span->data = minrpc_take_handle(cursor);
	span->offset = minrpc_take_size(cursor);
}

/* v0.7's header: data, offset, size, device, dtype. Each form returns how much is to be copied. */
static uint32_t take_0_7(struct minrpc_cursor *body, struct span *span)
{
	take_end(body, span);
	span->size = minrpc_take_size(body);
	(void)minrpc_take(body, sizeof(DLDevice) + sizeof(DLDataType));
	return span->size;
}

/* v0.8's: a tensor, and how much of it. */
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
 * Reads a copy's header out of a body, of which `beyond` bytes are not there yet, and returns where in the device's
 * memory it is. Its length tells the dialect: what v0.7 reads as a size is v0.8's ndim and dtype, never a plausible one.
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
			/* A shape that is none is told by who looks for its data. */
			if (span->size != MINRPC_NO_SIZE) {
				span->size = size;
			}
			return locate(server, span);
		}
	}
	(void)minrpc_server_fail(server, "malformed copy");
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

bool minrpc_copy_among_remote(struct minrpc_server *server, const struct minrpc_args *args)
{
	const TVMValue *values = args->values;
	struct span from;
	struct span to;
	uint8_t *source;
	uint8_t *destination;

	if (args->count == MINRPC_COPY_AMONG_0_7) {
		/* Decoded they lie side by side as on the wire. */
		struct minrpc_cursor ends = {(uint8_t *)args->values,
					     (uint8_t *)(args->values + args->count)};

		take_end(&ends, &from);
		take_end(&ends, &to);
		from.size = minrpc_take_size(&ends);
		to.size = from.size;
	} else {
		const DLTensor *tensors[] = {values[0].v_handle, values[1].v_handle};

		set_span(&from, tensors[0], tensors[0]->shape);
		set_span(&to, tensors[1], tensors[1]->shape);
	}
	source = locate(server, &from);
	destination = source == NULL ? NULL : locate(server, &to);
	if (destination == NULL) {
		return false;
	}
	if (from.size != to.size) {
		return minrpc_server_fail(server, "a copy of %u bytes to %u",
					  (unsigned int)from.size, (unsigned int)to.size);
	}
	memmove(destination, source, from.size);
	return minrpc_reply_void(server);
}
