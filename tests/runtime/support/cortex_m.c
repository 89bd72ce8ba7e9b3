/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The counters of a Cortex-M, compiled for this machine, on registers that are variables.
 */
#include <stdint.h>

uint32_t cortex_m_demcr;
uint32_t cortex_m_dwt[7];
uint32_t cortex_m_pmu[0xf00 / sizeof(uint32_t)];

#define __ARM_ARCH             8
#define __ARM_ARCH_8_1M_MAIN__ 1
#define DEMCR_ADDRESS          ((uintptr_t)&cortex_m_demcr)
#define DWT_ADDRESS            ((uintptr_t)cortex_m_dwt)
#define PMU_ADDRESS            ((uintptr_t)cortex_m_pmu)
#include "../../../zephyr-app/ports/baremetal/counters_cortex_m.c"
