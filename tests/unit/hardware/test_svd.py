# SPDX-License-Identifier: Apache-2.0
"""Registers of an SVD file: names, first values, rights, and effects of accesses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from minrpc.errors import RegisterError
from minrpc.hardware.registers import Registers
from minrpc.hardware.svd import peripheral_of

pytest.importorskip("svd2py")
CHIP = Path(__file__).parents[2] / "device" / "c" / "chip.svd"
LINE = "a.c:1"


def dma() -> Registers:
    return peripheral_of(CHIP, "DMA")


def test_arrays_clusters_and_derived_peripherals() -> None:
    found = dma()
    places = {name: (found[name].offset, found[name].size) for name in found}
    assert places == {
        "ISR": (0, 4), "ICR": (0, 4), "LOCK": (4, 4), "MIXED": (8, 2),
        "CH[0].CR": (16, 1), "CH[0].SR": (17, 1), "CH[0].IN.XA": (20, 2), "CH[0].IN.XB": (22, 2),
        "CH[1].CR": (32, 1), "CH[1].SR": (33, 1), "CH[1].IN.XA": (36, 2), "CH[1].IN.XB": (38, 2),
    }  # fmt: skip
    assert (found.name, found.base, found.size, found["CH[1].SR"].value) == ("DMA", 0x40026000, 40, 7)
    second = peripheral_of(str(CHIP), 0x40004400)
    assert (second.name, second.SR.value, list(second)) == ("USART2", 0xC0, ["SR", "DR", "BRR", "CR1"])


def test_fields_are_numbers_and_can_be_set() -> None:
    usart = peripheral_of(CHIP, "USART1")
    assert (usart.SR.TXE, usart.SR["TC"], usart.SR.ORE) == (1, 1, 0)
    usart.CR1.M = 3
    usart.CR1["UE"] = 1
    assert usart.CR1.value == 0x200C
    assert str(usart.CR1.write(0x200C)) == "write CR1 0x200c (UE=1, M=Both)"
    assert {"M", "value"} <= set(dir(usart.CR1))
    assert "RESERVED" not in dir(usart.CR1)
    with pytest.raises(AttributeError, match="SR has no field 'TXF'; did you mean TXE"):
        usart.SR.TXF = 1
    with pytest.raises(RegisterError, match=r"CR1.M has a number of 2 bits, not 4"):
        usart.CR1.M = 4
    with pytest.raises(AttributeError, match=r"USART1.CR1 is a register; its content is CR1.value"):
        usart.CR1 = 5
    with pytest.raises(AttributeError, match="USART1 has no register 'CRR'; did you mean"):
        usart.CRR = 5
    items: Any
    for items, kind in ((usart, "register"), (usart.CR1, "field")):
        with pytest.raises(TypeError, match=f"a {kind}'s name is a text, not 0"):
            items[0]


def test_rights_are_those_of_registers_and_fields() -> None:
    usart = peripheral_of(CHIP, "USART1")
    base = usart.base
    with pytest.raises(RegisterError, match=r"C writes 4 bytes at 0x40013800, a.c:1: USART1.SR is read-only"):
        usart.store(base, 4, 1, LINE)
    with pytest.raises(
        RegisterError, match=r"C reads 4 bytes at 0x40013808, a.c:1: USART1.BRR is write-only"
    ):
        usart.load(base + 8, 4, LINE)
    usart.store(base + 12, 4, 7, LINE)
    assert usart.CR1.value == 6  # READY stays
    assert usart.load(base + 12, 4, LINE) == 4  # GO reads as 0
    found = dma()
    found.store(found.base + 4, 4, 1, LINE)
    with pytest.raises(RegisterError, match=r"a.c:1: DMA.LOCK can be written once"):
        found.store(found.base + 4, 4, 1, LINE)
    assert found.LOCK.value == 1


def test_effects_of_reads_and_writes() -> None:
    usart = peripheral_of(CHIP, "USART1")
    usart.SR.ORE = 1
    assert [usart.load(usart.base, 4, LINE) for _ in range(2)] == [0xC8, 0xC0]
    assert str(usart.accesses[0]) == "read SR 0xc8 at a.c:1 (TXE=1, TC=1, ORE=1)"
    found = dma()
    found.store(found.base, 4, 0x22, LINE)  # ICR clears bits of ISR, at the same address
    assert found.load(found.base, 4, LINE) == 0xDD
    assert [access.name for access in found.accesses] == ["ICR", "ISR"]
    assert (found.ISR.TC0, found.ISR.TC1) == (0, 0)
    found.store(found.base + 8, 2, 0xA33A, LINE)
    assert found.MIXED.value == 0xA065
    assert found.load(found.base + 8, 1, LINE) == 0x65
    assert found.MIXED.value == 0xA0F5
    found.store(found.base + 9, 1, 0, LINE)  # one byte: the other one's bits stay
    assert found.MIXED.value == 0x00F5


def test_fields_have_the_read_action_of_their_register(tmp_path: Path) -> None:
    path = tmp_path / "chip.svd"
    own = "<name>SR</name><readAction>set</readAction>"
    path.write_text(CHIP.read_text().replace("<name>SR</name>", own, 1))
    usart = peripheral_of(path, "USART1")
    usart.SR.value = 8
    usart.load(usart.base, 4, LINE)
    assert (usart.SR.TXE, usart.SR.TC, usart.SR.ORE, usart.SR.value) == (1, 1, 0, 0xFFFFFFF7)


def test_a_field_named_as_an_attribute_of_registers_is_an_item(tmp_path: Path) -> None:
    path = tmp_path / "chip.svd"
    path.write_text(CHIP.read_text().replace("<name>TXE<", "<name>memory<"))
    usart = peripheral_of(path, "USART1")
    assert (usart.SR["memory"], usart.SR.value, usart.content[0]) == (1, 0xC0, 0xC0)


@pytest.mark.parametrize(
    ("old", "new", "which", "error", "text"),
    [
        ("", "", "USRT1", AttributeError, "chip.svd has no peripheral 'USRT1'; did you mean USART1"),
        ("", "", 0x40000000, AttributeError, "no peripheral at 0x40000000; it has USART1, USART2, DMA"),
        ("</device>", "", "DMA", RegisterError, "no SVD file: no element found: line"),
        ("<baseAddress>0x40026000</baseAddress>", "", "DMA", RegisterError, "an element has no baseAddress"),
        ("<dimIndex>A,B<", "<dimIndex>A-C<", "DMA", RegisterError, "X%s has 2 copies, and 3 names"),
        (
            'derivedFrom="USART1"',
            'derivedFrom="USART9"',
            "DMA",
            RegisterError,
            "derivedFrom reference 'USART9'",
        ),
        (">oneToClear<", ">oneToClean<", "DMA", RegisterError, "no SVD file: unknown effect 'oneToClean'"),
        ("0x40026000", "x40026000", "DMA", RegisterError, "invalid literal"),
    ],
)
def test_bad_input(
    old: str, new: str, which: str | int, error: type[Exception], text: str, tmp_path: Path
) -> None:
    path = tmp_path / "chip.svd"
    path.write_text(CHIP.read_text().replace(old, new) if old else CHIP.read_text())
    with pytest.raises(error, match=text):
        peripheral_of(path, which)
    with pytest.raises(RegisterError, match="No such file"):
        peripheral_of(tmp_path / "none.svd", "DMA")
    path.write_bytes(CHIP.read_bytes())
    assert peripheral_of(path, "DMA").ISR.value == 0xFF
