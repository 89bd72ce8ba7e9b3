/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A ring of bytes, with one writer and one reader; either may be an interrupt. Zephyr's ring_buf
 * has other functions in each version, and its last bytes can't be taken back.
 */
#ifndef RING_H_
#define RING_H_

#include <stdint.h>
#include <string.h>

#include <zephyr/sys/barrier.h>
#include <zephyr/sys/util.h>

struct ring {
	uint8_t *bytes;
	uint32_t size;
	/* Counts of put and of taken bytes, and the place of the next byte of each. */
	volatile uint32_t in;
	volatile uint32_t out;
	uint32_t in_at;
	uint32_t out_at;
};

#define RING_DEFINE(name, length)                                                                  \
	static uint8_t name##_bytes[length];                                                       \
	static struct ring name = {.bytes = name##_bytes, .size = (length)}

static inline uint32_t ring_held(const struct ring *ring)
{
	return ring->in - ring->out;
}

/* The place `by` bytes behind `at`; `by` is at most the ring's size. */
static inline uint32_t ring_step(const struct ring *ring, uint32_t at, uint32_t by)
{
	at += by;
	return at < ring->size ? at : at - ring->size;
}

/* The room for the next bytes, in one piece. */
static inline uint32_t ring_room(const struct ring *ring, uint8_t **place)
{
	*place = &ring->bytes[ring->in_at];
	return MIN(ring->size - ring_held(ring), ring->size - ring->in_at);
}

/* The bytes behind the first `skip`, in one piece. */
static inline uint32_t ring_piece(const struct ring *ring, uint32_t skip, const uint8_t **place)
{
	uint32_t at = ring_step(ring, ring->out_at, skip);

	*place = &ring->bytes[at];
	return MIN(ring_held(ring) - skip, ring->size - at);
}

/* The first `size` bytes of the room have been written. */
static inline void ring_put(struct ring *ring, uint32_t size)
{
	barrier_dmem_fence_full();
	ring->in_at = ring_step(ring, ring->in_at, size);
	ring->in += size;
}

/* The first `size` bytes have been read. */
static inline void ring_take(struct ring *ring, uint32_t size)
{
	barrier_dmem_fence_full();
	ring->out_at = ring_step(ring, ring->out_at, size);
	ring->out += size;
}

/* The last `size` bytes were never put. The writer rests meanwhile. */
static inline void ring_take_back(struct ring *ring, uint32_t size)
{
	ring->in -= size;
	ring->in_at = ring_step(ring, ring->out_at, ring_held(ring));
}

/* Copies bytes while there is room. Returns their number. */
static inline uint32_t ring_write(struct ring *ring, const uint8_t *data, uint32_t size)
{
	uint32_t done = 0U;
	uint32_t part;

	do {
		uint8_t *place;
		uint32_t room = ring_room(ring, &place);

		part = MIN(room, size - done);
		(void)memcpy(place, &data[done], part);
		ring_put(ring, part);
		done += part;
	} while (part != 0U);
	return done;
}

#endif /* RING_H_ */
