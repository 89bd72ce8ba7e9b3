# SPDX-License-Identifier: Apache-2.0
"""Registers without a device: lists of reads, expected accesses, parts of registers, shared addresses."""

from __future__ import annotations

import pytest
from minrpc.errors import RegisterError
from minrpc.hardware.accesses import Field
from minrpc.hardware.effects import Effects
from minrpc.hardware.registers import Register, Registers, registers_of
from minrpc.program import c_types

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


def test_a_function_decides_before_the_width_and_the_width_among_functions() -> None:
    memory, written = bytearray(4), list[tuple[str, int]]()
    made = Registers(
        "SPI", BASE, {"DR": Register("DR", 0, 4, memory), "DR8": Register("DR8", 0, 1, memory)}, 4
    )
    made.on_write("DR", lambda value: written.append(("DR", value)))
    made.store(BASE, 1, 7, "")
    made.on_write("DR8", lambda value: written.append(("DR8", value)))
    made.store(BASE, 1, 8, "")
    made.store(BASE, 4, 9, "")
    made.on_write("DR", None)
    made.on_write("DR8", None)
    made.store(BASE, 4, 10, "")
    assert written == [("DR", 7), ("DR8", 8), ("DR", 9)]
    assert [access.name for access in made.accesses] == ["DR", "DR8", "DR", "DR"]


def test_fields_with_names_of_the_register_s_own_attributes_are_items() -> None:
    own = ("effects", "memory", "name", "offset", "size")
    fields = {name: Field(name, 4 * at, 4) for at, name in enumerate(own)}
    made = Register("CTRL", 0, 4, bytearray(4), Effects(fields))
    for name in own:
        with pytest.raises(
            AttributeError, match=rf"CTRL.{name} is the register's own; its field is \['{name}'\]"
        ):
            setattr(made, name, 3)
        made[name] = 3
    assert (made.size, made.value) == (4, 0x33333)
    plain = Register("DATA", 0, 4, bytearray(4))
    plain.name = "OTHER"
    assert plain.name == "OTHER"


def test_each_view_of_a_union_has_its_fields_and_a_number_those_of_all() -> None:
    byte = c_types.Scalar("unsigned char", 1, "uint", signed=False)

    def view(**widths: int) -> c_types.RecordType:
        shifts = dict(zip(widths, (0, *widths.values()), strict=False))
        bits = tuple(c_types.Field(name, byte, 0, widths[name], shifts[name]) for name in widths)
        return c_types.RecordType("struct", "", 1, True, fields=bits)

    views: dict[str, c_types.CType] = {"bit": view(OVR0=1, OVR1=1), "vec": view(OVR=2), "reg": byte}
    members = tuple(c_types.Field(name, made, 0) for name, made in views.items())
    found = registers_of(c_types.RecordType("union", "FLAGS", 1, True, fields=members))
    assert {name: list(item.effects.fields) for name, item in found.items()} == {
        "bit": ["OVR0", "OVR1"], "vec": ["OVR"], "reg": ["OVR0", "OVR1", "OVR"],
    }  # fmt: skip


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
