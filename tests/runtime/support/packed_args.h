/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Builds packed sequences for requests.
 */
#ifndef PACKED_ARGS_H_
#define PACKED_ARGS_H_

#include "wire.h"

#define ARGS_MAX 64U

/* Type codes of the wire, by their numbers in the protocol. */
enum {
	ARG_INT = 0,
	ARG_UINT = 1,
	ARG_FLOAT = 2,
	ARG_HANDLE = 3,
	ARG_NULL = 4,
	ARG_DTYPE = 5,
	ARG_DEVICE = 6,
	ARG_TENSOR = 7,
	ARG_OBJECT = 8,
	ARG_MODULE = 9,
	ARG_FUNCTION = 10,
	ARG_STRING = 11,
	ARG_BYTES = 12,
	ARG_NDARRAY = 13,
	ARG_RVALUE = 14,
	ARG_BOOL = 15,
};

struct args {
	uint32_t count;
	uint32_t codes[ARGS_MAX];
	struct bytes values;
};

/* A value of eight bytes: int, uint, handle, module, function, bool; none for null. */
void arg(struct args *args, uint32_t code, uint64_t value);
void arg_string(struct args *args, const char *text);
void arg_bytes(struct args *args, const void *data, uint32_t size);
void arg_dtype(struct args *args, uint8_t code, uint8_t bits, uint16_t lanes);
void arg_device(struct args *args);
void arg_tensor(struct args *args, enum dialect dialect, const struct tensor *tensor);

/* Appends the sequence and empties `args`. */
void put_args(struct bytes *bytes, struct args *args);

#endif /* PACKED_ARGS_H_ */
