# SPDX-License-Identifier: Apache-2.0
"""Questions and memory from a device that breaks the protocol are errors; a pointer reaches C's memory."""

from __future__ import annotations

from struct import pack
from typing import Any, cast
from unittest.mock import Mock

import numpy as np
import pytest
from minrpc import DialectError, StructValue
from minrpc.client.conversation import Conversation
from minrpc.library import FakeFunction
from minrpc.library.fake_functions import _NO_LIBRARY, PointerArgument, _Pointers, _text
from minrpc.program.c_types import (
    CType,
    Field,
    FunctionDeclaration,
    FunctionType,
    Parameter,
    Pointer,
    Qualified,
    RecordType,
    Scalar,
    Void,
)

WORD = pack("<Q", 7)


def question(data: bytes) -> bytes:
    """A reply with a question: length, code 64, the room for an answer, and the data."""
    return pack("<QiI", 8 + len(data), 64, 128) + data


def conversation(data: bytes, *answers: bytes) -> Conversation:
    """A function that has asked; the device answers the next requests with questions of these bytes."""
    replies = [question(answer) for answer in answers]
    link = Mock(generation=1, left_s=1.0, request=Mock(side_effect=replies))
    return Conversation(link, question(data), "call f", {})


@pytest.mark.parametrize("data", [b"", WORD[:7], WORD + b"x", 2 * WORD + WORD[:4]])
def test_a_question_is_whole_words(data: bytes) -> None:
    with pytest.raises(DialectError, match=f"call f: a question of {len(data)} bytes names no function"):
        conversation(data)


def test_the_calls_time_goes_on_while_python_answers() -> None:
    """Its limit is one for all questions, and for those of a function that Python calls meanwhile."""
    link, limits = Mock(generation=1, left_s=5.0), []
    replies = iter([question(WORD), question(pack("<qiiq", 0, 0, 0, 42)), question(WORD)])

    def request(_packet: bytes, _stage: str, limit_s: float, **_: object) -> bytes:
        limits.append(limit_s)
        link.left_s = limit_s - 1.0
        return next(replies)

    link.request = request
    outer = Conversation(link, question(WORD), "call f", {7: Mock(respond=Mock(return_value=0))})
    assert outer.call("g", 0x100, ()) == 42
    assert outer.read(8, 8) == WORD
    assert limits == [5.0, 4.0, 3.0]


def test_an_exception_reaches_the_device_after_the_calls_time() -> None:
    link = Mock(generation=1, left_s=0.0)
    asked = Conversation(link, question(WORD), "call f", {7: Mock(respond=Mock(side_effect=OSError("no")))})
    with pytest.raises(OSError, match="no"):
        asked.answer(timed=False)
    assert link.request.call_args.args[2] == 1.0


@pytest.mark.parametrize("came", [b"", b"12345", b"1234567890"])
def test_memory_of_another_size_than_asked_for(came: bytes) -> None:
    asked = conversation(WORD, came, b"12345678")
    with pytest.raises(DialectError, match=f"{len(came)} of 8 bytes at 0x100 came"):
        asked.read(0x100, 8)
    assert asked.read(0x100, 8) == b"12345678"


def test_a_question_with_too_few_arguments() -> None:
    kind = Mock(parameters=(Mock(), Mock()), variadic=False, result=Void())
    fake = FakeFunction(cast("Any", Mock(type=kind, parameters=("a", "b"))), Mock(side_effect=AssertionError))
    asked = conversation(2 * WORD)
    with pytest.raises(DialectError, match="was called with 1 of 2 arguments"):
        fake.respond(asked, memoryview(2 * WORD))


class Memory:
    """A conversation with a device whose memory begins at 0x100."""

    name = "fake get"

    def __init__(self, content: bytes) -> None:
        self.content = bytearray(content)

    def read(self, address: int, size: int) -> bytes:
        return bytes(self.content[address - 0x100 :][:size])

    def write(self, address: int, data: bytes) -> None:
        self.content[address - 0x100 : address - 0x100 + len(data)] = data


def pointer(memory: Memory, *, constant: bool = False) -> PointerArgument:
    """A pointer to `short` at the memory's begin."""
    element: CType = Scalar("short", 2, "int", True)
    kind = Pointer(Qualified(element, "const") if constant else element, 8)
    return _Pointers(cast("Conversation", memory), _NO_LIBRARY).to_memory(0x100, kind)


def test_a_pointer_reads_and_writes_elements() -> None:
    memory = Memory(pack("<4h", 1, -2, 3, 4))
    there = pointer(memory)
    assert (there[0], there[1], there[1:3].tolist(), there[:2].tolist()) == (1, -2, [-2, 3], [1, -2])
    assert (there[:3].tolist(), there[3:1].tolist()) == ([1, -2, 3], [])
    there[1] = 7
    there[2:4] = [8, 9]
    assert memory.content == pack("<4h", 1, 7, 8, 9)


def test_a_pointer_refuses_another_count_and_a_const_target() -> None:
    memory = Memory(pack("<2h", 1, 2))
    for given in ([1], [1, 2, 3]):
        with pytest.raises(ValueError, match=f"2 elements are written, {len(given)} are given"):
            pointer(memory)[:2] = given
    for index in (slice(1, None), slice(0, 2, 2)):
        with pytest.raises(ValueError, match="a pointer has no length"):
            pointer(memory)[index]
    with pytest.raises(TypeError, match="points to const"):
        pointer(memory, constant=True)[0] = 3
    assert memory.content == pack("<2h", 1, 2)


@pytest.mark.parametrize("index", [1.5, "a", slice(0, 1.5)])
def test_a_pointers_index_is_a_whole_number(index: Any) -> None:  # noqa: ANN401 - no index
    with pytest.raises(TypeError, match="object cannot be interpreted as an integer"):
        pointer(Memory(bytes(8)))[index]


def test_a_pointer_has_no_length_to_go_through() -> None:
    """The loop read up to the end of the device's memory, and the device crashed."""
    with pytest.raises(TypeError, match=r"a pointer has no length: give the end, pointer\[:n\]"):
        list(pointer(Memory(bytes(8))))


def test_a_const_array_can_not_be_changed_by_a_fake() -> None:
    """It has no way back: a change would be lost."""
    there = pointer(Memory(pack("<3h", 1, -2, 3)), constant=True)
    parameters = (Parameter("x", there.ctype), Parameter("n", Scalar("int", 4, "int", True)))
    declared = FunctionDeclaration("f", "f", FunctionType(Void(), parameters))
    fake = FakeFunction(declared, lambda *_: None, "x[n], n")
    fake.respond(there._conversation, memoryview(pack("<3Q", 0x100, 3, 0)))
    ((values, count),) = fake.calls
    assert isinstance(values, np.ndarray)
    assert (values.tolist(), values.flags.writeable, count) == ([1, -2, 3], False, 3)


def test_a_const_struct_that_a_fake_changes_is_an_error() -> None:
    """The change was lost. Where C may write by another pointer, it is none."""
    integer = Scalar("int", 4, "int", True)
    fields = (Field("x", integer, 0), Field("y", integer, 4))
    pair = RecordType("struct", "pair", 8, complete=True, fields=fields)
    types = (Pointer(Qualified(pair, "const"), 8), Pointer(pair, 8))
    declared = FunctionDeclaration(
        "f", "f", FunctionType(Void(), tuple(Parameter("p", ctype) for ctype in types))
    )

    def change(read: StructValue, written: StructValue) -> None:
        read.y = read.x + 6

    memory = Memory(pack("<4i", 1, 2, 3, 4))
    asked = pointer(memory)._conversation
    fake = FakeFunction(declared, change)
    with pytest.raises(TypeError, match="fake get: Python changed a struct that C passed as const"):
        fake.respond(asked, memoryview(pack("<3Q", 0x100, 0x108, 0)))
    assert memory.content == pack("<4i", 1, 2, 3, 4)
    fake.respond(asked, memoryview(pack("<3Q", 0x108, 0x108, 0)))
    assert memory.content == pack("<4i", 1, 2, 3, 9)
    fake.answer = lambda read, written: setattr(written, "x", read.y)
    fake.respond(asked, memoryview(pack("<3Q", 0x100, 0x108, 0)))
    assert memory.content == pack("<4i", 1, 2, 2, 9)


def test_a_text_is_read_up_to_its_end_and_no_further() -> None:
    """In pieces that end where memory may end: at multiples of 32 bytes."""
    asked = Mock(read=Mock(side_effect=Memory(b"x" * 40 + b"\0y").read))
    assert _text(asked, 0x101) == b"x" * 39
    assert _text(asked, 0x101, 35) == b"x" * 35
    assert [each.args for each in asked.read.call_args_list] == 2 * [(0x101, 31), (0x120, 32)]


def test_an_address_has_no_sign_and_a_length_is_none_below_0() -> None:
    pointer = Pointer(Scalar("short", 2, "int", True), 4)
    parameters = Parameter("x", pointer), Parameter("n", Scalar("int", 4, "int", True))
    declared = FunctionDeclaration("f", "f", FunctionType(Void(), parameters))
    fake = FakeFunction(declared, lambda *_: None)
    fake.respond(Mock(), memoryview(pack("<3q", -(1 << 31), -1, 0)))
    assert fake.calls == [(1 << 31, -1)]
    with pytest.raises(ValueError, match="C gave -1 as the length of an array"):
        FakeFunction(declared, lambda *_: None, "x[n], n").respond(
            Mock(), memoryview(pack("<3q", 256, -1, 0))
        )


def test_the_elements_that_a_fake_changed_are_written_alone() -> None:
    """In each of several arrays, which lie apart or touch; whole elements, and no constant among them."""
    memory = Memory(pack("<9h", *range(256, 265)))
    written: list[tuple[int, bytes]] = []
    asked = Mock(name="f", read=memory.read, write=lambda *given: written.append(given))
    short = Scalar("short", 2, "int", True)
    kinds: tuple[CType, ...] = (short, Qualified(short, "const"), short)
    parameters = tuple(Parameter(name, Pointer(kind, 8)) for name, kind in zip("xyz", kinds, strict=True))

    def change(x: Any, y: Any, z: Any) -> None:  # noqa: ANN401 - arrays
        assert (x.tolist(), y.tolist(), z.tolist()) == ([256, 257, 258], [259, 260], [263, 264])
        x[0] += 1
        x[2] += 256
        z[1] += 1
        for at in (0x109, 0x10A, 0x10D, 0x111, 0x112):  # Before the device uses a byte of them, too.
            asked.held.send(at, 1)

    declared = FunctionDeclaration("f", "f", FunctionType(Void(), parameters))
    fake = FakeFunction(declared, change, "x[3], y[2], z[2]")
    fake.respond(asked, memoryview(pack("<4Q", 0x100, 0x106, 0x10E, 0)))
    due = [(0x100, pack("<h", 257)), (0x104, pack("<h", 514)), (0x110, pack("<h", 265))]
    assert written == 2 * due
