/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Error numbers with TVM's names and values: category in bits 8..14, index in bits 0..7.
 */
#ifndef TVM_RUNTIME_CRT_ERROR_CODES_H_
#define TVM_RUNTIME_CRT_ERROR_CODES_H_

#ifdef __cplusplus
extern "C" {
#endif

#define TVM_CRT_ERROR(category, index) (((category) << 8) | (index))

typedef enum {
	kTvmErrorCategoryFunctionRegistry = 1,
	kTvmErrorCategoryFraming = 2,
	kTvmErrorCategoryWriteStream = 3,
	kTvmErrorCategorySession = 4,
	kTvmErrorCategoryPlatform = 5,
	kTvmErrorCategoryGenerated = 6,
	kTvmErrorCategoryExecutor = 7,
	kTvmErrorCategoryFunctionCall = 8,
	kTvmErrorCategoryTimeEvaluator = 9,
} tvm_crt_error_category_t;

typedef enum {
	kTvmErrorNoError = 0,

	kTvmErrorFunctionNameNotFound = 0x100,
	kTvmErrorFunctionIndexInvalid = 0x101,
	kTvmErrorFunctionRegistryFull = 0x102,
	kTvmErrorFunctionAlreadyDefined = 0x103,
	kTvmErrorBufferTooSmall = 0x104,

	kTvmErrorFramingInvalidState = 0x200,
	kTvmErrorFramingShortPacket = 0x201,
	kTvmErrorFramingInvalidEscape = 0x202,
	kTvmErrorFramingPayloadOverflow = 0x203,
	kTvmErrorFramingPayloadIncomplete = 0x204,

	kTvmErrorWriteStreamShortWrite = 0x300,
	kTvmErrorWriteStreamLongWrite = 0x301,

	kTvmErrorSessionInvalidState = 0x400,
	kTvmErrorSessionReceiveBufferBusy = 0x401,
	kTvmErrorSessionReceiveBufferShortWrite = 0x402,

	kTvmErrorPlatformCheckFailure = 0x500,
	kTvmErrorPlatformMemoryManagerInitialized = 0x501,
	kTvmErrorPlatformShutdown = 0x502,
	kTvmErrorPlatformNoMemory = 0x503,
	kTvmErrorPlatformTimerBadState = 0x504,

	kTvmErrorGeneratedInvalidStorageId = 0x600,

	kTvmErrorFunctionCallNumArguments = 0x800,
	kTvmErrorFunctionCallWrongArgType = 0x801,
	kTvmErrorFunctionCallNotImplemented = 0x802,

	kTvmErrorTimeEvaluatorBadHandle = 0x900,

	/* Set when the low 15 bits are a number of the system. */
	kTvmErrorSystemErrorMask = 1 << 15,
} tvm_crt_error_t;

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_ERROR_CODES_H_ */
