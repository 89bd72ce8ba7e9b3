/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * A temperature sensor at an I2C bus: each wait has a time-out.
 */
#include "peripherals.h"

#define SENSOR       0x48U
#define TIMEOUT_MS   5U
#define NO_ANSWER    -1000
#define BUS_IS_STUCK -1001

uint32_t HAL_GetTick(void);

static int wait_for(uint32_t flag)
{
	uint32_t start = HAL_GetTick();

	while ((I2C1->SR1 & flag) == 0U) {
		if ((I2C1->SR1 & I2C_SR1_AF) != 0U) {
			I2C1->SR1 = ~I2C_SR1_AF;
			return NO_ANSWER;
		}
		if (HAL_GetTick() - start > TIMEOUT_MS) {
			return BUS_IS_STUCK;
		}
	}
	return 0;
}

static int start(void)
{
	int status;

	I2C1->CR1 |= I2C_CR1_START;
	status = wait_for(I2C_SR1_SB);
	if (status != 0) {
		return status;
	}
	I2C1->DR = SENSOR << 1 | 1U;
	status = wait_for(I2C_SR1_ADDR);
	(void)I2C1->SR2; /* ends the address phase */
	return status;
}

/* Degrees, or NO_ANSWER, BUS_IS_STUCK. The bus is free afterwards. */
int sensor_read(void)
{
	int status = start();

	if (status == 0) {
		status = wait_for(I2C_SR1_RXNE);
	}
	if (status == 0) {
		status = (int8_t)I2C1->DR;
	}
	I2C1->CR1 |= I2C_CR1_STOP;
	return status;
}
