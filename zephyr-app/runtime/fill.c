/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Arrays that need not travel: filled on the device, and compared by a checksum.
 */
#include <string.h>

#include <minrpc/frame.h>

#include "rpc.h"

#if MINRPC_FILL

/* Spreads each bit over all (the last step of MurmurHash3, 32 bits). */
static uint32_t mixed(uint32_t x)
{
	x ^= x >> 16;
	x *= 0x85ebca6bU;
	x ^= x >> 13;
	x *= 0xc2b2ae35U;
	return x ^ x >> 16;
}

/*
 * What belongs to element `number` under a seed that was mixed: any element can be had without
 * those before it.
 */
static uint64_t random_of(uint32_t key, uint32_t number)
{
	uint32_t low = mixed(key + 2U * number * 0x9e3779b9U);
	uint32_t high = mixed(key + (2U * number + 1U) * 0x9e3779b9U);

	return (uint64_t)high << 32 | low;
}

/*
 * The highest `precision` bits as a signed number k, and then k / 2^(precision - 1), which is from
 * -1 to below 1, in the form of a float with so many bits of precision. By integers: it is the same
 * on a device without an FPU, and for types that its C has not.
 */
static uint64_t float_of(uint64_t random, uint32_t precision, uint32_t exponent_bits)
{
	uint64_t leading = (uint64_t)1U << (precision - 1U);
	uint64_t exponent = ((uint64_t)1U << (exponent_bits - 1U)) - 1U;
	uint64_t sign = random >> 63;
	uint64_t value = random >> (64U - precision);

	if (sign != 0U) {
		value = 2U * leading - value;
	}
	if (value == 0U) {
		return 0U;
	}
	for (; value < leading; value <<= 1) {
		exponent--;
	}
	return (sign << exponent_bits | exponent) << (precision - 1U) | (value & (leading - 1U));
}

/* True, and `*random` as an element of that type; false for a type that is not filled. */
static bool as_element(const DLDataType *type, uint64_t *random)
{
	switch (type->code << 8 | type->bits) {
	case kDLFloat << 8 | 16U:
		*random = float_of(*random, 11U, 5U);
		return true;
	case kDLFloat << 8 | 32U:
		*random = float_of(*random, 24U, 8U);
		return true;
	case kDLFloat << 8 | 64U:
		*random = float_of(*random, 53U, 11U);
		return true;
	case kDLBfloat << 8 | 16U:
		*random = float_of(*random, 8U, 8U);
		return true;
	case kDLUInt << 8 | 1U:
		*random >>= 63;
		return true;
	default:
		return (type->code == kDLInt || type->code == kDLUInt) && type->bits <= 64U &&
		       type->bits % 8U == 0U;
	}
}

bool minrpc_random(struct minrpc_call *call)
{
	const TVMValue *values = call->args.values;
	const DLTensor *tensor = values[0].v_handle;
	uint32_t size = minrpc_tensor_size(tensor, tensor->shape);
	uint32_t element = (tensor->dtype.bits + 7U) / 8U;
	uint64_t seed = (uint64_t)values[1].v_int64;
	uint32_t key = mixed((uint32_t)seed) ^ mixed((uint32_t)(seed >> 32) + 1U);
	uint8_t *to = tensor->data;

	for (uint32_t number = 0U; size >= element; number++, size -= element, to += element) {
		uint64_t random = random_of(key, number);

		if (!as_element(&tensor->dtype, &random)) {
			return minrpc_fail(
				call->server, "no random elements of %u bits, type code %u",
				(unsigned int)tensor->dtype.bits, (unsigned int)tensor->dtype.code);
		}
		for (uint32_t byte = 0U; byte < element; byte++) {
			to[byte] = (uint8_t)(random >> 8U * byte);
		}
	}
	return true;
}

bool minrpc_fill(struct minrpc_call *call)
{
	const TVMValue *values = call->args.values;
	const DLTensor *tensor = values[0].v_handle;
	const TVMByteArray *pattern = values[1].v_handle;
	uint32_t size = minrpc_tensor_size(tensor, tensor->shape);
	uint8_t *to = tensor->data;

	if (pattern->size == 0U || size % pattern->size != 0U) {
		return minrpc_fail(call->server, "%u bytes are no multiple of a pattern of %u",
				   (unsigned int)size, (unsigned int)pattern->size);
	}
	for (; size != 0U; size -= (uint32_t)pattern->size, to += pattern->size) {
		memcpy(to, pattern->data, pattern->size);
	}
	return true;
}

bool minrpc_checksum(struct minrpc_call *call)
{
	const DLTensor *tensor = call->args.values[0].v_handle;
	uint32_t size = minrpc_tensor_size(tensor, tensor->shape);

	return minrpc_return_int(call, minrpc_crc32(0U, tensor->data, size));
}

#endif
