/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that wait for Python, and functions that Python calls meanwhile. */
#include <stdint.h>

struct message {
	uint8_t *data;
	int length;
	struct message *next;
	int (*done)(int result, const uint8_t *data);
};

int hal_wait(int n);
int hal_transfer(struct message *message);
int hal_each(int (*visit)(int result, const uint8_t *data), const uint8_t *data);

int interrupts;
int numbers[4] = {1, 2, 3, 4};
static uint8_t buffer[8] = {9, 8, 7};

void isr(void)
{
	interrupts++;
}

double half(double x)
{
	return x / 2;
}

uint8_t *kept(void)
{
	return buffer;
}

void count_up(uint8_t *data, int n)
{
	for (int i = 0; i < n; i++) {
		data[i] = (uint8_t)(i + 1);
	}
}

int with_first(int result, const uint8_t *data)
{
	return result + data[0];
}

int waited(int n)
{
	return hal_wait(n) * 100 + interrupts;
}

int transferred(void)
{
	uint8_t data[4] = {1, 2, 3, 4};
	struct message second = {buffer, 2, 0, 0};
	struct message message = {data, 4, &second, with_first};
	int result = hal_transfer(&message);

	if (message.done != with_first && message.done != 0) {
		return message.done(result, message.data);
	}
	return result * 10000 + message.data[0] * 100 + second.data[0];
}

int visited(const uint8_t *data)
{
	return hal_each(with_first, data);
}

void crashed(void)
{
	*(volatile int *)4 = 1;
}

struct message *hal_pick(struct message *message);

static const struct message *first;

int is_first(const struct message *message)
{
	return message == first;
}

void longer(struct message *message)
{
	message->length += 10;
}

int picked(void)
{
	struct message second = {buffer, 2, 0, 0};
	struct message message = {buffer, 4, &second, 0};

	first = &message;
	message.next = hal_pick(&message);
	return (message.next == &message) * 10000 + message.length * 100 + second.length;
}
