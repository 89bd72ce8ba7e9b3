/* SPDX-License-Identifier: Apache-2.0 */
/* The hardware layer: a board defines it, and tests fake it. */
#ifndef HAL_H_
#define HAL_H_

#include <stdint.h>

uint32_t hal_millis(void);
/* Tenths of a degree; not 0 when the sensor is silent. */
int hal_temperature(int16_t *tenths);
void hal_heat(uint16_t permille);
int hal_write(uint8_t port, const uint8_t *data, uint32_t n);

#endif
