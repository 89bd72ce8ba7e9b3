/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * The counters of a Cortex-M on registers that are this program's: QEMU has none of them.
 */
#include <stdint.h>
#include <string.h>

#include "check.h"

static uint32_t demcr;
static uint32_t dwt[7];
static uint32_t pmu[0xf00 / sizeof(uint32_t)];

#define __ARM_ARCH             8
#define __ARM_ARCH_8_1M_MAIN__ 1
#define DEMCR_ADDRESS          ((uintptr_t)&demcr)
#define DWT_ADDRESS            ((uintptr_t)dwt)
#define PMU_ADDRESS            ((uintptr_t)pmu)
#include "../../zephyr-app/ports/baremetal/counters_cortex_m.c"

#define TYPE   (0xe00U / 4U)
#define SET    (0xc00U / 4U)
#define CLEAR  (0xc20U / 4U)
#define EVENTS (0x400U / 4U)

static void reset(uint32_t slots)
{
	demcr = 0U;
	memset(dwt, 0, sizeof(dwt));
	memset(pmu, 0, sizeof(pmu));
	pmu[TYPE] = slots;
}

static const struct minrpc_counter *named(const char *name)
{
	for (const struct minrpc_counter *at = processor_counters; at->name != NULL; at++) {
		if (strcmp(at->name, name) == 0) {
			return at;
		}
	}
	CHECK_FAIL("no counter %s", name);
	return NULL;
}

TEST(a_cycle_counter_that_stands_still_is_absent)
{
	const struct minrpc_counter *cycles = named("dwt_cycles");

	reset(0U);
	CHECK(!cycles->enable(cycles->context, true));
	CHECK_EQ(demcr, DEMCR_TRCENA);
	dwt[DWT_CTRL] = NOCYCCNT;
	CHECK(!cycles->enable(cycles->context, true));
	CHECK_EQ(dwt[DWT_CTRL], NOCYCCNT);
}

TEST(what_has_8_bits_says_so_and_has_an_enable_bit_each)
{
	static const char *const names[] = {"dwt_cpi", "dwt_exceptions", "dwt_sleep",
					    "dwt_load_store", "dwt_folded"};

	reset(0U);
	for (uint32_t i = 0U; i < 5U; i++) {
		const struct minrpc_counter *counter = named(names[i]);

		CHECK_EQ(counter->bits, 8U);
		CHECK(counter->enable(counter->context, true));
		/* CPIEVTENA is bit 17 of DWT_CTRL, the others follow. */
		CHECK_EQ(dwt[DWT_CTRL], 1U << (17U + i));
		dwt[DWT_CPICNT + i] = 200U + i;
		CHECK_EQ(counter->read(counter->context), 200U + i);
		CHECK(counter->enable(counter->context, false));
		CHECK_EQ(dwt[DWT_CTRL], 0U);
	}
	dwt[DWT_CTRL] = NOPRFCNT;
	CHECK(!named(names[0])->enable(named(names[0])->context, true));
	CHECK_EQ(named("dwt_cycles")->bits, 32U);
}

TEST(events_take_slots_until_there_is_none)
{
	const struct minrpc_counter *loads = named("pmu_loads");
	const struct minrpc_counter *stores = named("pmu_stores");
	const struct minrpc_counter *vector = named("pmu_vector");

	reset(2U);
	CHECK(loads->enable(loads->context, true));
	CHECK(stores->enable(stores->context, true));
	CHECK_EQ(pmu[EVENTS], 0x06U);
	/* CNTENSET reads as all bits that were set; this memory only as the last. */
	CHECK_EQ(pmu[SET], 2U);
	pmu[SET] = 3U;
	CHECK_EQ(pmu[EVENTS + 1U], 0x07U);
	CHECK(!vector->enable(vector->context, true));
	pmu[0] = 11U;
	pmu[1] = 22U;
	CHECK_EQ(loads->read(loads->context), 11U);
	CHECK_EQ(stores->read(stores->context), 22U);
	CHECK_EQ(loads->bits, 16U);
	CHECK(stores->enable(stores->context, false));
	CHECK_EQ(pmu[CLEAR], 2U);
	pmu[SET] = 1U;
	CHECK(vector->enable(vector->context, true));
	CHECK_EQ(pmu[EVENTS + 1U], 0x200U);
}

TEST(without_a_pmu_there_is_no_slot)
{
	const struct minrpc_counter *loads = named("pmu_loads");

	reset(0U);
	CHECK(!loads->enable(loads->context, true));
	CHECK_EQ(loads->read(loads->context), 0U);
	CHECK(loads->enable(loads->context, false));
}

CHECK_MAIN(CASE(a_cycle_counter_that_stands_still_is_absent),
	   CASE(what_has_8_bits_says_so_and_has_an_enable_bit_each),
	   CASE(events_take_slots_until_there_is_none), CASE(without_a_pmu_there_is_no_slot))
