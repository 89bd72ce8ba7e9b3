/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include <minrpc/packed.h>

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are copied as they are on the wire");

uint8_t *minrpc_take(struct minrpc_cursor *cursor, uint32_t size)
{
	uint8_t *at = cursor->at;

	if (minrpc_cursor_left(cursor) < size) {
		cursor->bad = true;
		cursor->at = cursor->end;
		return NULL;
	}
	cursor->at += size;
	return at;
}

static void take_copy(struct minrpc_cursor *cursor, void *out, uint32_t size)
{
	const uint8_t *at = minrpc_take(cursor, size);

	memset(out, 0, size);
	if (at != NULL) {
		memcpy(out, at, size);
	}
}

uint32_t minrpc_take_u32(struct minrpc_cursor *cursor)
{
	uint32_t value;

	take_copy(cursor, &value, sizeof(value));
	return value;
}

uint64_t minrpc_take_u64(struct minrpc_cursor *cursor)
{
	uint64_t value;

	take_copy(cursor, &value, sizeof(value));
	return value;
}

uint32_t minrpc_take_size(struct minrpc_cursor *cursor)
{
	uint64_t value = minrpc_take_u64(cursor);

	return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

void minrpc_take_tensor(struct minrpc_cursor *cursor, enum minrpc_dialect dialect,
			struct minrpc_wire_tensor *tensor)
{
	tensor->data = minrpc_take_u64(cursor);
	take_copy(cursor, &tensor->device, sizeof(tensor->device));
	tensor->ndim = minrpc_take_u32(cursor);
	take_copy(cursor, &tensor->dtype, sizeof(tensor->dtype));
	if (tensor->ndim > minrpc_cursor_left(cursor) / sizeof(int64_t)) {
		cursor->bad = true;
		tensor->ndim = 0U;
	}
	tensor->shape = minrpc_take(cursor, tensor->ndim * (uint32_t)sizeof(int64_t));
	tensor->byte_offset = dialect == MINRPC_DIALECT_0_7 ? 0U : minrpc_take_u64(cursor);
}

bool minrpc_wire_tensor_size(const struct minrpc_wire_tensor *tensor, uint32_t *bytes)
{
	uint32_t total = ((uint32_t)tensor->dtype.bits * tensor->dtype.lanes + 7U) / 8U;
	bool empty = false;

	if (total == 0U) {
		return false; /* any number of elements would fit anywhere */
	}
	for (uint32_t i = 0U; i < tensor->ndim; i++) {
		uint64_t extent;

		memcpy(&extent, tensor->shape + i * sizeof(extent), sizeof(extent));
		if (extent > INT32_MAX) {
			return false;
		}
		if (extent == 0U) {
			empty = true;
		} else if (__builtin_mul_overflow(total, (uint32_t)extent, &total)) {
			return false;
		}
	}
	*bytes = empty ? 0U : total;
	return true;
}

bool minrpc_tensor_size(const DLTensor *tensor, uint32_t *bytes)
{
	struct minrpc_wire_tensor wire = {
		.dtype = tensor->dtype,
		.ndim = (uint32_t)tensor->ndim,
		.shape = (const uint8_t *)tensor->shape,
	};

	return minrpc_wire_tensor_size(&wire, bytes);
}

/* Codes that have no form on the wire: NDArrays go as tensors, and rvalue references never. */
#define NOT_ON_WIRE (1U << kTVMNDArrayHandle | 1U << kTVMObjectRValueRefArg)

static void *reserve(struct minrpc_scratch *scratch, uint32_t size)
{
	uint8_t *at = scratch->at + (-(uintptr_t)scratch->at & (sizeof(uint64_t) - 1U));

	if (at > scratch->end || (uint32_t)(scratch->end - at) < size) {
		scratch->full = true;
		return NULL;
	}
	scratch->at = at + size;
	return at;
}

static void store_tensor(struct minrpc_scratch *scratch, const struct minrpc_wire_tensor *wire,
			 TVMValue *value)
{
	DLTensor *tensor = reserve(scratch, sizeof(*tensor));
	int64_t *shape = reserve(scratch, wire->ndim * (uint32_t)sizeof(*shape));

	if (scratch->full) {
		return;
	}
	memcpy(shape, wire->shape, wire->ndim * sizeof(*shape));
	*tensor = (DLTensor){
		.data = (void *)minrpc_handle(wire->data),
		.device = wire->device,
		.ndim = (int32_t)wire->ndim,
		.dtype = wire->dtype,
		.shape = shape,
		.byte_offset = wire->byte_offset,
	};
	value->v_handle = tensor;
}

/* The bytes move over their own length field: the NUL then has room. */
static void store_bytes(struct minrpc_scratch *scratch, char *at, uint32_t size, bool string,
			TVMValue *value)
{
	TVMByteArray *array;
	char *to = at - sizeof(uint64_t);

	memmove(to, at, size);
	to[size] = '\0';
	value->v_str = to;
	if (string) {
		return;
	}
	array = reserve(scratch, sizeof(*array));
	if (array != NULL) {
		*array = (TVMByteArray){to, size};
		value->v_handle = array;
	}
}

/* One value. With `value` NULL it is only passed over, and nothing is touched. */
static void walk_value(struct minrpc_cursor *cursor, struct minrpc_scratch *scratch,
		       enum minrpc_dialect dialect, uint32_t code, TVMValue *value)
{
	struct minrpc_wire_tensor tensor;
	uint64_t plain = 0U;
	uint32_t size;
	uint8_t *at;

	switch (code) {
	case kTVMDLTensorHandle:
		minrpc_take_tensor(cursor, dialect, &tensor);
		if (value != NULL) {
			store_tensor(scratch, &tensor, value);
		}
		return;
	case kTVMStr:
	case kTVMBytes:
		size = minrpc_take_size(cursor);
		at = minrpc_take(cursor, size);
		if (value != NULL) {
			store_bytes(scratch, (char *)at, size, code == kTVMStr, value);
		}
		return;
	case kTVMObjectHandle:
		(void)minrpc_take_u32(cursor);
		break;
	default:
		break;
	}
	if (code != kTVMNullptr) {
		plain = minrpc_take_u64(cursor);
	}
	if (value != NULL) {
		value->v_int64 = (int64_t)plain;
	}
}

/* Goes through all values, and stores them when there is scratch to store them in. */
static enum minrpc_packed_status walk(struct minrpc_cursor cursor, struct minrpc_scratch *scratch,
				      enum minrpc_dialect dialect, struct minrpc_args *args,
				      uint32_t *culprit)
{
	uint32_t count = minrpc_take_u32(&cursor);
	struct minrpc_cursor codes = cursor;

	if (count > minrpc_cursor_left(&cursor) / sizeof(int32_t)) {
		return MINRPC_PACKED_SHORT;
	}
	(void)minrpc_take(&cursor, count * (uint32_t)sizeof(int32_t));
	args->count = (int)count;
	if (scratch != NULL) {
		args->values = reserve(scratch, count * (uint32_t)sizeof(*args->values));
		args->type_codes = reserve(scratch, count * (uint32_t)sizeof(*args->type_codes));
	}
	for (uint32_t i = 0U; i < count && !cursor.bad; i++) {
		uint32_t code = minrpc_take_u32(&codes);

		if (code > kTVMArgBool || (NOT_ON_WIRE >> code & 1U) != 0U) {
			*culprit = code;
			return MINRPC_PACKED_TYPE;
		}
		if (scratch != NULL && scratch->full) {
			return MINRPC_PACKED_SCRATCH;
		}
		if (scratch != NULL) {
			args->type_codes[i] = (int)code;
		}
		walk_value(&cursor, scratch, dialect, code, scratch != NULL ? &args->values[i] : NULL);
	}
	if (scratch != NULL && scratch->full) {
		return MINRPC_PACKED_SCRATCH;
	}
	return cursor.bad || cursor.at != cursor.end ? MINRPC_PACKED_SHORT : MINRPC_PACKED_OK;
}

enum minrpc_packed_status minrpc_packed_decode(struct minrpc_cursor *cursor,
					       struct minrpc_scratch *scratch,
					       uint8_t *dialect,
					       struct minrpc_args *args, uint32_t *culprit)
{
	enum minrpc_dialect fits = MINRPC_DIALECT_0_8;
	enum minrpc_packed_status status = walk(*cursor, NULL, fits, args, culprit);

	if (status == MINRPC_PACKED_SHORT) {
		fits = MINRPC_DIALECT_0_7;
		status = walk(*cursor, NULL, fits, args, culprit);
	}
	if (status != MINRPC_PACKED_OK) {
		return status;
	}
	status = walk(*cursor, scratch, fits, args, culprit);
	for (int i = 0; status == MINRPC_PACKED_OK && i < args->count; i++) {
		if (args->type_codes[i] == kTVMDLTensorHandle) {
			*dialect = (uint8_t)fits;
		}
	}
	return status;
}

const char *minrpc_type_name(int type_code)
{
	/* One string instead of a table of pointers: on a 32-bit device that halves it. */
	static const char names[] = "int\0uint\0float\0handle\0null\0dtype\0device\0tensor\0object\0module\0"
				    "function\0string\0bytes\0ndarray\0rvalue\0bool";
	const char *name = names;

	if (type_code < kTVMArgInt || type_code > kTVMArgBool) {
		return "unknown";
	}
	while (type_code-- > 0) {
		name += strlen(name) + 1U;
	}
	return name;
}
