/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The part of DLPack's data model that packed functions use, with the same names and layout.
 */
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
	kDLCPU = 1,
} DLDeviceType;

typedef enum {
	kDLInt = 0U,
	kDLUInt = 1U,
	kDLFloat = 2U,
	kDLOpaqueHandle = 3U,
	kDLBfloat = 4U,
} DLDataTypeCode;

typedef struct {
	uint8_t code;   /* DLDataTypeCode */
	uint8_t bits;   /* of one lane */
	uint16_t lanes; /* 1 for a scalar */
} DLDataType;

typedef struct {
	DLDeviceType device_type;
	int device_id;
} DLDevice;

typedef DLDevice DLContext; /* the name until v0.7 */

typedef struct {
	void *data;
	union {
		DLDevice device;
		DLDevice ctx; /* the name until v0.7 */
	};
	int32_t ndim;
	DLDataType dtype;
	int64_t *shape;
	int64_t *strides; /* NULL: compact, row major */
	uint64_t byte_offset;
} DLTensor;

#ifdef __cplusplus
}
#endif

#endif /* DLPACK_DLPACK_H_ */
