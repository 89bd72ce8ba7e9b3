/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Counters of a Cortex-M: its DWT's cycles and, in 8 bits each, the causes of waits (ARMv7-M
 * Architecture Reference Manual, C1.8); on ARMv8.1-M the events of its PMU (ARMv8-M Architecture
 * Reference Manual, B14). QEMU has neither: there nothing advances, and the counters report that
 * they are not available.
 */
#include <minrpc/counter.h>
#include <minrpc/minrpc_config.h>

#include "port.h"

#if MINRPC_COUNTERS

#if defined(__ARM_ARCH) && __ARM_ARCH >= 7

/* A test on the host has the registers elsewhere. */
#ifndef DWT_ADDRESS
#define DEMCR_ADDRESS 0xe000edfcU
#define DWT_ADDRESS   0xe0001000U
#define PMU_ADDRESS   0xe0003000U
#endif

#define DEMCR                 (*(volatile uint32_t *)DEMCR_ADDRESS)
#define DEMCR_TRCENA          (1U << 24)
#define DWT                   ((volatile uint32_t *)DWT_ADDRESS)
#define DWT_CTRL              0U
#define DWT_CYCCNT            1U
#define DWT_CPICNT            2U
#define DWT_EXCCNT            3U
#define DWT_SLEEPCNT          4U
#define DWT_LSUCNT            5U
#define DWT_FOLDCNT           6U
#define CYCCNTENA             1U
#define NOCYCCNT              (1U << 25)
#define NOPRFCNT              (1U << 24)
/* The bit in DWT_CTRL that lets a counter of 8 bits count. */
#define PROFILE_ENABLE(index) (1U << (15U + (index)))

/* Events by the counter's number. */
static uint64_t read_dwt(void *context)
{
	return DWT[(uintptr_t)context];
}

static bool enable_dwt(void *context, bool on)
{
	uintptr_t index = (uintptr_t)context;
	uint32_t bit = index == DWT_CYCCNT ? CYCCNTENA : PROFILE_ENABLE(index);
	uint32_t missing = index == DWT_CYCCNT ? NOCYCCNT : NOPRFCNT;
	uint32_t before;

	if (!on) {
		/* The cycle counter goes on, since other code may use it. */
		DWT[DWT_CTRL] &= index == DWT_CYCCNT ? ~0U : ~bit;
		return true;
	}
	DEMCR |= DEMCR_TRCENA;
	if ((DWT[DWT_CTRL] & missing) != 0U) {
		return false;
	}
	DWT[DWT_CTRL] |= bit;
	before = DWT[DWT_CYCCNT];
	return (DWT[DWT_CTRL] & bit) != 0U && (index != DWT_CYCCNT || DWT[DWT_CYCCNT] != before);
}

#define DWT_COUNTER(label, what, width, index)                                                     \
	{.name = (label),                                                                          \
	 .unit = (what),                                                                           \
	 .bits = (width),                                                                          \
	 .read = read_dwt,                                                                         \
	 .enable = enable_dwt,                                                                     \
	 .context = (void *)(uintptr_t)(index)}

#endif

#if defined(__ARM_ARCH_8_1M_MAIN__)

#define PMU(offset)    (*(volatile uint32_t *)(uintptr_t)(PMU_ADDRESS + (offset)))
#define PMU_EVCNTR(n)  PMU(4U * (n))
#define PMU_EVTYPER(n) PMU(0x400U + 4U * (n))
#define PMU_CNTENSET   PMU(0xc00U)
#define PMU_CNTENCLR   PMU(0xc20U)
#define PMU_TYPE       PMU(0xe00U)
#define PMU_CTRL       PMU(0xe04U)
#define PMU_ENABLE     1U
#define PMU_SLOTS      8U

/* The slot that counts the event; PMU_SLOTS for none. */
static uint32_t slot_of(uint32_t event)
{
	uint32_t slots = PMU_TYPE & 0xffU;
	uint32_t slot = 0U;

	slots = slots < PMU_SLOTS ? slots : PMU_SLOTS;
	while (slot < slots && ((PMU_CNTENSET >> slot & 1U) == 0U || PMU_EVTYPER(slot) != event)) {
		slot++;
	}
	return slot < slots ? slot : PMU_SLOTS;
}

static uint64_t read_pmu(void *context)
{
	uint32_t slot = slot_of((uint32_t)(uintptr_t)context);

	return slot == PMU_SLOTS ? 0U : PMU_EVCNTR(slot);
}

static bool enable_pmu(void *context, bool on)
{
	uint32_t event = (uint32_t)(uintptr_t)context;
	uint32_t slots = PMU_TYPE & 0xffU;

	if (!on) {
		uint32_t slot = slot_of(event);

		if (slot != PMU_SLOTS) {
			PMU_CNTENCLR = 1U << slot;
		}
		return true;
	}
	DEMCR |= DEMCR_TRCENA;
	for (uint32_t slot = 0U; slot < slots && slot < PMU_SLOTS; slot++) {
		if ((PMU_CNTENSET >> slot & 1U) == 0U) {
			PMU_EVTYPER(slot) = event;
			PMU_CNTENSET = 1U << slot;
			PMU_CTRL |= PMU_ENABLE;
			return true;
		}
	}
	return false;
}

#define PMU_COUNTER(label, event)                                                                  \
	{.name = (label),                                                                          \
	 .unit = "",                                                                               \
	 .bits = 16U,                                                                              \
	 .read = read_pmu,                                                                         \
	 .enable = enable_pmu,                                                                     \
	 .context = (void *)(uintptr_t)(event)}

#endif

const struct minrpc_counter processor_counters[] = {
#if defined(__ARM_ARCH) && __ARM_ARCH >= 7
	DWT_COUNTER("dwt_cycles", "cycles", 32U, DWT_CYCCNT),
	DWT_COUNTER("dwt_cpi", "cycles", 8U, DWT_CPICNT),
	DWT_COUNTER("dwt_exceptions", "cycles", 8U, DWT_EXCCNT),
	DWT_COUNTER("dwt_sleep", "cycles", 8U, DWT_SLEEPCNT),
	DWT_COUNTER("dwt_load_store", "cycles", 8U, DWT_LSUCNT),
	DWT_COUNTER("dwt_folded", "", 8U, DWT_FOLDCNT),
#endif
#if defined(__ARM_ARCH_8_1M_MAIN__)
	PMU_COUNTER("pmu_instructions", 0x08U),
	PMU_COUNTER("pmu_loads", 0x06U),
	PMU_COUNTER("pmu_stores", 0x07U),
	PMU_COUNTER("pmu_branches", 0x21U),
	PMU_COUNTER("pmu_mispredicted", 0x22U),
	PMU_COUNTER("pmu_data_refills", 0x03U),
	PMU_COUNTER("pmu_stall_frontend", 0x23U),
	PMU_COUNTER("pmu_stall_backend", 0x24U),
	PMU_COUNTER("pmu_vector", 0x200U),
#endif
	{.name = NULL},
};

#endif
