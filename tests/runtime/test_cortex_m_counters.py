# SPDX-License-Identifier: Apache-2.0
"""The counters of a Cortex-M on registers of support/cortex_m.c: QEMU has none of them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from tests.runtime.door import Door, Place

TYPE, SET, CLEAR, EVENTS = (offset // 4 for offset in (0xE00, 0xC00, 0xC20, 0x400))
CTRL, CPICNT = 0, 2
NOPRFCNT, NOCYCCNT = 1 << 24, 1 << 25


class Registers:
    """Registers by their word's number, and the counters. slots: of the PMU."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self.demcr, self.dwt, self.pmu = map(self._words, ("cortex_m_demcr", "cortex_m_dwt", "cortex_m_pmu"))

    def _words(self, name: str) -> Callable[..., int]:
        place = self._door.address(name)

        def word(index: int, value: int | None = None) -> int:
            """Reads the word, or writes it."""
            if value is not None:
                self._door.write(place + 4 * index, value.to_bytes(4, "little"))
            return int.from_bytes(self._door.read(place + 4 * index, 4), "little")

        return word

    def reset(self, slots: int) -> None:
        for words, size in ((self.demcr, 1), (self.dwt, 7), (self.pmu, 0xF00 // 4)):
            for index in range(size):
                words(index, 0)
        self.pmu(TYPE, slots)

    def counter(self, name: str) -> Place:
        size = len(self._door.new("minrpc_counter").content())
        for i in count():
            place = self._door.at(self._door.address("processor_counters") + size * i, "minrpc_counter")
            if self._door.text(place.name) == name:
                return place
        raise AssertionError

    def enable(self, name: str, on: bool = True) -> bool:
        counter = self.counter(name)
        return bool(self._door.call(counter.enable, counter.context, on, result="?"))

    def read(self, name: str) -> int:
        counter = self.counter(name)
        return int(self._door.call(counter.read, counter.context, result="Q"))


@pytest.fixture
def registers(door: Door) -> Registers:
    registers = Registers(door)
    registers.reset(0)
    return registers


def test_a_cycle_counter_that_stands_still_is_absent(registers: Registers) -> None:
    assert not registers.enable("dwt_cycles")
    assert registers.demcr(0) == 1 << 24
    registers.dwt(CTRL, NOCYCCNT)
    assert not registers.enable("dwt_cycles")
    assert registers.dwt(CTRL) == NOCYCCNT


def test_what_has_8_bits_says_so_and_has_an_enable_bit_each(registers: Registers) -> None:
    names = ["dwt_cpi", "dwt_exceptions", "dwt_sleep", "dwt_load_store", "dwt_folded"]
    for i, name in enumerate(names):
        assert registers.counter(name).bits == 8
        assert registers.enable(name)
        # CPIEVTENA is bit 17 of DWT_CTRL, the others follow.
        assert registers.dwt(CTRL) == 1 << (17 + i)
        registers.dwt(CPICNT + i, 200 + i)
        assert registers.read(name) == 200 + i
        assert registers.enable(name, False)
        assert registers.dwt(CTRL) == 0
    registers.dwt(CTRL, NOPRFCNT)
    assert not registers.enable(names[0])
    assert registers.counter("dwt_cycles").bits == 32


def test_events_take_slots_until_there_is_none(registers: Registers) -> None:
    registers.reset(2)
    pmu = registers.pmu
    assert registers.enable("pmu_loads")
    assert registers.enable("pmu_stores")
    assert pmu(EVENTS) == 0x06
    # CNTENSET reads as all bits that were set; this memory only as the last.
    assert pmu(SET) == 2
    pmu(SET, 3)
    assert pmu(EVENTS + 1) == 0x07
    assert not registers.enable("pmu_vector")
    pmu(0, 11)
    pmu(1, 22)
    assert (registers.read("pmu_loads"), registers.read("pmu_stores")) == (11, 22)
    assert registers.counter("pmu_loads").bits == 16
    assert registers.enable("pmu_stores", False)
    assert pmu(CLEAR) == 2
    pmu(SET, 1)
    assert registers.enable("pmu_vector")
    assert pmu(EVENTS + 1) == 0x200


def test_without_a_pmu_there_is_no_slot(registers: Registers) -> None:
    assert not registers.enable("pmu_loads")
    assert registers.read("pmu_loads") == 0
    assert registers.enable("pmu_loads", False)
