# SPDX-License-Identifier: Apache-2.0
"""Accesses of Armv7-M: the instruction is decoded, and the kept state of the interrupted code changed."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import ClassVar, Final

from minrpc.client.conversation import Conversation
from minrpc.errors import RegisterError
from minrpc.hardware.loads_stores import Decoded, decode_thumb
from minrpc.hardware.trap_interface import Answer, Bus, await_store

_NAMES: Final = (*(f"r{n}" for n in range(9)), "sb", "sl", "fp", "ip", "sp", "lr", "pc", "xpsr")
_STATE: Final = struct.Struct("<20I")
_FPU_AT: Final = 92
_NO_REGISTER: Final = 15


class Arm:
    """A Cortex-M3, M4 or M7: see `Core`."""

    source: ClassVar[str] = "trap_cortex_m.c"
    instruction_set: ClassVar[str] = "thumb"

    def answer(self, bus: Bus, conversation: Conversation, words: memoryview) -> Answer:
        """See `Core`."""
        numbers = _STATE.unpack(words)
        *_, pc, _, address, code, state = numbers
        registers = dict(zip(_NAMES, numbers, strict=False))
        decoded = decode_thumb(code.to_bytes(4, "little"), pc)
        line = bus.line(pc)
        first = decoded.address(registers)
        if address and not first <= address < first + sum(item.size for item in decoded.transfers):
            raise RegisterError(f"0x{pc:x}: {decoded.text} accesses 0x{first:x}, the trap saw 0x{address:x}")
        core = _State(conversation, state, registers)
        for item in decoded.transfers:
            at = first + item.offset
            if decoded.writes:
                bus.store(at, item.size, core.value(item.register) & ((1 << 8 * item.size) - 1), line)
            else:
                core.set(item.register, decoded.extended(bus.load(at, item.size, line), item.size))
        if decoded.step:
            core.set(decoded.base, registers[decoded.base] + decoded.step)
        if decoded.result:
            core.set(decoded.result, 0)
        if decoded.exclusive:
            await_store(bus, conversation, pc, decoded.size, self.instruction_set)
        return Answer(core.answer(decoded))


class _State:
    """The registers of an interrupted core."""

    def __init__(self, conversation: Conversation, state: int, registers: Mapping[str, int]) -> None:
        self._conversation = conversation
        self._state = state
        self._registers = registers
        self._changed: dict[str, int] = {}

    def value(self, name: str) -> int:
        """A register's content."""
        if name in self._registers:
            return self._registers[name]
        return int.from_bytes(self._conversation.read(self._place(name), 4), "little")

    def set(self, name: str, value: int) -> None:
        """Change a register when the program goes on."""
        self._changed[name] = value & 0xFFFFFFFF

    def answer(self, decoded: Decoded) -> int:
        """The number that the trap gets: one register, its value, the instruction's size. Others are written
        into its state."""
        first = next((name for name in self._changed if name in _NAMES[:15]), None)
        value = self._changed.pop(first) if first is not None else 0
        for name, other in self._changed.items():
            self._conversation.write(self._place(name), other.to_bytes(4, "little"))
        number = _NAMES.index(first) if first is not None else _NO_REGISTER
        return value | number << 32 | decoded.size << 40

    def _place(self, name: str) -> int:
        if name in _NAMES:
            return self._state + 4 * _NAMES.index(name)
        return self._state + _FPU_AT + 4 * int(name[1:])
