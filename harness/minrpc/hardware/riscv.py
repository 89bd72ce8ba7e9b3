# SPDX-License-Identifier: Apache-2.0
"""Accesses of RISC-V: the instruction is decoded, and one register of the kept state changed."""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from minrpc.client.conversation import Conversation
from minrpc.hardware.loads_stores import Decoded, decode_riscv
from minrpc.hardware.trap_interface import Answer, Bus, await_store

_NAMES: Final = (
    *("zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1"),
    *(f"a{n}" for n in range(8)),
    *(f"s{n}" for n in range(2, 12)),
    *(f"t{n}" for n in range(3, 7)),
)
_FLOATS: Final = (
    *(f"ft{n}" for n in range(8)),
    *("fs0", "fs1"),
    *(f"fa{n}" for n in range(8)),
    *(f"fs{n}" for n in range(2, 12)),
    *(f"ft{n}" for n in range(8, 12)),
)
# Words of the state in front of the registers of the FPU, of 8 bytes each.
_BEFORE_FLOATS: Final = 37


def _combined(operation: str, old: int, operand: int, bits: int) -> int:
    """The number that an atomic access writes."""
    half = 1 << (bits - 1)
    numbers = old, operand
    match operation:
        case "add":
            return (old + operand) % (1 << bits)
        case "xor":
            return old ^ operand
        case "and":
            return old & operand
        case "or":
            return old | operand
        case "min" | "max":
            return (min if operation == "min" else max)(numbers, key=lambda number: number ^ half)
        case "minu" | "maxu":
            return (min if operation == "minu" else max)(numbers)
    return operand


def _move_float(
    bus: Bus, conversation: Conversation, place: int, address: int, decoded: Decoded, line: str
) -> None:
    """Load or store a register of the FPU, which the trap has kept at `place`; a shorter number has ones in
    front."""
    size = decoded.transfers[0].size
    if decoded.writes:
        bus.store(address, size, int.from_bytes(conversation.read(place, size), "little"), line)
    else:
        conversation.write(place, bus.load(address, size, line).to_bytes(size, "little").ljust(8, b"\xff"))


class RiscV:
    """A RISC-V of 32 bits in machine mode: see `Core`."""

    source: ClassVar[str] = "trap_riscv.c"
    instruction_set: ClassVar[str] = "riscv32"
    state: ClassVar[struct.Struct] = struct.Struct("<36I")

    def answer(self, bus: Bus, conversation: Conversation, words: memoryview) -> Answer:
        """See `Core`. The trap's code extends the sign of 32 bits; a wider number is written to its state."""
        numbers = self.state.unpack(words)
        pc, address, code, state = numbers[32:36]
        decoded = decode_riscv(code.to_bytes(4, "little"), pc, self.instruction_set)
        (item,) = decoded.transfers
        word = self.state.size // 36
        if item.register in _FLOATS:
            place = state + -(-_BEFORE_FLOATS * word // 8) * 8 + 8 * _FLOATS.index(item.register)
            _move_float(bus, conversation, place, address, decoded, bus.line(pc))
            return Answer(decoded.size << 40)
        number, bits = _NAMES.index(item.register), 8 * item.size
        if decoded.writes:
            bus.store(address, item.size, numbers[number] & ((1 << bits) - 1), bus.line(pc))
            return Answer(decoded.size << 40 | (_NAMES.index(decoded.result) << 32 if decoded.result else 0))
        value = bus.load(address, item.size, bus.line(pc))
        if decoded.exclusive:
            await_store(bus, conversation, pc, decoded.size, self.instruction_set)
        if decoded.operation:
            operand = numbers[_NAMES.index(decoded.operand)] & ((1 << bits) - 1)
            bus.store(address, item.size, _combined(decoded.operation, value, operand, bits), bus.line(pc))
        if decoded.signed and value >> (bits - 1):
            value -= 1 << bits
        if -(1 << 31) <= value < 1 << 31:
            return Answer((value & 0xFFFFFFFF if number else 0) | number << 32 | decoded.size << 40)
        conversation.write(state + word * number, (value % (1 << 8 * word)).to_bytes(word, "little"))
        return Answer(decoded.size << 40)


class RiscV64(RiscV):
    """A RISC-V of 64 bits in machine mode: see `Core`."""

    instruction_set: ClassVar[str] = "riscv64"
    state: ClassVar[struct.Struct] = struct.Struct("<36Q")
