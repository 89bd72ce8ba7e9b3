# SPDX-License-Identifier: Apache-2.0
"""Registers without a device: lists of reads, expected accesses, parts of registers, shared addresses."""

from __future__ import annotations

import pytest
from minrpc.errors import RegisterError
from minrpc.hardware.accesses import Field
from minrpc.hardware.effects import Effects
from minrpc.hardware.registers import Register, Registers

BASE = 0x40000000
FIELDS = {"LOW": Field("LOW", 0, 1), "HIGH": Field("HIGH", 8, 1)}


def uart() -> Registers:
    """Two registers; DATA and FLAGS share their address, and a read clears all of FLAGS."""
    memory = bytearray(8)
    made = [
        Register("CONTROL", 0, 4, memory, Effects(FIELDS)),
        Register("DATA", 4, 4, memory),
        Register("FLAGS", 4, 4, memory, Effects(cleared=0xFFFFFFFF)),
    ]
    return Registers("UART", BASE, {item.name: item for item in made}, 8)


def test_a_list_that_has_ended_stays_ended() -> None:
    made = uart()
    made.CONTROL.reads = [1]
    assert made.load(BASE, 4, "") == 1
    for _ in range(2):
        with pytest.raises(RegisterError, match="its list of values has ended"):
            made.load(BASE, 4, "")
    assert len(made.accesses) == 1


def test_expected_accesses_are_compared() -> None:
    made = uart()
    made.store(BASE, 4, 5, "a.c:1")
    made.expect([made.CONTROL.write(5)])
    made.expect([made.CONTROL.write()])
    for wanted, text in (
        ([], "expected no more access, C did write CONTROL 0x5 at a.c:1"),
        ([made.CONTROL.write(0)], "expected write CONTROL 0x0, C did write"),
        ([made.CONTROL.read(5)], "expected read CONTROL"),
        ([made.CONTROL.write(5), made.DATA.read()], r"access 2: expected read DATA .*, C did nothing more"),
    ):
        with pytest.raises(AssertionError, match=text):
            made.expect(wanted)


def test_a_byte_is_at_its_place_of_the_register() -> None:
    made, written = uart(), list[int]()
    made.CONTROL.on_write(written.append)
    made.store(BASE + 1, 1, 1, "")
    assert (written, made.CONTROL.value, made.accesses[0].fields) == ([0x100], 0x100, "HIGH=1")
    made.CONTROL.reads = lambda: 0x4321
    assert made.load(BASE + 1, 1, "") == 0x43
    made.FLAGS.reads = lambda: 0x4321
    assert (made.load(BASE + 5, 1, ""), made.FLAGS.value) == (0x43, 0x21)


def test_of_registers_at_one_address_the_one_with_a_function_answers() -> None:
    made, written = uart(), list[int]()
    made.FLAGS.reads = lambda: 3
    made.DATA.on_write(written.append)
    assert made.load(BASE + 4, 4, "") == 3
    made.store(BASE + 4, 4, 9, "")
    assert written == [9]
    made.DATA.on_write(None)
    made.FLAGS.on_write(written.append)
    made.store(BASE + 4, 4, 8, "")
    assert [access.name for access in made.accesses] == ["FLAGS", "DATA", "FLAGS"]


@pytest.mark.parametrize(
    ("effect", "after"),
    [
        *(("modify", 0b0011), ("keep", 0b0101), ("clear", 0), ("set", 0b1111)),
        *(("oneToClear", 0b0100), ("oneToSet", 0b0111), ("oneToToggle", 0b0110)),
        *(("zeroToClear", 0b0001), ("zeroToSet", 0b1101), ("zeroToToggle", 0b1001)),
    ],
)
def test_each_effect_of_a_write(effect: str, after: int) -> None:
    """Bits 0101 are written with 0011: each bit meets each."""
    assert Effects(writes={effect: 0b1111}).written(0b0101, 0b0011) == after
