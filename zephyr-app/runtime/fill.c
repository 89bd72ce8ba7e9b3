/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Fills arrays on the device and computes their checksums, so that their content need not travel.
 */
#include <string.h>

#include <minrpc/frame.h>

#include "rpc.h"

#if MINRPC_FILL

/*
 * Returns 64 random bits for element `number`, by Threefry-2x32 with 20 rounds: the key is the
 * seed, the counter is the number. Each seed has its own sequence, and each element can be computed
 * without the ones before it. (J. K. Salmon and others, "Parallel random numbers: as easy as 1, 2,
 * 3", SC11.)
 */
static uint64_t random_of(uint64_t seed, uint32_t number)
{
	static const uint8_t rotations[] = {13U, 15U, 26U, 6U, 17U, 29U, 16U, 24U};
	const uint32_t low = (uint32_t)seed;
	const uint32_t high = (uint32_t)(seed >> 32);
	const uint32_t keys[] = {low, high, 0x1bd11bdaU ^ low ^ high};
	uint32_t x = number + low;
	uint32_t y = high;

	for (uint32_t round = 1U; round <= 20U; round++) {
		uint32_t rotation = rotations[(round - 1U) % 8U];

		x += y;
		y = (y << rotation | y >> (32U - rotation)) ^ x;
		if (round % 4U == 0U) {
			uint32_t step = round / 4U;

			x += keys[step % 3U];
			y += keys[(step + 1U) % 3U] + step;
		}
	}
	return (uint64_t)y << 32 | x;
}

/*
 * Converts random bits to a float. The highest `precision` bits are a signed number k. The float is
 * k / 2^(precision - 1), from -1 to below 1. Integer arithmetic gives the same result without an
 * FPU, and for types that C lacks.
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

/* Converts `*random` to an element of this type; false when the type is not supported. */
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
		return type->lanes == 1U; /* lanes of a bit share bytes */
	default:
		return (type->code == kDLInt || type->code == kDLUInt) && type->bits <= 64U &&
		       type->bits % 8U == 0U;
	}
}

bool minrpc_threefry(struct minrpc_call *call)
{
	const TVMValue *values = call->args.values;
	const DLTensor *tensor = values[0].v_handle;
	uint32_t size = minrpc_tensor_size(tensor, tensor->shape);
	uint32_t element = (tensor->dtype.bits + 7U) / 8U;
	uint64_t seed = (uint64_t)values[1].v_int64;
	uint8_t *to = tensor->data;

	for (uint32_t number = 0U; size >= element; number++, size -= element, to += element) {
		uint64_t random = random_of(seed, number);

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
