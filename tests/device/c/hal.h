/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HAL_H_
#define HAL_H_

#include <stdbool.h>
#include <stdint.h>

enum state {
	IDLE,
	BUSY = 5
};

struct reading {
	int16_t x, y;
	enum state state;
};

uint32_t hal_millis(void);
int hal_write(int fd, const uint8_t *data, uint32_t n);
int hal_read(uint8_t *data, uint32_t n);
float hal_gain(float f, double d);
struct reading hal_turn(struct reading r);
void hal_adjust(struct reading *r);
bool hal_is_ready(void);
uint64_t hal_port(uint32_t port, uint64_t mask, int8_t bias);
void hal_log(const char *text);

#endif
