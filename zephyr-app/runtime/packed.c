/*
 * SPDX-License-Identifier: Apache-2.0
 */
#include <minrpc/packed.h>

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are copied as they are on the wire");
_Static_assert(offsetof(DLTensor, ndim) == offsetof(DLTensor, device) + 8U &&
		       offsetof(DLTensor, dtype) == offsetof(DLTensor, device) + 12U &&
		       sizeof(DLDataType) == 4U,
	       "device, ndim and dtype lie side by side as on the wire");

uint32_t minrpc_size(uint64_t value)
{
	return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

uintptr_t minrpc_handle(uint64_t value)
{
	return value > UINTPTR_MAX ? UINTPTR_MAX : (uintptr_t)value;
}

uint8_t *minrpc_take(struct minrpc_cursor *cursor, uint32_t size)
{
	uint8_t *at = cursor->at;

	if (minrpc_cursor_bad(cursor) || minrpc_cursor_left(cursor) < size) {
		*cursor = (struct minrpc_cursor){NULL, NULL};
		return NULL;
	}
	cursor->at += size;
	return at;
}

/* `count` elements of at most 8 bytes; so many that their size might overflow are more than there is. */
static uint8_t *take_array(struct minrpc_cursor *cursor, uint32_t count, uint32_t size)
{
	return minrpc_take(cursor, count > UINT32_MAX / 8U ? UINT32_MAX : count * size);
}

uint32_t minrpc_take_u32(struct minrpc_cursor *cursor)
{
	const uint8_t *at = minrpc_take(cursor, sizeof(uint32_t));
	uint32_t value = 0U;

	if (at != NULL) {
		memcpy(&value, at, sizeof(value));
	}
	return value;
}

uint64_t minrpc_take_u64(struct minrpc_cursor *cursor)
{
	const uint8_t *at = minrpc_take(cursor, sizeof(uint64_t));
	uint64_t value = 0U;

	if (at != NULL) {
		memcpy(&value, at, sizeof(value));
	}
	return value;
}

uint32_t minrpc_take_size(struct minrpc_cursor *cursor)
{
	return minrpc_size(minrpc_take_u64(cursor));
}

uintptr_t minrpc_take_handle(struct minrpc_cursor *cursor)
{
	return minrpc_handle(minrpc_take_u64(cursor));
}

const uint8_t *minrpc_take_tensor(struct minrpc_cursor *cursor, enum minrpc_dialect dialect,
				  DLTensor *tensor)
{
	const uint8_t *core;
	const uint8_t *extents;

	tensor->data = (void *)minrpc_take_handle(cursor);
	core = minrpc_take(cursor, MINRPC_TENSOR_CORE_SIZE);
	if (core == NULL) {
		return NULL;
	}
	memcpy(minrpc_tensor_core(tensor), core, MINRPC_TENSOR_CORE_SIZE);
	extents = take_array(cursor, (uint32_t)tensor->ndim, sizeof(int64_t));
	tensor->strides = NULL;
	tensor->byte_offset = dialect == MINRPC_DIALECT_0_7 ? 0U : minrpc_take_u64(cursor);
	return extents;
}

uint32_t minrpc_tensor_size(const DLTensor *tensor, const void *extents)
{
	uint32_t total = ((uint32_t)tensor->dtype.bits * tensor->dtype.lanes + 7U) / 8U;
	const uint8_t *at = extents;
	bool empty = false;

	if (total == 0U) {
		return MINRPC_NO_SIZE; /* any number of elements would fit anywhere */
	}
	for (int32_t i = 0; i < tensor->ndim; i++, at += sizeof(uint64_t)) {
		uint64_t extent;

		memcpy(&extent, at, sizeof(extent));
		if (extent == 0U) {
			empty = true;
		} else if (extent > INT32_MAX ||
			   __builtin_mul_overflow(total, (uint32_t)extent, &total)) {
			return MINRPC_NO_SIZE;
		}
	}
	return empty ? 0U : total;
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

static void *store_tensor(struct minrpc_scratch *scratch, const DLTensor *wire,
			  const uint8_t *extents)
{
	uint32_t size = (uint32_t)wire->ndim * (uint32_t)sizeof(int64_t);
	DLTensor *tensor = reserve(scratch, sizeof(*tensor));
	int64_t *shape = reserve(scratch, size);

	if (scratch->full) {
		return NULL;
	}
	*tensor = *wire;
	tensor->shape = memcpy(shape, extents, size);
	return tensor;
}

/* The bytes move over their own length field: the NUL then has room. */
static void *store_bytes(struct minrpc_scratch *scratch, const uint8_t *at, uint32_t size,
			 bool string)
{
	char *to = memmove((uint8_t *)at - sizeof(uint64_t), at, size);
	TVMByteArray *array;

	to[size] = '\0';
	if (string) {
		return to;
	}
	array = reserve(scratch, sizeof(*array));
	if (array != NULL) {
		*array = (TVMByteArray){to, size};
	}
	return array;
}

/* A way through the values: without scratch they are only passed over, and nothing is touched. */
struct walk {
	struct minrpc_cursor cursor;
	struct minrpc_scratch *scratch;
	struct minrpc_args *args;
	const uint8_t *codes; /* unaligned */
	uint8_t *told;        /* the dialect, for who asked */
	uint32_t *culprit;
	enum minrpc_dialect dialect;
};

static void walk_value(struct walk *walk, uint32_t code, TVMValue *value)
{
	const uint8_t *at;
	DLTensor tensor;
	uint32_t size;

	switch (code) {
	case kTVMDLTensorHandle:
		at = minrpc_take_tensor(&walk->cursor, walk->dialect, &tensor);
		if (walk->scratch != NULL) {
			*walk->told = (uint8_t)walk->dialect;
			value->v_handle = store_tensor(walk->scratch, &tensor, at);
		}
		return;
	case kTVMStr:
	case kTVMBytes:
		size = minrpc_take_size(&walk->cursor);
		at = minrpc_take(&walk->cursor, size);
		if (walk->scratch != NULL) {
			value->v_handle = store_bytes(walk->scratch, at, size, code == kTVMStr);
		}
		return;
	case kTVMNullptr:
		value->v_int64 = 0;
		return;
	case kTVMObjectHandle:
		(void)minrpc_take_u32(&walk->cursor);
		break;
	default:
		break;
	}
	value->v_int64 = (int64_t)minrpc_take_u64(&walk->cursor);
}

static enum minrpc_packed_status walk_values(struct walk *walk)
{
	const struct minrpc_args *args = walk->args;
	TVMValue passed;

	for (int i = 0; i < args->count && !minrpc_cursor_bad(&walk->cursor); i++) {
		uint32_t code;

		memcpy(&code, walk->codes + (uint32_t)i * sizeof(code), sizeof(code));
		if (code > kTVMArgBool || (NOT_ON_WIRE >> code & 1U) != 0U) {
			*walk->culprit = code;
			return MINRPC_PACKED_TYPE;
		}
		walk_value(walk, code, walk->scratch != NULL ? &args->values[i] : &passed);
	}
	return minrpc_cursor_bad(&walk->cursor) || minrpc_cursor_left(&walk->cursor) != 0U
		       ? MINRPC_PACKED_SHORT
		       : MINRPC_PACKED_OK;
}

/* What is stored has been walked over before: only the scratch can be too small. */
static enum minrpc_packed_status store(struct walk *walk, struct minrpc_scratch *scratch)
{
	struct minrpc_args *args = walk->args;
	uint32_t count = (uint32_t)args->count;

	args->values = reserve(scratch, count * (uint32_t)sizeof(*args->values));
	args->type_codes = reserve(scratch, count * (uint32_t)sizeof(*args->type_codes));
	if (!scratch->full) {
		memcpy(args->type_codes, walk->codes, count * sizeof(*args->type_codes));
		walk->scratch = scratch;
		(void)walk_values(walk);
	}
	return scratch->full ? MINRPC_PACKED_SCRATCH : MINRPC_PACKED_OK;
}

enum minrpc_packed_status minrpc_packed_decode(struct minrpc_cursor *cursor,
					       struct minrpc_scratch *scratch,
					       uint8_t *dialect,
					       struct minrpc_args *args, uint32_t *culprit)
{
	uint32_t count = minrpc_take_u32(cursor);
	const uint8_t *codes = take_array(cursor, count, sizeof(uint32_t));
	struct walk walk = {*cursor, NULL, args, codes, dialect, culprit, MINRPC_DIALECT_0_8};
	enum minrpc_packed_status status;

	args->count = (int)count;
	status = walk_values(&walk);
	if (status == MINRPC_PACKED_SHORT) {
		walk.cursor = *cursor;
		walk.dialect = MINRPC_DIALECT_0_7;
		status = walk_values(&walk);
	}
	if (status == MINRPC_PACKED_OK) {
		walk.cursor = *cursor;
		status = store(&walk, scratch);
	}
	return status;
}

const char *minrpc_type_name(int type_code)
{
	/* One string instead of a table of pointers: on a 32-bit device that halves it. */
	static const char names[] = "int\0uint\0float\0handle\0null\0dtype\0device\0tensor\0object\0module\0"
				    "function\0string\0bytes\0ndarray\0rvalue\0bool\0unknown";
	const char *name = names;

	if ((uint32_t)type_code > kTVMArgBool) {
		type_code = kTVMArgBool + 1;
	}
	while (type_code-- > 0) {
		name += strlen(name) + 1U;
	}
	return name;
}
