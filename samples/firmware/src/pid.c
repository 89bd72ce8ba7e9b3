/* SPDX-License-Identifier: Apache-2.0 */
#include "pid.h"

static int32_t clamp(int32_t value, int32_t low, int32_t high)
{
	return value < low ? low : value > high ? high : value;
}

int32_t pid_step(struct pid *pid, int32_t error)
{
	int32_t change = error - pid->last;

	pid->sum = clamp(pid->sum + error, -10000, 10000);
	pid->last = error;
	return clamp((pid->kp * error + pid->ki * pid->sum + pid->kd * change) / 256, 0, 1000);
}
