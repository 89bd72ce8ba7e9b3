/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * CRC-32: a second check, beside the frames' CRC-16, for links that lose bytes.
 */
#include <minrpc/frame.h>
#include <minrpc/minrpc_config.h>

#if MINRPC_NUMBERED || MINRPC_STREAMING || MINRPC_FILL

uint32_t minrpc_crc32(uint32_t crc, const void *data, uint32_t size)
{
	/* Four bits at a time: the table has 64 bytes instead of 1,024. */
	static const uint32_t table[16] = {
		0x00000000U, 0x1db71064U, 0x3b6e20c8U, 0x26d930acU, 0x76dc4190U, 0x6b6b51f4U,
		0x4db26158U, 0x5005713cU, 0xedb88320U, 0xf00f9344U, 0xd6d6a3e8U, 0xcb61b38cU,
		0x9b64c2b0U, 0x86d3d2d4U, 0xa00ae278U, 0xbdbdf21cU,
	};
	const uint8_t *at = data;

	crc = ~crc;
	for (; size != 0U; size--) {
		crc ^= *at++;
		crc = (crc >> 4) ^ table[crc & 0xfU];
		crc = (crc >> 4) ^ table[crc & 0xfU];
	}
	return ~crc;
}

#endif
