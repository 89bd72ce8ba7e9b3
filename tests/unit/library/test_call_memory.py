# SPDX-License-Identifier: Apache-2.0
"""Memory of calls: its size, pointers that a call leaves behind, and a call while another function waits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock, Mock

import numpy as np
import pytest
from minrpc.errors import GuardError
from minrpc.library.arguments import plan_call
from minrpc.library.call_memory import CallMemory
from minrpc.library.frame import CallFrame
from minrpc.library.kept_pointers import KeptPointers
from minrpc.library.repeated import FrameLayout
from minrpc.library.structs import make_struct
from minrpc.program.c_types import (
    Field,
    FunctionDeclaration,
    FunctionType,
    Parameter,
    Pointer,
    RecordType,
    Scalar,
    Variable,
    Void,
)

SHORT = Pointer(Scalar("short", 2, "int"), 8)
HOLDER = RecordType("struct", "holder", 8, complete=True, fields=(Field("p", SHORT, 0),))


def session(room: int) -> Any:  # noqa: ANN401 - a session
    """A session whose arrays begin at this address."""
    made = lambda size, _: Mock(address=room, nbytes=size, usable_on=lambda _: True)  # noqa: E731
    return Mock(rpc=MagicMock(), aligned=Mock(side_effect=made))


def test_the_memory_grows_when_a_frame_does_not_fit() -> None:
    opened = session(0x1000)
    memory = CallMemory(opened)
    for size in (8, 1024, 1025, 2048, 1024, 2049):
        memory._base(size, "f")
    assert [each.args[0] for each in opened.aligned.call_args_list] == [1024, 2048, 4096]


def test_a_pointer_that_a_repeated_call_leaves_is_told() -> None:
    opened = session(0x1000)
    opened.rpc.facts.direct.reached = lambda *_: Mock(read=lambda _, size: bytes(size))
    kept = KeptPointers.of(
        8,
        lambda *_: lambda: (0x1007).to_bytes(8, "little"),
        [Variable("here", "here", SHORT)],
        {"here": 0},
    )
    memory, plan, packed = CallMemory(opened, kept), SimpleNamespace(frame=CallFrame(8)), Mock()
    packed.name = "f"
    with pytest.raises(GuardError, match="f kept a pointer to its arguments in here"):
        memory.run_again(packed, FrameLayout(bytes(8), (), ()), (), lambda: cast("Any", plan))


def test_a_pointer_is_told_with_the_last_call_that_used_the_memory() -> None:
    memory = CallMemory(session(0x1000), KeptPointers(8, lambda *_: None))
    for function in ("f", "g"):
        memory._base(64, function)
    pointer = memory.pointer(0x1010, SHORT)
    memory._base(64, "g")
    assert pointer.lent is not None
    with pytest.raises(GuardError, match="h was given a pointer into the arguments of an earlier call of g:"):
        pointer.lent.require("h", None)


class Waiting:
    """A function that waits, and has a stack: memory outside of what it gave is not there."""

    def __init__(self) -> None:
        self.begin, self.content = 0x1011, bytearray()

    def reserve(self, size: int) -> int:
        self.content = bytearray(size)
        return self.begin

    def read(self, address: int, size: int) -> bytes:
        at = address - self.begin
        assert 0 <= at <= at + size <= len(self.content)
        return bytes(self.content[at : at + size])

    def write(self, address: int, data: bytes) -> None:
        self.read(address, len(data))
        self.content[address - self.begin : address - self.begin + len(data)] = data

    def call(self, _name: str, _thunk: int, arguments: Any) -> None:  # noqa: ANN401 - two addresses
        holder, array = (argument.value for argument in arguments)
        assert holder % 8 == array % 8 == 0
        self.write(holder, array.to_bytes(8, "little"))


def test_a_call_while_a_function_waits_has_its_frame_on_the_stack() -> None:
    parameters = Parameter("h", Pointer(HOLDER, 8)), Parameter("p", SHORT)
    hold = FunctionDeclaration("hold", "hold", FunctionType(Void(), parameters))
    for begin in range(0x1000, 0x1040):
        waiting, holder, x = Waiting(), make_struct(HOLDER, "holder", {}), np.arange(40, dtype=np.int16)
        waiting.begin = begin
        CallMemory(session(0)).run_inside(cast("Any", waiting), 1, plan_call(hold, (holder, x), 8))
        assert holder.p is x
