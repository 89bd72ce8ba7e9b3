/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Functions whose counts are known, or must differ. Three take a known and a secret array of bytes,
 * and a byte for the result: two of them reveal the secret by their instructions or accesses.
 */
#include <dlpack/dlpack.h>
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/crt/module.h>

#define PACKED                                                                                     \
	TVMValue *args, int *codes, int count, TVMValue *value, int *value_code, void *resource
#define UNUSED ((void)codes, (void)count, (void)value, (void)value_code, (void)resource)

struct bytes {
	const uint8_t *known;
	const uint8_t *secret;
	uint8_t *result;
	int64_t size;
};

static struct bytes take(const TVMValue *args)
{
	const DLTensor *known = args[0].v_handle;
	const DLTensor *secret = args[1].v_handle;
	const DLTensor *result = args[2].v_handle;

	return (struct bytes){known->data, secret->data, result->data, known->shape[0]};
}

/* Ends at the first byte that differs. */
static int early(PACKED)
{
	struct bytes bytes = take(args);

	UNUSED;
	for (int64_t i = 0; i < bytes.size; i++) {
		if (bytes.known[i] != bytes.secret[i]) {
			bytes.result[0] = 1U;
			return 0;
		}
	}
	bytes.result[0] = 0U;
	return 0;
}

/* The secret gives the address of each load. */
static int lookup(PACKED)
{
	static const uint8_t table[256] = {7, 3, 5, 1};
	struct bytes bytes = take(args);
	uint8_t sum = 0U;

	UNUSED;
	for (int64_t i = 0; i < bytes.size; i++) {
		sum ^= ((const volatile uint8_t *)table)[bytes.secret[i]];
	}
	bytes.result[0] = sum;
	return 0;
}

static int constant(PACKED)
{
	struct bytes bytes = take(args);
	uint8_t differs = 0U;

	UNUSED;
	for (int64_t i = 0; i < bytes.size; i++) {
		differs |= bytes.known[i] ^ bytes.secret[i];
	}
	bytes.result[0] = differs;
	return 0;
}

/* An array and a number: loads its first element this number of times. */
static int loads(PACKED)
{
	const DLTensor *array = args[0].v_handle;
	const volatile int32_t *at = array->data;
	int rounds = (int)args[1].v_int64;

	UNUSED;
	for (int i = 0; i < rounds; i++) {
		(void)*at;
	}
	return 0;
}

/* A number: uses this number of bytes of stack. */
static int deep(PACKED)
{
	int size = (int)args[0].v_int64;
	volatile char bytes[size];

	UNUSED;
	for (int i = 0; i < size; i++) {
		bytes[i] = (char)i;
	}
	return 0;
}

#if defined(__ZEPHYR__)
#include <zephyr/kernel.h>

/* Long enough for a timer's interrupt, which comes at a different time in each call. */
static void interrupted(void)
{
	static struct k_timer timer;
	static bool set_up;

	if (!set_up) {
		set_up = true;
		k_timer_init(&timer, NULL, NULL);
		k_timer_start(&timer, K_TICKS(1), K_TICKS(1));
	}
	for (volatile int i = 0; i < 20000; i++) {
	}
}
#elif defined(__ARM_ARCH) && __ARM_ARCH >= 7
/*
 * Two calls set the timer's interrupt pending, the next two do not; otherwise all calls do the
 * same. A measurement calls twice, once to warm up.
 */
static void interrupted(void)
{
	static uint32_t calls;

	calls++;
	*(volatile uint32_t *)0xe000ed04U = (calls & 2U) << 25;
}
#endif

/* True if a timer's interrupt can be set pending on this machine. */
static int interrupt(PACKED)
{
	UNUSED;
	(void)args;
#if defined(__ZEPHYR__) || (defined(__ARM_ARCH) && __ARM_ARCH >= 7)
	interrupted();
	value->v_int64 = 1;
#else
	value->v_int64 = 0;
#endif
	*value_code = kTVMArgInt;
	return 0;
}

static const TVMBackendPackedCFunc functions[] = {constant, deep, early, interrupt, loads, lookup};
static const TVMFuncRegistry registry = {
	"\006\000constant\0deep\0early\0interrupt\0loads\0lookup\0", functions};
static const TVMModule module = {&registry};

const TVMModule *TVMSystemLibEntryPoint(void)
{
	return &module;
}
