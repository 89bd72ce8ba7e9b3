# SPDX-License-Identifier: Apache-2.0
"""Finds executed instructions whose own time depends on their operands, or which skip others.

Division: "2 to 12 cycles" on Cortex-M3 and M4, "terminates when the divide calculation completes" (their
Technical Reference Manuals, instruction set summary), and by one bit or more a cycle on RISC-V cores and PCs.
Long multiplies of Cortex-M3 take 3 to 7 cycles, fewer for small operands; from Cortex-M4 on one cycle. IT
skips instructions on a condition, without a jump that a trace would have.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from minrpc.counters.image import Image
from minrpc.program.compiler import attributes_of

IT: Final = "it"
_LONGEST: Final = 15
_ARM_DIVISIONS: Final = {0xFB90: "sdiv", 0xFBB0: "udiv"}
_ARM_LONG_MULTIPLIES: Final = {0xFB80: "smull", 0xFBA0: "umull", 0xFBC0: "smlal", 0xFBE0: "umlal"}
_RISCV_DIVISIONS: Final = ("div", "divu", "rem", "remu")
_RISCV_OPS: Final = {0x33: "", 0x3B: "w"}
_X86_PREFIXES: Final = frozenset({0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65, 0x66, 0x67, 0xF0, 0xF2, 0xF3})
# Tag_CPU_arch of the Cortex-M3, from "Addenda to, and Errata in, the ABI for the Arm Architecture".
_ARM_V7: Final = 10
# Each timed batch contains code of the evaluator, and of thunks, which have no lines: neither has secrets.
_RUNTIME: Final = "/zephyr-app/runtime/"
_THUNKS: Final = "minrpc_"


def variable_time_instructions(image: Image, addresses: Iterable[int]) -> tuple[str, ...]:
    """Each executed instruction of variable time, "udiv in scale at scale.c:12", except those of the runtime
    and of thunks; also each IT."""
    # v7-M without the DSP extension is a Cortex-M3.
    long_multiplies = attributes_of(image.program, ".ARM.attributes").get("TAG_CPU_ARCH") == _ARM_V7
    instructions: dict[str, None] = {}
    for address in sorted(addresses):
        mnemonic = mnemonic_of(image.machine, image.bytes_at(address, _LONGEST), long_multiplies, image.wide)
        if mnemonic and not _is_ours(image, address):
            instructions[f"{mnemonic} in {image.place_of(address)}"] = None
    return tuple(instructions)


def _is_ours(image: Image, address: int) -> bool:
    line, function = image.line_at(address), image.function_at(address)
    if line is not None:
        return _RUNTIME in line.file
    return function is not None and function.name.startswith(_THUNKS)


def mnemonic_of(machine: str, code: bytes, long_multiplies: bool, wide: bool) -> str:
    """Mnemonic of the first instruction of `code`; "" if its time does not depend on its operands."""
    word = int.from_bytes(code[:4], "little")
    if machine == "EM_ARM" and word & 0xFF00 == 0xBF00 and word & 0xF:
        return IT
    if machine == "EM_ARM":
        return _thumb(word & 0xFFF0, word >> 16, long_multiplies)
    if machine == "EM_RISCV":
        return _riscv(word)
    return _x86(code, wide) if machine in ("EM_386", "EM_X86_64") else ""


def _thumb(first: int, second: int, long_multiplies: bool) -> str:
    if first in _ARM_DIVISIONS and second & 0xF0F0 == 0xF0F0:
        return _ARM_DIVISIONS[first]
    if long_multiplies and first in _ARM_LONG_MULTIPLIES and second & 0x00F0 == 0:
        return _ARM_LONG_MULTIPLIES[first]
    return ""


def _riscv(word: int) -> str:
    function, opcode = word >> 12 & 7, word & 0x7F
    if opcode not in _RISCV_OPS or word >> 25 != 1 or function < 4:
        return ""
    return _RISCV_DIVISIONS[function - 4] + _RISCV_OPS[opcode]


def _x86(code: bytes, wide: bool) -> str:
    at = 0
    while at < len(code) and (code[at] in _X86_PREFIXES or (wide and code[at] & 0xF0 == 0x40)):
        at += 1
    if len(code) < at + 2 or code[at] not in (0xF6, 0xF7):
        return ""
    return {6: "div", 7: "idiv"}.get(code[at + 1] >> 3 & 7, "")
