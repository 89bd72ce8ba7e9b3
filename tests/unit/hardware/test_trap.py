# SPDX-License-Identifier: Apache-2.0
"""The trap without a device: processors without it, addresses of bits, lines of loaded code, its limit."""

from __future__ import annotations

from importlib import resources
from typing import Any
from unittest.mock import Mock

import pytest
from minrpc.errors import RegisterError
from minrpc.hardware.registers import Register, Registers
from minrpc.hardware.trap import _MODELS, Trap, core_of


@pytest.mark.parametrize(
    ("machine", "pointer_size", "architecture", "reason"),
    [
        ("EM_AARCH64", 8, None, "EM_AARCH64, 64 bits: .* not there for this processor"),
        ("EM_386", 4, None, "EM_386, 32 bits: .* not there for this processor"),
        ("EM_ARM", 4, 12, "an Armv6-M has no MPU"),
    ],
)
def test_the_reason(machine: str, pointer_size: int, architecture: int | None, reason: str) -> None:
    with pytest.raises(RegisterError, match=reason) as told:
        core_of(machine, pointer_size, {"TAG_CPU_ARCH": architecture})
    assert "with an MPU" in told.value.next_step
    assert core_of("EM_ARM", 4, {"TAG_CPU_ARCH": 10}).instruction_set == "thumb"


def peripheral(base: int) -> Registers:
    return Registers("GPIO", base, {"DATA": Register("DATA", 0, 4, bytearray(4))}, 4)


def trap(*bases: int, has_bits: bool = True) -> Any:  # noqa: ANN401 - with parts that are mocks
    """A trap with peripherals at these addresses, that no device has."""
    made: Any = Trap.__new__(Trap)
    made._peripherals = [peripheral(base) for base in bases]
    made._programs, made._lines, made.has_bits = [], {}, has_bits
    made._firmware, made._library = Mock(line_at=Mock(return_value=None)), Mock()
    made._library.variables = {"trap_models": Mock(), "trap_pages": Mock(read=lambda: [0] * 4)}
    return made


def test_an_open_peripheral_answers_before_the_bits() -> None:
    made = trap(0x40000000, 0x42000000)
    bits, gpio = made._peripherals
    made.store(0x42000000, 4, 6, "")
    assert (made.load(0x42000000, 4, ""), gpio.DATA.value, bits.DATA.value) == (6, 6, 0)
    made.store(0x42000004, 4, 1, "")
    assert (made.load(0x42000004, 4, ""), gpio.DATA.value, bits.DATA.value) == (1, 6, 2)


def test_a_core_without_addresses_of_bits_has_none() -> None:
    made = trap(0x40000000, has_bits=False)
    for access, arguments in ((made.load, ()), (made.store, (1,))):
        with pytest.raises(RegisterError, match=r"C accesses 0x42000004, .* no model covers it"):
            access(0x42000004, 4, *arguments, "")


def test_a_library_in_the_place_of_another_has_its_own_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(name: str, content: bytes) -> Mock:
        return Mock(elf=Mock(content=content), line_at=lambda _: Mock(file=f"/c/{name}", number=7))

    def library(name: str, base: int, size: int) -> Mock:
        loaded = Mock(image=Mock(base=base, size=size, program=name.encode()))
        loaded.name = name
        return loaded

    monkeypatch.setattr("minrpc.hardware.trap.Program", program)
    made, first = trap(), library("first.c", 0x100, 0x40)
    for known in (first, library("beside.c", 0x140, 0x40), first):
        made.know(known)
    lines = [made.line(at) for at in (0x100, 0x130, 0x140, 0x180)]
    assert lines == ["first.c:7", "first.c:7", "beside.c:7", ""]
    made.know(library("second.c", 0x100, 0x20))
    assert [made.line(at) for at in (0x100, 0x130, 0x140)] == ["second.c:7", "", "beside.c:7"]


def test_a_peripheral_too_many_is_refused_and_changes_nothing() -> None:
    assert f"#define MODELS {_MODELS}U\n" in (resources.files("minrpc.hardware") / "trap.c").read_text()
    made = trap(*(0x40000000 + 0x400 * at for at in range(_MODELS - 1)))
    made.add(peripheral(0x50000000), Mock(image=None))
    told = made._library.variables["trap_models"].write
    assert told.call_args.args[0][-4:] == [0x50000000, 4, 0, 0]
    assert len(told.call_args.args[0]) == 2 * (_MODELS + 1)
    with pytest.raises(RegisterError, match="16 peripherals are open, which is the most") as error:
        made.add(peripheral(0x50001000), Mock(image=None))
    assert "close one" in error.value.next_step
    assert (len(made._peripherals), told.call_count) == (_MODELS, 1)


def test_a_peripheral_that_the_device_was_not_told_of_is_not_open() -> None:
    made = trap(0x40000000)
    made._library.variables["trap_models"].write.side_effect = TimeoutError
    refused = peripheral(0x50000000)
    with pytest.raises(TimeoutError):
        made.add(refused, Mock(image=None))
    assert refused not in made._peripherals
    assert refused.trap is None
