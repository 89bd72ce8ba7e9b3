# SPDX-License-Identifier: Apache-2.0
"""Pointers that leave their object, by machine code that the devices' compilers have made."""

import logging
from pathlib import Path
from typing import NamedTuple
from unittest.mock import Mock

import numpy as np
import pytest
from minrpc.counters.image import Image
from minrpc.replay.code_map import CodeMap, Part
from minrpc.replay.heap import HeapBlock
from minrpc.replay.memory_check import MemoryCheck
from minrpc.replay.memory_judge import Extent
from minrpc.replay.operations import Kind, Operation, operations
from minrpc.replay.origins import Known, Replay, Value, Within
from minrpc.replay.trace import BLOCK, LEFT, SIZE_AT, STEP, STORE, Recorded


class Shown(NamedTuple):
    """The parts of an operation that a row names."""

    kind: Kind
    to: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    amount: int = 0
    writes_back: int = 0


def shown(operation: Operation) -> Shown:
    return Shown(*operation[1:6])


# By arm-none-eabi-as and riscv64-unknown-elf-as.
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("80b5", Shown(Kind.STORE, ("r7", "lr"), ("sp",), -8, -8)),  # push {r7, lr}
        ("aab0", Shown(Kind.SUM, ("sp",), ("sp",), -168)),  # sub sp, #168
        ("07f13803", Shown(Kind.SUM, ("r3",), ("r7",), 56)),  # add.w r3, r7, #56
        ("3b44", Shown(Kind.ADD, ("r3",), ("r3", "r7"))),  # add r3, r7
        ("43f8282c", Shown(Kind.STORE, ("r2",), ("r3",), -40)),  # str.w r2, [r3, #-40]
        ("02f8011b", Shown(Kind.STORE, ("r1",), ("r2",), 0, 1)),  # strb.w r1, [r2], #1
        ("04eb8204", Shown(Kind.ADD, ("r4",), ("r4", "r2"), 2)),  # add.w r4, r4, r2, lsl #2
        ("9b00", Shown(Kind.SHIFT, ("r3",), ("r3",), 2)),  # lsls r3, r3, #2
        ("80bd", Shown(Kind.LOAD, ("r7", "pc"), ("sp",), 0, 8)),  # pop {r7, pc}
    ],
)
def test_thumb(code: str, expected: Shown) -> None:
    assert [shown(item) for item in operations(bytes.fromhex(code), 0, "thumb")] == [expected]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("6d71", Shown(Kind.SUM, ("sp",), ("sp",), -272)),  # addi sp, sp, -272
        ("130484fb", Shown(Kind.SUM, ("s0",), ("s0",), -72)),  # addi s0, s0, -72
        ("a297", Shown(Kind.ADD, ("a5",), ("a5", "s0"))),  # add a5, a5, s0
        ("23aee7fc", Shown(Kind.STORE, ("a4",), ("a5",), -36)),  # sw a4, -36(a5)
        ("8a07", Shown(Kind.SHIFT, ("a5",), ("a5",), 2)),  # slli a5, a5, 2
        ("b7170000", Shown(Kind.UPPER, ("a5",), (), 4096)),  # lui a5, 1
        ("97170000", Shown(Kind.UPPER, ("a5",), (), 4096)),  # auipc a5, 1
    ],
)
def test_riscv(code: str, expected: Shown) -> None:
    found = [shown(item) for item in operations(bytes.fromhex(code), 0, "riscv32")]
    assert found == [expected]


class Full:
    """A recorder whose ring was too small."""

    def __init__(self) -> None:
        self.image = Image(Path("/bin/true"))

    def take(self) -> Recorded:
        return Recorded(np.zeros(0, STEP), 5)


def test_a_record_without_room_is_told(caplog: pytest.LogCaptureFixture) -> None:
    check = MemoryCheck(Full())  # type: ignore[arg-type]
    check._code = CodeMap([]), {}, []
    with caplog.at_level(logging.WARNING, "minrpc.check"):
        assert check.end([], ()) is None
    assert "no room for the last 5 steps of the call" in caplog.text


def test_a_new_session_has_an_empty_heap_of_which_all_is_known() -> None:
    check = MemoryCheck(Full())  # type: ignore[arg-type]
    check._code = CodeMap([]), {}, []
    check.begin("one")
    check._heap.blocks[8] = HeapBlock(8, 16, 3)
    check.begin("one")
    assert (list(check._heap.blocks), check._heap.known) == ([8], False)
    check.begin("two")
    assert (list(check._heap.blocks), check._heap.known) == ([], True)


@pytest.mark.parametrize(("before", "kept"), [((), True), ((Part.TRAP,), False)])
def test_code_other_than_the_runtime_may_change_all_memory(before: tuple[Part, ...], kept: bool) -> None:
    replay = Replay(Mock(machine="EM_ARM"), Mock(), Extent(0, 8, "stack"), {}, {})
    replay._memory[4] = Known(1)
    replay._registers |= {"r0": Known(2), "r4": Known(3)}
    replay._calls = 0x100
    steps = [*((0, int(BLOCK)) for _ in before), (0, int(LEFT))]
    replay.run(np.array(steps, STEP), np.array([*before, Part.RUNTIME], np.uint8))
    assert (4 in replay._memory) is kept
    assert list(replay._registers) == (["zero", "r4"] if kept else ["zero"])


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("b7870180 9387870e", Known(0x800180E8)),  # lui a5, 0x80018; addi a5, a5, 232
        ("37870180 93070700 93874700", Within(0x80018000)),  # lui a4, 0x80018; mv a5, a4; addi a5, a5, 4
    ],
)
def test_the_upper_bits_of_an_address_are_no_pointer(code: str, value: Value) -> None:
    """Another variable may begin where the lower bits are 0; a pointer to its begin steps along in it."""
    array = Extent(0x80018000, 0x8001803C, "array")
    variables = Mock(in_memory=lambda address: array if array.begin <= address < array.end else None)
    text = bytes.fromhex(code)
    image = Mock(machine="EM_RISCV", function_at=Mock(return_value=None), bytes_at=Mock(return_value=text))
    replay = Replay(image, variables, Extent(0, 8, "stack"), {}, {})
    replay.run(np.array([(0x100, int(BLOCK) | len(text) - 4)], STEP), np.array([Part.LIBRARY], np.uint8))
    assert replay._registers["a5"] == value


@pytest.mark.parametrize(
    ("code", "last", "calls"),
    [
        ("0120 0ff00dc0", 2, None),  # movs r0, #1; le lr, back
        ("4ef001e0 0120", 4, None),  # dls lr, lr; movs r0, #1
        ("0120 4ef001e0 fff7fbff", 6, 0x10A),  # movs r0, #1; dls lr, lr; bl
        ("", 4, None),
    ],
)
def test_registers_are_not_known_behind_an_unknown_instruction(
    code: str, last: int, calls: int | None
) -> None:
    text = bytes.fromhex(code)
    image = Mock(machine="EM_ARM", function_at=Mock(return_value=None))
    image.bytes_at = lambda at, size: text[at - 0x100 :][:size]
    replay = Replay(image, Mock(), Extent(0, 8, "stack"), {}, {})
    replay._registers |= {"r0": Known(2), "r4": Known(3)}
    replay.run(np.array([(0x100, int(BLOCK) | last)], STEP), np.array([Part.LIBRARY], np.uint8))
    assert (replay._registers, replay._calls) == ({"zero": Known(0)}, calls)


@pytest.mark.parametrize("code", ["81ed001f", "4ef001e0"])  # vstrw.32 q0, [r1]; one that is unknown
def test_a_store_by_an_instruction_of_another_kind_is_a_store(code: str) -> None:
    text = bytes.fromhex(code)
    image = Mock(machine="EM_ARM", function_at=Mock(return_value=None), bytes_at=lambda *_: text)
    replay = Replay(image, Mock(), Extent(0, 16, "stack"), {}, {})
    replay._memory |= {8: Within(8), 12: Within(8)}
    replay._written[:] = bytes(16)
    stores = [(0x100, int(STORE) | 2 << int(SIZE_AT) | at) for at in (4, 8)]
    replay.run(np.array([(0x100, int(BLOCK)), *stores], STEP), np.array([Part.LIBRARY] * 3, np.uint8))
    assert (list(replay._memory), bytes(replay._written)) == ([12], b"\0" * 4 + b"\1" * 8 + b"\0" * 4)
