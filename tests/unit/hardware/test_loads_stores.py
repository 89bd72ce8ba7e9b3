# SPDX-License-Identifier: Apache-2.0
"""Decoded loads and stores that compilers seldom make."""

from __future__ import annotations

import pytest
from minrpc.errors import RegisterError
from minrpc.hardware.loads_stores import decode_thumb, instructions


@pytest.mark.parametrize(
    ("code", "offset", "step", "registers"),
    [
        ("11e90c00", -8, 0, "r2 r3"),  # ldmdb r1, {r2, r3}
        ("31e90c00", -8, -8, "r2 r3"),  # ldmdb r1!, {r2, r3}
        ("90ed021b", 8, 0, "s2 s3"),  # vldr d1, [r0, #8]
        ("f1e80223", 0, 8, "r2 r3"),  # ldrd r2, r3, [r1], #8
        ("71e90223", -8, -8, "r2 r3"),  # ldrd r2, r3, [r1, #-8]!
    ],
)
def test_several_words(code: str, offset: int, step: int, registers: str) -> None:
    found = decode_thumb(bytes.fromhex(code), 0x100)
    names = [(item.register, item.offset) for item in found.transfers]
    assert (found.offset, found.step) == (offset, step)
    assert names == [(name, 4 * at) for at, name in enumerate(registers.split())]


def test_an_exclusive_access_ends_by_clrex() -> None:
    code = bytes.fromhex("51e8000f bff32f8f 00bf")  # ldrex r0, [r1]; clrex; nop
    assert [text for _, text in instructions(0, code, "thumb")] == ["ldrex r0, [r1]", "", "nop "]


@pytest.mark.parametrize(
    ("code", "instruction_set", "expected"),
    [
        ("4ef001e0 00bf 0ff00dc0", "thumb", {0: "unknown", 4: "nop ", 6: "unknown"}),  # dls lr, lr; nop; le
        ("c6b6 00bf", "thumb", {0: "unknown", 2: "nop "}),
        ("7f000000 0100 0080 0100", "riscv32", {0: "unknown", 4: "c.nop ", 6: "unknown", 8: "c.nop "}),
        ("00bf 4e", "thumb", {0: "nop ", 2: "unknown"}),
    ],
)
def test_unknown_instructions_are_told_and_followed_by_the_next(
    code: str, instruction_set: str, expected: dict[int, str]
) -> None:
    assert dict(instructions(0, bytes.fromhex(code), instruction_set)) == expected


def test_an_unknown_instruction_of_x86_has_no_known_end() -> None:
    with pytest.raises(RegisterError, match=r"instruction at 0x101 \(06 90\) is not known, so its end is"):
        list(instructions(0x100, bytes.fromhex("900690"), "x86_64"))
