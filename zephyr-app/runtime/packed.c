/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Decodes the arguments of requests and calls from the receive buffer into TVMValues.
 */
#include <minrpc/minrpc_config.h>
#include <minrpc/packed.h>

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "values are copied as they are on the wire");
_Static_assert(offsetof(DLTensor, ndim) == offsetof(DLTensor, device) + 8U &&
		       offsetof(DLTensor, dtype) == offsetof(DLTensor, device) + 12U &&
		       sizeof(DLDataType) == 4U,
	       "device, ndim and dtype lie side by side as on the wire");

uint32_t minrpc_size(uint64_t value)
{
	return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

/* Inlined where each call of a function needs it. */
static inline __attribute__((always_inline)) uint8_t *take(struct minrpc_cursor *cursor,
							   uint32_t size)
{
	uint8_t *at = cursor->at;

	if (minrpc_cursor_bad(cursor) || minrpc_cursor_left(cursor) < size) {
		*cursor = (struct minrpc_cursor){NULL, NULL};
		return NULL;
	}
	cursor->at += size;
	return at;
}

uint8_t *minrpc_take_bytes(struct minrpc_cursor *cursor, uint32_t size)
{
	return take(cursor, size);
}

/* Takes `count` elements of up to 8 bytes. A count whose size might overflow exceeds any packet. */
static uint8_t *take_array(struct minrpc_cursor *cursor, uint32_t count, uint32_t size)
{
	return minrpc_take_bytes(cursor, count > UINT32_MAX / 8U ? UINT32_MAX : count * size);
}

uint32_t minrpc_take_u32(struct minrpc_cursor *cursor)
{
	const uint8_t *at = take(cursor, sizeof(uint32_t));

	return at != NULL ? minrpc_get_u32(at) : 0U;
}

uint64_t minrpc_take_u64(struct minrpc_cursor *cursor)
{
	const uint8_t *at = take(cursor, sizeof(uint64_t));

	return at != NULL ? (uint64_t)minrpc_get_u32(at + 4) << 32 | minrpc_get_u32(at) : 0U;
}

uint32_t minrpc_take_size(struct minrpc_cursor *cursor)
{
	return minrpc_size(minrpc_take_u64(cursor));
}

uint8_t *minrpc_take_tensor(struct minrpc_cursor *cursor, enum minrpc_dialect dialect,
			    DLTensor *tensor)
{
	uint8_t *core = minrpc_tensor_core(tensor);
	uint8_t *extents;

	tensor->data = (void *)minrpc_take_handle(cursor);
	for (uint32_t i = 0U; i < MINRPC_TENSOR_CORE_SIZE; i += sizeof(uint64_t)) {
		uint64_t half = minrpc_take_u64(cursor);

		memcpy(core + i, &half, sizeof(half));
	}
	extents = take_array(cursor, (uint32_t)tensor->ndim, sizeof(int64_t));
	tensor->strides = NULL;
	tensor->byte_offset = 0U;
	if (dialect != MINRPC_DIALECT_0_7) {
		tensor->byte_offset = minrpc_take_u64(cursor);
	}
	return extents;
}

uint32_t minrpc_tensor_size(const DLTensor *tensor, const void *extents)
{
	uint32_t total = ((uint32_t)tensor->dtype.bits * tensor->dtype.lanes + 7U) / 8U;
	const uint8_t *at = extents;
	bool empty = false;

	if (total == 0U) {
		/* an element without size would allow any number of elements */
		return MINRPC_NO_SIZE;
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

static void *reserve(struct minrpc_cursor *scratch, uint32_t size)
{
	(void)minrpc_take_bytes(scratch,
				(uint32_t)(-(uintptr_t)scratch->at & (sizeof(uint64_t) - 1U)));
	return minrpc_take_bytes(scratch, size);
}

/* Moves a shape down to an aligned address, over bytes that have been read. */
static int64_t *align_down(uint8_t *extents, uint32_t count)
{
	uintptr_t askew = (uintptr_t)extents & (sizeof(int64_t) - 1U);

	return memmove(extents - askew, extents, count * sizeof(int64_t));
}

/* Moves a string over its own length field, which makes room for a NUL. */
static char *terminate(uint8_t *text, uint32_t size)
{
	char *to = memmove(text - sizeof(uint64_t), text, size);

	to[size] = '\0';
	return to;
}

/*
 * Reads all values once. Moves strings and shapes only when `store` is set. So a first walk checks
 * the values, and a second walk, needed only if packed->moves is set, moves them.
 */
static enum minrpc_packed_status walk(struct minrpc_packed *packed, enum minrpc_dialect dialect,
				      bool store)
{
	const struct minrpc_args *args = packed->args;
	struct minrpc_cursor cursor = packed->wire;
	struct minrpc_cursor scratch = packed->scratch;

	for (int i = 0; i < args->count; i++) {
		int code = args->type_codes[i];
		TVMValue *value = &args->values[i];
		TVMByteArray *bytes;
		DLTensor *tensor;
		uint32_t size;
		uint8_t *at;

		switch (code) {
		case kTVMDLTensorHandle:
			tensor = reserve(&scratch, sizeof(*tensor));
			if (tensor == NULL) {
				return MINRPC_PACKED_SCRATCH;
			}
			packed->moves = true;
			value->v_handle = tensor;
			at = minrpc_take_tensor(&cursor, dialect, tensor);
			if (store) {
				packed->dialect = (uint8_t)dialect;
				tensor->shape = align_down(at, (uint32_t)tensor->ndim);
			}
			break;
		case kTVMStr:
		case kTVMBytes:
			packed->moves = true;
			size = minrpc_take_size(&cursor);
			at = minrpc_take_bytes(&cursor, size);
			value->v_str = store ? terminate(at, size) : NULL;
			if (code == kTVMBytes) {
				bytes = reserve(&scratch, sizeof(*bytes));
				if (bytes == NULL) {
					return MINRPC_PACKED_SCRATCH;
				}
				*bytes = (TVMByteArray){value->v_str, size};
				value->v_handle = bytes;
			}
			break;
		case kTVMNullptr:
			value->v_int64 = 0;
			break;
		case kTVMObjectHandle:
			(void)minrpc_take_u32(&cursor); /* the object's type */
							/* fall through */
		case kTVMArgInt:
		case kTVMArgUInt:
		case kTVMArgFloat:
		case kTVMOpaqueHandle:
		case kTVMDataType:
		case kDLDevice:
		case kTVMModuleHandle:
		case kTVMPackedFuncHandle:
		case kTVMArgBool:
			value->v_int64 = (int64_t)minrpc_take_u64(&cursor);
			break;
		default: /* NDArrays travel as tensors, rvalue references not at all */
			packed->culprit = (uint32_t)code;
			return MINRPC_PACKED_TYPE;
		}
	}
	if (minrpc_cursor_bad(&cursor) || minrpc_cursor_left(&cursor) != 0U) {
		return MINRPC_PACKED_SHORT;
	}
	if (store) {
		packed->scratch = scratch;
	}
	return MINRPC_PACKED_OK;
}

enum minrpc_packed_status minrpc_packed_decode(struct minrpc_packed *packed)
{
	struct minrpc_args *args = packed->args;
	uint32_t count = minrpc_take_u32(&packed->wire);
	const uint8_t *codes = take_array(&packed->wire, count, sizeof(*args->type_codes));
	/* The known dialect comes first, else the newer dialect: bytes may be valid in both. */
	enum minrpc_dialect dialect =
		packed->dialect == MINRPC_DIALECT_0_7 ? MINRPC_DIALECT_0_7 : MINRPC_DIALECT_0_8;
	enum minrpc_packed_status status;

	if (codes == NULL) {
		return MINRPC_PACKED_SHORT;
	}
	args->count = (int)count;
	args->type_codes = reserve(&packed->scratch, count * (uint32_t)sizeof(*args->type_codes));
	args->values = reserve(&packed->scratch, count * (uint32_t)sizeof(*args->values));
	if (args->values == NULL) {
		return MINRPC_PACKED_SCRATCH;
	}
	memcpy(args->type_codes, codes, count * sizeof(*args->type_codes));
	packed->moves = false;
	status = walk(packed, dialect, false);
	if (status == MINRPC_PACKED_SHORT && packed->moves) {
		dialect = MINRPC_DIALECT_0_7 + MINRPC_DIALECT_0_8 - dialect;
		status = walk(packed, dialect, false);
	}
	return status == MINRPC_PACKED_OK && packed->moves ? walk(packed, dialect, true) : status;
}

#if MINRPC_ERROR_TEXTS
const char *minrpc_type_name(int type_code)
{
	/* One string takes half the flash of a table of pointers on a 32-bit device. */
	static const char names[] =
		"int\0uint\0float\0handle\0null\0dtype\0device\0tensor\0object\0module\0"
		"function\0string\0bytes\0ndarray\0rvalue\0bool\0unknown";
	const char *name = names;
	uint32_t index = (uint32_t)type_code > kTVMArgBool ? kTVMArgBool + 1U : (uint32_t)type_code;

	while (index-- != 0U) {
		name += strlen(name) + 1U;
	}
	return name;
}
#endif
