/* SPDX-License-Identifier: Apache-2.0 */
#include "hal.h"
#include "pid.h"

/* Regulates to `target` tenths of a degree for `ms`. Returns the steps; -1: no measurement. */
int regulate(struct pid *pid, int16_t target, uint32_t ms)
{
	uint32_t start = hal_millis();
	int steps = 0;

	while (hal_millis() - start < ms) {
		int16_t now;

		if (hal_temperature(&now) != 0) {
			hal_heat(0);
			hal_write(1, (const uint8_t *)"sensor", 6);
			return -1;
		}
		hal_heat((uint16_t)pid_step(pid, target - now));
		steps++;
	}
	return steps;
}
