# SPDX-License-Identifier: Apache-2.0
"""The interface between a device's trap and the processor's instructions."""

from __future__ import annotations

import struct
from typing import ClassVar, Final, NamedTuple, Protocol

from minrpc.client.conversation import Conversation
from minrpc.errors import RegisterError
from minrpc.hardware.loads_stores import exclusive_store

# Bytes behind an exclusive load in which its store is searched.
_AHEAD: Final = 48
# An element of the trap's `trap_breaks`, and the instruction that traps, by instruction set.
_BREAKS: Final = {"thumb": "<II", "riscv32": "<II", "riscv64": "<QI4x"}
_MOST: Final = 5  # as BREAKS in trap.c
_TRAPS: Final = {"thumb": b"\x00\xde", "riscv": b"\0\0"}


class Answer(NamedTuple):
    """number: the trap's code on the device gets it. complete: False if the access asks once more."""

    number: int
    complete: bool = True


class Bus(Protocol):
    """Protocol: the trap, which has the peripherals."""

    def load(self, address: int, size: int, line: str) -> int:
        """C reads `size` bytes."""
        ...

    def store(self, address: int, size: int, value: int, line: str) -> None:
        """C writes `size` bytes."""
        ...

    def find(self, address: int, line: str) -> object:
        """The peripheral at an address."""
        ...

    def line(self, pc: int) -> str:
        """The line of C at `pc`."""
        ...

    def address(self, name: str) -> int:
        """The address of a variable of the trap's code."""
        ...


def await_store(bus: Bus, conversation: Conversation, pc: int, size: int, instruction_set: str) -> None:
    """Trap the exclusive store behind an exclusive load of `size` bytes at `pc`: the processor would not try
    it. The ways past the store are trapped, too: they end all traps. Raises RegisterError without a store."""
    code = conversation.read(pc + size, _AHEAD)
    places = exclusive_store(code, pc + size, instruction_set)
    if not 0 < len(places) <= _MOST:
        problem = "too many branches" if places else f"no exclusive store within {_AHEAD} bytes"
        raise RegisterError(f"{problem} behind the exclusive load in {bus.line(pc)}")
    table = b""
    for place in places:
        inside = place - pc - size
        first = code[inside : inside + 2] if 0 <= inside <= _AHEAD - 2 else conversation.read(place, 2)
        table += struct.pack(_BREAKS[instruction_set], place, int.from_bytes(first, "little"))
    conversation.write(bus.address("trap_breaks"), table)
    for place in places:
        conversation.write(place, _TRAPS[instruction_set[:5]])


class Core(Protocol):
    """Protocol: the accesses of a processor's instructions. source: the trap's C file beside this module."""

    source: ClassVar[str]
    instruction_set: ClassVar[str]

    def answer(self, bus: Bus, conversation: Conversation, words: memoryview) -> Answer:
        """Answer one access. words: the question of the trap's code."""
        ...
