# SPDX-License-Identifier: Apache-2.0
"""Instructions whose time depends on their operands, in the encodings of GNU as."""

from __future__ import annotations

from pathlib import Path

import pytest
from minrpc.counters import Image
from minrpc.counters.variable_time import _is_ours, mnemonic_of

from tests.unit.counters.test_image import named, program


@pytest.mark.parametrize(
    ("machine", "code", "expected"),
    [
        ("EM_ARM", "90fbf1f0", "sdiv"),  # sdiv r0, r0, r1
        ("EM_ARM", "b3fbf2f1", "udiv"),  # udiv r1, r3, r2
        ("EM_ARM", "a2fb0301", "umull"),  # umull r0, r1, r2, r3
        ("EM_ARM", "c2fb0301", "smlal"),  # smlal r0, r1, r2, r3
        ("EM_ARM", "00fb01f0", ""),  # mul r0, r0, r1
        ("EM_ARM", "b8bf00bf", "it"),  # it lt
        ("EM_ARM", "00bfb8bf", ""),  # nop
        ("EM_RISCV", "3345b502", "div"),  # div a0, a0, a1
        ("EM_RISCV", "3375b502", "remu"),  # remu a0, a0, a1
        ("EM_RISCV", "3b55b502", "divuw"),  # divuw a0, a0, a1
        ("EM_RISCV", "3305b502", ""),  # mul a0, a0, a1
        ("EM_RISCV", "3345b500", ""),  # xor a0, a0, a1
        ("EM_386", "f7f1", "div"),  # div ecx
        ("EM_386", "66f7f9", "idiv"),  # idiv cx
        ("EM_X86_64", "48f7f1", "div"),  # div rcx
        ("EM_386", "f7e1", ""),  # mul ecx
    ],
)
def test_what_takes_another_time(machine: str, code: str, expected: str) -> None:
    assert mnemonic_of(machine, bytes.fromhex(code), True, machine == "EM_X86_64") == expected


def test_long_multiplies_take_one_time_from_the_cortex_m4_on() -> None:
    assert mnemonic_of("EM_ARM", bytes.fromhex("a2fb0301"), False, False) == ""


def test_thunks_which_have_no_lines_are_ours(tmp_path: Path) -> None:
    image = Image(program(tmp_path))
    names = ("minrpc_timer_start", "work")
    assert [_is_ours(image, named(image, name)) for name in names] == [True, False]
