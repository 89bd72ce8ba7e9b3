# SPDX-License-Identifier: Apache-2.0
"""Instructions as operations on values: moves, sums, loads and stores, for a replay of a record.

Only operations that keep a pointer, or its distance from an object's begin, have a kind of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from minrpc.cycles.instructions import InstructionSet, decoder_of

if TYPE_CHECKING:
    import capstone

SP: Final = "sp"


class Kind(IntEnum):
    """The kinds; `OTHER` gives a value that is no pointer, `BITS` one of which some bits may be kept."""

    OTHER = 0
    BITS = 1
    NUMBER = 2  # to the number `amount`
    SUM = 3  # first source, and `amount`
    ADD = 4  # both sources, the second shifted left by `amount`
    SUBTRACT = 5
    SHIFT = 6  # left by `amount`; right if it is negative
    LOAD = 7
    STORE = 8
    BRANCH = 9
    UPPER = 10  # to the number `amount`, the upper bits of an address


class Operation(NamedTuple):
    """One instruction.

    to, sources: registers. Sources of a load or store are the base and the index; a store's `to` are stored.
    amount: see `Kind`; a load's or store's distance from the base. writes_back: bytes added to the base.
    conditional: it may be skipped. flags: it sets flags. by_flags: it depends on them. calls: a call.
    literal: address of a constant that it loads; 0 for none. shift: of an index, to the left.
    end: address behind it.
    """

    at: int
    kind: Kind
    to: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    amount: int = 0
    writes_back: int = 0
    conditional: bool = False
    flags: bool = False
    by_flags: bool = False
    calls: bool = False
    literal: int = 0
    shift: int = 0
    end: int = 0


def operations(code: bytes, start: int, instruction_set: InstructionSet) -> list[Operation]:
    """The operations of a straight piece of code at `start`, up to an instruction that is not known."""
    decoder = decoder_of(instruction_set)
    make = _thumb if instruction_set == "thumb" else _riscv
    return [
        make(decoder, insn)._replace(end=insn.address + insn.size) for insn in decoder.disasm(code, start)
    ]


_MASK: Final = 0xFFFFFFFF
# The program counter is ahead of an instruction by this many bytes.
_AHEAD: Final = 4
_BRANCHES: Final = frozenset({"b", "cbz", "cbnz", "bl", "blx", "bx", "tbb", "tbh"})
_MEMORY: Final = tuple(
    f"{v}{name}" for v in ("", "v") for name in ("ldr", "ldm", "pop", "str", "stm", "push")
)
_SHIFTS: Final = {"lsl": 1, "lsr": -1, "asr": -1}
_BITS: Final = re.compile(r"(and|orr|bic|eor|bfi|bfc|ubfx|sbfx|orn)")


def _thumb(decoder: capstone.Cs, insn: capstone.CsInsn) -> Operation:
    import capstone

    name = (decoder.insn_name(insn.id) or insn.mnemonic).lower()
    always = (capstone.arm.ARM_CC_INVALID, capstone.arm.ARM_CC_AL)
    is_branch = name in _BRANCHES
    depends = insn.cc not in always
    if name.startswith(_MEMORY):
        return _thumb_memory(decoder, insn, name)._replace(conditional=depends)
    read, written = (_plain([decoder.reg_name(item) for item in regs]) for regs in insn.regs_access())
    if is_branch:
        calls = name in ("bl", "blx")
        return Operation(insn.address, Kind.BRANCH, (), read, by_flags=depends, calls=calls)
    operation = _thumb_data(decoder, insn, name, insn.operands)
    if operation is None:
        kind = Kind.BITS if _BITS.match(name) else Kind.OTHER
        operation = Operation(insn.address, kind, written, read)
    flags, by_flags = bool(insn.update_flags), name.startswith("it")
    return operation._replace(conditional=depends, flags=flags, by_flags=by_flags)


def _plain(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in ("cpsr", "apsr", "pc", "itstate", "fpscr"))


def _thumb_data(
    decoder: capstone.Cs, insn: capstone.CsInsn, name: str, operands: Sequence[capstone.arm.ArmOp]
) -> Operation | None:
    """A move, sum, difference or shift; None for other operations."""
    import capstone

    if len(operands) < 2 or operands[0].type != capstone.arm.ARM_OP_REG:
        return None
    at, last = insn.address, operands[-1]
    to = (decoder.reg_name(operands[0].reg),)
    first = decoder.reg_name(operands[1].reg) if operands[1].type == capstone.arm.ARM_OP_REG else to[0]
    is_number, shift = last.type == capstone.arm.ARM_OP_IMM, _shift_of(last)
    if shift is None or first == "pc":
        return None
    if name in _SHIFTS and is_number:
        return Operation(at, Kind.SHIFT, to, (first,), _SHIFTS[name] * last.imm)
    if name == "adr" and is_number:
        return Operation(at, Kind.NUMBER, to, (), (at & ~3) + _AHEAD + last.imm)
    if name in ("mov", "movw"):
        if is_number:
            return Operation(at, Kind.NUMBER, to, (), last.imm & _MASK)
        return Operation(at, Kind.SHIFT if shift else Kind.SUM, to, (first,), shift)
    if name not in ("add", "addw", "sub", "subw"):
        return None
    negative = name.startswith("sub")
    first = first if len(operands) > 2 else to[0]
    if is_number:
        return Operation(at, Kind.SUM, to, (first,), -last.imm if negative else last.imm)
    other = (first, decoder.reg_name(last.reg))
    if shift < 0 or (negative and shift):
        return None
    return Operation(at, Kind.SUBTRACT if negative else Kind.ADD, to, other, shift)


def _shift_of(operand: capstone.arm.ArmOp) -> int | None:
    """The bits by which a register is shifted left, or right if negative; None for another shift."""
    import capstone

    kinds = {
        capstone.arm.ARM_SFT_INVALID: 0,
        capstone.arm.ARM_SFT_LSL: 1,
        capstone.arm.ARM_SFT_LSR: -1,
        capstone.arm.ARM_SFT_ASR: -1,
    }
    factor = kinds.get(operand.shift.type)
    return None if factor is None else factor * int(operand.shift.value)


def _thumb_memory(decoder: capstone.Cs, insn: capstone.CsInsn, name: str) -> Operation:
    import capstone

    is_store = name.startswith(("str", "stm", "push", "vstr", "vpush", "vstm"))
    kind = Kind.STORE if is_store else Kind.LOAD
    registers = [decoder.reg_name(item.reg) for item in insn.operands if item.type == capstone.arm.ARM_OP_REG]
    if name in ("push", "pop", "vpush", "vpop"):
        size = sum(8 if item.startswith("d") else 4 for item in registers)
        down = -size if is_store else 0
        return Operation(insn.address, kind, tuple(registers), (SP,), down, -size if is_store else size)
    if name.startswith(("ldm", "stm", "vldm", "vstm")):
        base, *registers = registers
        size = sum(8 if item.startswith("d") else 4 for item in registers)
        down = -size if "db" in name else 0
        back = (-size if "db" in name else size) if insn.writeback else 0
        return Operation(insn.address, kind, tuple(registers), (base,), down, back)
    memory = next((item for item in insn.operands if item.type == capstone.arm.ARM_OP_MEM), None)
    if memory is None:
        return Operation(insn.address, Kind.OTHER, tuple(registers))
    place = memory.mem
    base = decoder.reg_name(place.base)
    sources = (base, decoder.reg_name(place.index)) if place.index else (base,)
    if name.startswith(("strex",)):
        registers = registers[1:]
    literal = (insn.address & ~3) + 4 + place.disp if base == "pc" and not place.index else 0
    shift = memory.shift.value if memory.shift.type == capstone.arm.ARM_SFT_LSL else 0
    post = next((item.imm for item in insn.operands if item.type == capstone.arm.ARM_OP_IMM), 0)
    back = (post or place.disp) if insn.writeback else 0
    distance = 0 if insn.writeback and post else place.disp
    return Operation(
        insn.address, kind, tuple(registers), sources, distance, back, literal=literal, shift=shift
    )


_LOADS: Final = re.compile(r"(?:c\.)?f?l[bhwd]u?(?:sp)?")
_STORES: Final = re.compile(r"(?:c\.)?f?s[bhwd](?:sp)?")
_RISCV_BRANCHES: Final = re.compile(r"b(?:eq|ne|lt|ge|gt|le)(?:u|z)?")
_RISCV_BITS: Final = re.compile(r"and|or|xor|andi|ori|xori|not")


def _riscv(decoder: capstone.Cs, insn: capstone.CsInsn) -> Operation:
    import capstone

    name = insn.mnemonic.removeprefix("c.")
    registers = [decoder.reg_name(item.reg) for item in insn.operands if item.type == capstone.CS_OP_REG]
    numbers = [item.imm for item in insn.operands if item.type == capstone.CS_OP_IMM]
    at, compressed = insn.address, insn.mnemonic.startswith("c.")
    if _LOADS.fullmatch(insn.mnemonic) or _STORES.fullmatch(insn.mnemonic):
        place = next((item.mem for item in insn.operands if item.type == capstone.riscv.RISCV_OP_MEM), None)
        # Compressed ones have their base among the registers, or none.
        base = decoder.reg_name(place.base) if place is not None else [*registers, SP][1]
        distance = place.disp if place is not None else (numbers or [0])[0]
        kind = Kind.LOAD if _LOADS.fullmatch(insn.mnemonic) else Kind.STORE
        return Operation(at, kind, tuple(registers[:1]), (base,), distance)
    if _RISCV_BRANCHES.fullmatch(name):
        return Operation(at, Kind.BRANCH, (), tuple(registers))
    if name in ("jal", "jalr", "j", "jr", "ret"):
        calls = insn.mnemonic in ("c.jal", "c.jalr") or (
            name in ("jal", "jalr") and registers[:1] != ["zero"]
        )
        return Operation(at, Kind.BRANCH, (), (), calls=calls)
    data = _riscv_data(name, registers, numbers, compressed, at)
    if data is not None:
        return data
    kind = Kind.BITS if _RISCV_BITS.match(name) else Kind.OTHER
    sources = registers if compressed else registers[1:]
    return Operation(at, kind, tuple(registers[:1]), tuple(sources))


def _riscv_data(
    name: str, registers: Sequence[str], numbers: Sequence[int], compressed: bool, at: int
) -> Operation | None:
    to = tuple(registers[:1])
    sources = tuple(registers[1:]) or to
    number = numbers[0] if numbers else 0
    simple: dict[str, Callable[[], Operation]] = {
        "li": lambda: Operation(at, Kind.NUMBER, to, (), number & 0xFFFFFFFF),
        "lui": lambda: Operation(at, Kind.UPPER, to, (), number << 12 & 0xFFFFFFFF),
        "auipc": lambda: Operation(at, Kind.UPPER, to, (), at + (number << 12) & 0xFFFFFFFF),
        "mv": lambda: Operation(at, Kind.SUM, to, sources[:1]),
        "addi": lambda: Operation(at, Kind.SUM, to, sources[:1], number),
        "addi4spn": lambda: Operation(at, Kind.SUM, to, (SP,), number),
        "addi16sp": lambda: Operation(at, Kind.SUM, (SP,), (SP,), number),
        "slli": lambda: Operation(at, Kind.SHIFT, to, sources[:1], number),
        "srli": lambda: Operation(at, Kind.SHIFT, to, sources[:1], -number),
        "srai": lambda: Operation(at, Kind.SHIFT, to, sources[:1], -number),
        "add": lambda: Operation(at, Kind.ADD, to, (*to, *sources) if compressed else sources),
        "sub": lambda: Operation(at, Kind.SUBTRACT, to, (*to, *sources) if compressed else sources),
    }
    return simple[name]() if name in simple and to else None
