/* SPDX-License-Identifier: Apache-2.0 */
/* The hardware layer in C, and a program that calls all of hal.c: prints calls and results. */
#include "hal.h"

#include <inttypes.h>
#include <stdio.h>

uint32_t elapsed(uint32_t since);
int send(uint32_t n);
int receive(uint8_t *to, uint32_t n);
double scaled(float f, double d);
int32_t turned(int16_t x, int16_t y);
int polled(int limit);
uint32_t summed(uint32_t n);
void noted(const char *text);

static unsigned int calls;

static void print_bytes(const uint8_t *data, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		printf("%02x", data[i]);
	}
}

uint32_t hal_millis(void)
{
	printf("hal_millis\n");
	return 3000000000u + calls++;
}

int hal_write(int fd, const uint8_t *data, uint32_t n)
{
	printf("hal_write %d ", fd);
	print_bytes(data, n);
	printf(" %" PRIu32 "\n", n);
	return (int)n - 70;
}

int hal_read(uint8_t *data, uint32_t n)
{
	printf("hal_read ");
	print_bytes(data, n);
	printf(" %" PRIu32 "\n", n);
	for (uint32_t i = 0; i < n; i++) {
		data[i] = (uint8_t)(3 * i + n);
	}
	return (int)n;
}

float hal_gain(float f, double d)
{
	printf("hal_gain %.9g %.17g\n", f, d);
	return (float)(f * d);
}

struct reading hal_turn(struct reading r)
{
	printf("hal_turn %d %d %d\n", r.x, r.y, (int)r.state);
	return (struct reading){.x = (int16_t)-r.y, .y = r.x, .state = BUSY};
}

void hal_adjust(struct reading *r)
{
	printf("hal_adjust %d %d %d\n", r->x, r->y, (int)r->state);
	r->x = (int16_t)(r->x * 2);
}

bool hal_is_ready(void)
{
	printf("hal_is_ready\n");
	return ++calls % 7 == 0;
}

uint64_t hal_port(uint32_t port, uint64_t mask, int8_t bias)
{
	printf("hal_port %" PRIu32 " %" PRIu64 " %d\n", port, mask, bias);
	return (mask >> 3) * port - (uint64_t)(int64_t)bias;
}

void hal_log(const char *text)
{
	printf("hal_log %s\n", text);
}

int main(void)
{
	uint8_t data[40] = {0};

	printf("= %" PRIu32 "\n", elapsed(2999999990u));
	printf("= %" PRIu32 "\n", elapsed(4000000000u));
	printf("= %d\n", send(0));
	printf("= %d\n", send(64));
	printf("= %d\n", receive(data, 33));
	print_bytes(data, sizeof(data));
	printf("\n");
	printf("= %.17g\n", scaled(0.1f, -3.7e-3));
	printf("= %.17g\n", scaled(3e38f, 1.1));
	printf("= %" PRId32 "\n", turned(-32768, 32767));
	printf("= %" PRId32 "\n", turned(12, -34));
	printf("= %d\n", polled(3));
	printf("= %d\n", polled(100));
	printf("= %" PRIu32 "\n", summed(21));
	noted("");
	noted("a longer text than a piece of what is read at once is");
	return 0;
}
