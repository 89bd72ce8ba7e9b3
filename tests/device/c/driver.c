/* SPDX-License-Identifier: Apache-2.0 */
/* A driver that keeps pointers to its arguments, as drivers do. */
#include <stdint.h>

struct config {
	int gain;
	uint8_t *buffer;
	int (*hook)(int value);
};

struct point {
	int x, y;
};

static struct {
	const struct config *config;
	uint8_t *buffer[2];
} driver;
static struct point *points;

void driver_init(const struct config *config, uint8_t *buffer)
{
	driver.config = config;
	driver.buffer[1] = buffer;
}

void config_set(struct config *config, uint8_t *buffer)
{
	config->buffer = buffer;
}

int driver_apply(int at)
{
	return driver.config->gain + driver.buffer[1][at] + driver.config->buffer[0];
}

int driver_hook(int value)
{
	return driver.config->hook(value);
}

void driver_fill(uint8_t value, int n)
{
	for (int i = 0; i < n; i++) {
		driver.config->buffer[i] = value;
	}
}

int sum(const uint8_t *data, int n)
{
	int all = 0;

	for (int i = 0; i < n; i++) {
		all += data[i];
	}
	return all;
}

void points_set(struct point *given)
{
	points = given;
}

int points_at(int at)
{
	return points[at].x * 10 + points[at].y;
}
