/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shared parts of the fuzz targets: one device that is reset before each input, and the laws that
 * hold after it.
 */
#ifndef FUZZ_H_
#define FUZZ_H_

#include <stddef.h>
#include <stdint.h>

#include "host.h"

#define FUZZ_RECEIVE 512U
#define FUZZ_SEND    64U
#define FUZZ_ARENA   4096U
#define FUZZ_MORE    2048U

/* The port's further memory for arrays. */
extern uint8_t fuzz_more_memory[FUZZ_MORE];

/* Input that is read from the front; past the end it gives zeros. */
struct input {
	const uint8_t *at;
	const uint8_t *end;
};

static inline uint32_t input_left(const struct input *input)
{
	return (uint32_t)(input->end - input->at);
}

uint8_t input_u8(struct input *input);
uint16_t input_u16(struct input *input);
uint32_t input_u32(struct input *input);
uint64_t input_u64(struct input *input);

/* Appends `size` bytes that count up from `value`. */
void put_counting(struct bytes *bytes, uint8_t value, uint32_t size);

/*
 * From now on these bytes wait on the link while functions run, and each call notices some of them;
 * 0 bytes: nothing waits. The caller keeps the memory.
 */
void fuzz_waiting(const struct bytes *waiting);

/* From now on the port makes loaded code runnable; before, it refuses. */
void fuzz_let_code_run(void);

/* The device, reset and in a new session. */
struct host *fuzz_start(void);

/*
 * Fails unless the device answers the next client's good request, has nothing of the last client,
 * and its arena is intact.
 */
void fuzz_finish(struct host *host);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif /* FUZZ_H_ */
