/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PID_H_
#define PID_H_

#include <stdint.h>

/* Gains are of 8 fractional bits. */
struct pid {
	int32_t kp, ki, kd;
	int32_t sum, last;
};

/* The output for a deviation, 0 to 1000. */
int32_t pid_step(struct pid *pid, int32_t error);

#endif
