# SPDX-License-Identifier: Apache-2.0
"""Decodes instructions as far as a crash report needs: the target of a call, and loads and stores.

Machines are named as ELF names them. Code is bytes in the target's order, which is little-endian.
"""

from __future__ import annotations

from typing import Final, NamedTuple

NO_INSTRUCTION: Final = "an instruction that the core does not have, as of __builtin_trap"
UNALIGNED: Final = "unaligned access"
NO_COPROCESSOR: Final = "an instruction of a coprocessor that is off or missing"
LONGEST_CALL: Final = 8
"""Bytes in front of a return address that can hold the call, at most (x86)."""


class CallInstruction(NamedTuple):
    """target: the called address; None if it is in a register or memory."""

    target: int | None


def call_before(machine: str, address: int, code: bytes) -> CallInstruction | None:
    """The call that returns to `address`; `code` is the bytes before it. None if there is no call."""
    if len(code) < LONGEST_CALL:
        return None
    if machine == "EM_ARM":
        return _thumb_call(address & ~1, code) if address & 1 else None
    if machine == "EM_RISCV":
        return _riscv_call(address, code)
    if machine in ("EM_386", "EM_X86_64"):
        return _x86_call(address, code)
    if machine == "EM_AARCH64":
        return _aarch64_call(address, code)
    return None


def _half(code: bytes, at: int) -> int:
    return int.from_bytes(code[at : at + 2 or None], "little")


def _word(code: bytes, at: int) -> int:
    return int.from_bytes(code[at : at + 4 or None], "little")


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def _thumb_call(address: int, code: bytes) -> CallInstruction | None:
    """BL (encoding T1), and BLX with a register."""
    first, second = _half(code, -4), _half(code, -2)
    if first & 0xF800 == 0xF000 and second & 0xD000 == 0xD000:
        sign, j1, j2 = first >> 10 & 1, second >> 13 & 1, second >> 11 & 1
        offset = sign << 24 | (j1 ^ sign ^ 1) << 23 | (j2 ^ sign ^ 1) << 22
        offset |= (first & 0x3FF) << 12 | (second & 0x7FF) << 1
        return CallInstruction((address + _signed(offset, 25)) & ~1)
    return CallInstruction(None) if second & 0xFF87 == 0x4780 else None


def _riscv_call(address: int, code: bytes) -> CallInstruction | None:
    """jal and jalr that set ra, with auipc in front of the latter, and their compressed forms."""
    word = _word(code, -4)
    if word & 0xFFF == 0x0EF:
        offset = (word >> 31) << 20 | (word >> 12 & 0xFF) << 12
        offset |= (word >> 20 & 1) << 11 | (word >> 21 & 0x3FF) << 1
        return CallInstruction(address - 4 + _signed(offset, 21))
    if word & 0xFFF == 0x0E7:
        high = _word(code, -8)
        paired = high & 0x7F == 0x17 and high >> 7 & 31 == word >> 15 & 31
        low = _signed(word >> 20, 12)
        return CallInstruction(address - 8 + _signed(high & 0xFFFFF000, 32) + low if paired else None)
    half = _half(code, -2)
    if half & 0xF07F == 0x9002:
        return CallInstruction(None)
    if half & 0xE003 == 0x2001:
        return CallInstruction(address - 2 + _compressed_offset(half))
    return None


def _compressed_offset(half: int) -> int:
    """Offset of c.jal: imm[11|4|9:8|10|6|7|3:1|5] from bit 12 down."""
    order = (11, 4, 9, 8, 10, 6, 7, 3, 2, 1, 5)
    return _signed(sum((half >> 12 - index & 1) << bit for index, bit in enumerate(order)), 12)


def _x86_call(address: int, code: bytes) -> CallInstruction | None:
    """E8 with an offset; FF /2 with a register or memory."""
    if code[-5] == 0xE8:
        return CallInstruction((address + _signed(_word(code, -4), 32)) & 0xFFFFFFFFFFFFFFFF)
    indirect = any(code[-size] == 0xFF and code[1 - size] & 0x38 == 0x10 for size in (2, 3, 6, 7))
    return CallInstruction(None) if indirect else None


def _aarch64_call(address: int, code: bytes) -> CallInstruction | None:
    """BL, and BLR with a register."""
    word = _word(code, -4)
    if word >> 26 == 0b100101:
        return CallInstruction(address - 4 + _signed((word & 0x3FFFFFF) << 2, 28))
    return CallInstruction(None) if word & 0xFFFFFC1F == 0xD63F0000 else None


def writes(machine: str, code: bytes) -> bool | None:
    """True if the first instruction of `code` stores, False if it loads; None if unknown."""
    if machine != "EM_ARM" or len(code) < 4:
        return None
    first = _half(code, 0)
    if first >= 0xE800:
        return _wide_thumb_writes(first)
    top = first >> 11
    if first & 0xFE00 == 0xB400:
        return True
    if top in (0b01100, 0b01110, 0b10000, 0b10010, 0b11000):
        return True
    if first >> 12 == 0b0101:
        return first >> 9 & 7 < 3
    return False if top in (0b01001, 0b01101, 0b01111, 0b10001, 0b10011, 0b11001, 0b10111) else None


def is_riscv_float(code: bytes) -> bool:
    """True if the first instruction of `code` needs a RISC-V's FPU (or its vector unit)."""
    first = _half(code, 0)
    if first & 3 == 3:
        return first & 0x7F in (0x07, 0x27, 0x43, 0x47, 0x4B, 0x4F, 0x53, 0x57)
    return first & 3 in (0, 2) and first >> 13 in (1, 5)


def x86_cause(code: bytes) -> str:
    """The cause of a fault of the first instruction of `code` that is no access; "" for other faults."""
    if code[:1] in (b"\xf6", b"\xf7") and len(code) > 1 and code[1] >> 3 & 6 == 6:
        return "divided by zero"
    return (
        "an instruction that the core does not have, as of __builtin_trap" if code[:2] == b"\x0f\x0b" else ""
    )


def _wide_thumb_writes(first: int) -> bool | None:
    """Loads and stores have bit 4 of their first halfword for a load."""
    if first >> 9 in (0b1110100, 0b1111100) or first >> 9 in (0b1110110,):
        return not first >> 4 & 1
    return None
