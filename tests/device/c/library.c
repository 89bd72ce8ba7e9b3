/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Ordinary C with a C library: text, a heap, ends of a program.
 */
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int say(int n)
{
	printf("%d %s %#x", n, "apples", 255);
	putchar('\n');
	puts("a line");
	fprintf(stderr, "an error: %ld\n", -70000L);
	return n;
}

char *keep(const char *text)
{
	char *kept = malloc(strlen(text) + 1U);

	return kept == NULL ? NULL : strcpy(kept, text);
}

int drop(char *text)
{
	int length = (int)strlen(text);

	free(text);
	return length;
}

void write_at(char *text, int offset)
{
	text[offset] = 'x';
}

/* Allocates the bytes in two blocks, and frees them. */
int two_blocks(int bytes)
{
	volatile char *one = malloc(bytes / 2U);
	volatile char *other = malloc(bytes / 2U);
	int done = one != NULL && other != NULL;

	free((void *)other);
	free((void *)one);
	return done;
}

/* Writes to a block after its end, and takes it again. */
int reuse(void)
{
	char *block = malloc(30U);
	volatile char *freed = block;

	free(block);
	freed[3] = 'x';
	return malloc(20U) == NULL;
}

int too_large(void)
{
	void *volatile half; /* a compiler may leave out a block that nobody uses */
	void *volatile twice;

	errno = 0;
	half = malloc(SIZE_MAX / 2U + 2U);
	twice = calloc(SIZE_MAX, 2U);
	return half == NULL && twice == NULL ? errno : 0;
}

#define LIVE 24U

static uint32_t lottery = 1U;

static uint32_t draw(uint32_t below)
{
	lottery = lottery * 1664525U + 1013904223U;
	return (lottery >> 8U) % below;
}

static int is_filled(const uint8_t *at, uint32_t size, uint8_t with)
{
	for (uint32_t i = 0U; i < size; i++) {
		if (at[i] != with) {
			return 0;
		}
	}
	return 1;
}

/* Takes, resizes and frees blocks at random. Returns the number of rounds until one was damaged. */
uint32_t churn(uint32_t rounds, uint32_t largest)
{
	static uint8_t *blocks[LIVE];
	static uint32_t sizes[LIVE];

	memset(blocks, 0, sizeof(blocks));
	memset(sizes, 0, sizeof(sizes));
	for (uint32_t i = 0U; i < rounds; i++) {
		uint32_t at = draw(LIVE);
		uint32_t size = draw(largest);
		uint32_t kept = sizes[at] < size ? sizes[at] : size;

		if (draw(3U) == 0U) {
			free(blocks[at]);
			blocks[at] = NULL;
			kept = size = 0U;
		} else {
			uint8_t *moved = realloc(blocks[at], size + 1U);

			if (moved == NULL) {
				free(blocks[at]);
			}
			blocks[at] = moved;
		}
		if (blocks[at] != NULL) {
			if (((uintptr_t)blocks[at] & 3U) != 0U ||
			    !is_filled(blocks[at], kept, (uint8_t)at)) {
				return i;
			}
			memset(blocks[at], (int)at, size);
		}
		sizes[at] = blocks[at] == NULL ? 0U : size;
	}
	for (uint32_t at = 0U; at < LIVE; at++) {
		if (!is_filled(blocks[at], sizes[at], (uint8_t)at)) {
			return at;
		}
		free(blocks[at]);
	}
	return rounds;
}

static int by_number(const void *one, const void *other)
{
	return *(const int *)one - *(const int *)other;
}

static jmp_buf back;

static void jump(int n)
{
	longjmp(back, n);
}

/* Words of the text, in the order of their numbers; uses errno and longjmp. */
int sum_of_words(char *text, int *numbers, int room)
{
	int count = 0;
	volatile int result;

	for (char *word = strtok(text, " "); word != NULL && count < room;
	     word = strtok(NULL, " ")) {
		errno = 0;
		numbers[count] = (int)strtol(word, NULL, 10);
		if (errno == 0) {
			count++;
		}
	}
	qsort(numbers, (size_t)count, sizeof(numbers[0]), by_number);
	result = setjmp(back);
	if (result == 0) {
		jump(count);
	}
	return result;
}

long ticks(void)
{
	return (long)clock();
}

int positive(int n)
{
	assert(n > 0);
	return n;
}

void leave(int status)
{
	printf("leaving");
	exit(status);
}

void give_up(void)
{
	abort();
}
