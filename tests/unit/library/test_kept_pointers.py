# SPDX-License-Identifier: Apache-2.0
"""Pointers into memory of a call that is over, in variables of a library: memory here is a list of bytes."""

from __future__ import annotations

import re
from functools import partial

import pytest
from minrpc.errors import GuardError
from minrpc.library.frame import Block, CallFrame
from minrpc.library.kept_pointers import KeptPointers
from minrpc.program.c_types import ArrayType, Field, Pointer, RecordType, Scalar, Variable

WORD = Pointer(Scalar("int", 4, "int"), 4)
INNER = RecordType(
    "struct", "inner", 8, complete=True, fields=(Field("n", Scalar("int", 4, "int"), 0), Field("p", WORD, 4))
)
OUTER = RecordType(
    "struct",
    "outer",
    24,
    complete=True,
    fields=(Field("all", ArrayType(INNER, 2), 0), Field("last", WORD, 16)),
)
BASE, SIZE = 0x1000, 64
# Addresses of the pointers: the last one is far from the others.
PLACES = {"here.all[0].p": 4, "here.all[1].p": 12, "here.last": 16, "far": 9000}


def looked_at(memory: bytearray) -> KeptPointers:
    variables = [
        Variable("here", "here", OUTER),
        Variable("far", "far", WORD),
        Variable("gone", "gone", WORD),
    ]
    reader = lambda address, size: partial(lambda: bytes(memory[address : address + size]))  # noqa: E731
    return KeptPointers.of(4, reader, variables, {"here": 0, "far": 9000})


def require(kept: KeptPointers) -> None:
    kept.require("f", BASE, SIZE, lambda: CallFrame(4))


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("value", [BASE, BASE + SIZE - 1])
def test_each_pointer_is_found(name: str, value: int) -> None:
    memory = bytearray(9004)
    kept = looked_at(memory)
    require(kept)
    memory[PLACES[name] : PLACES[name] + 4] = value.to_bytes(4, "little")
    with pytest.raises(GuardError, match=f"its arguments in {re.escape(name)}:"):
        require(kept)
    require(kept)  # The same pointer again is not told again.


@pytest.mark.parametrize("value", [0, BASE - 1, BASE + SIZE, 0xFFFFFFFF])
def test_other_values_are_not(value: int) -> None:
    memory = bytearray(9004)
    for at in (*PLACES.values(), 0, 8):
        memory[at : at + 4] = value.to_bytes(4, "little")
    memory[0:4] = BASE.to_bytes(4, "little")  # A number, and no pointer.
    require(looked_at(memory))


def test_the_argument_is_named_up_to_its_last_byte() -> None:
    frame, memory = CallFrame(4), bytearray(4)
    for name in ("one", "other"):
        frame.add(Block(name, 12, 4, None))
    frame.lay_out("f")
    named = {}
    for at in range(frame.size):
        kept = KeptPointers.of(
            4, lambda *_: lambda: bytes(memory), [Variable("far", "far", WORD)], {"far": 0}
        )
        memory[:] = (BASE + at).to_bytes(4, "little")
        with pytest.raises(GuardError, match=r"kept a pointer to (one|other|its arguments) in far") as told:
            kept.require("f", BASE, frame.size, lambda: frame)
        named[at] = told.value.message.split()[5]
    assert named == dict.fromkeys(range(frame.size), "its") | {
        block.offset + at: block.name for block in frame.blocks for at in range(block.size)
    }


def test_objects_come_and_go() -> None:
    memory = bytearray(9004)
    kept = looked_at(memory)
    memory[100:104] = BASE.to_bytes(4, "little")
    kept.add("placed", WORD, 100)
    kept.add("unaligned", WORD, 98)  # It can't be read with the others.
    with pytest.raises(GuardError, match="in placed:"):
        require(kept)
    kept.remove(100)
    memory[100:104] = (BASE + 1).to_bytes(4, "little")
    require(kept)
    for unreadable in (None, b""):
        require(KeptPointers.of(4, lambda *_: lambda: unreadable, [Variable("far", "far", WORD)], {"far": 0}))  # noqa: B023
