# SPDX-License-Identifier: Apache-2.0
"""The judge of accesses, on records that are written here."""

import numpy as np
import pytest
from minrpc.replay.code_map import CodeMap, Part
from minrpc.replay.findings import described
from minrpc.replay.heap import Heap
from minrpc.replay.memory_judge import Extent, judge
from minrpc.replay.trace import BLOCK, IO, LEFT, SIZE_AT, STEP, STORE, Steps

LIBRARY, RUNTIME, GIVEN, TAKEN, MOVER = 0x1000, 0x2000, 0x3000, 0x4000, 0x9000
X, CONSTANT = Extent(0x100, 0x110, "x"), Extent(0x200, 0x210, "table", writable=False)
Row = tuple[int, int]


@pytest.fixture
def code() -> CodeMap:
    """The library, the runtime's code, and the two functions that tell blocks."""
    made = CodeMap([])
    parts = [Part.LIBRARY, Part.RUNTIME, Part.GIVEN, Part.TAKEN]
    made._starts = np.array([0, LIBRARY, RUNTIME, GIVEN, TAKEN, 0x5000], np.uint64)
    made._parts = np.array([Part.FIRMWARE, *parts, Part.FIRMWARE], np.uint8)
    return made


def block(at: int) -> Row:
    return at, int(BLOCK)


def access(at: int, address: int, size: int = 1, *, store: bool = False, io: bool = False) -> Row:
    shift = (size.bit_length() - 1) << int(SIZE_AT)
    return at, address | shift | (int(STORE) if store else 0) | (int(IO) if io else 0)


def given(begin: int, size: int) -> list[Row]:
    return [block(GIVEN), access(GIVEN, begin), access(GIVEN + 2, begin + size), block(LIBRARY)]


def taken(begin: int) -> list[Row]:
    return [block(TAKEN), access(TAKEN, begin), block(LIBRARY)]


def faults(code: CodeMap, *rows: Row, heap: Heap | None = None) -> list[str]:
    steps: Steps = np.array(list(rows), STEP)
    return [described(item) for item in judge(steps, code, [CONSTANT, X], heap or Heap()).faults]


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (access(LIBRARY, 0x10C, 4), None),
        (access(LIBRARY, 0x10D, 4), "read 4 bytes at 0x10d, 1 byte past the end of x"),
        (access(LIBRARY, 0x110, 2, store=True), "wrote 2 bytes at 0x110, 2 bytes past the end of x"),
        (access(LIBRARY, 0x114, 2), "read 2 bytes at 0x114, 4 bytes behind x"),
        (access(LIBRARY, 0xFF, 1), "read 1 byte at 0xff, 1 byte before x"),
        (access(LIBRARY, 0x204, 4), None),
        (
            access(LIBRARY, 0x204, 4, store=True),
            "wrote 4 bytes at 0x204, 4 bytes into table, which is constant",
        ),
        (access(LIBRARY, 0x90000, 4), "read 4 bytes at 0x90000, far from all memory of the call"),
        (access(LIBRARY, 0x40000, 4, io=True), None),
        (access(RUNTIME, 0x40000, 4), None),
    ],
)
def test_an_access_and_its_text(code: CodeMap, row: Row, text: str | None) -> None:
    assert faults(code, block(LIBRARY), row) == ([text] if text else [])


@pytest.mark.parametrize(
    ("before", "count"),
    [([LIBRARY], 1), ([RUNTIME], 0), ([], 0), ([LIBRARY, RUNTIME], 0), ([RUNTIME, LIBRARY], 1)],
)
def test_a_function_of_the_firmware_counts_for_its_caller(
    code: CodeMap, before: list[int], count: int
) -> None:
    rows = [*map(block, before), block(MOVER), access(MOVER, 0x120)]
    assert len(faults(code, *rows)) == count
    rows.insert(len(before), (0x7000, int(LEFT)))  # Another function of the firmware called it.
    assert faults(code, *rows) == []


def test_blocks_of_malloc_from_their_birth_to_their_end(code: CodeMap) -> None:
    heap = Heap()
    use = access(LIBRARY, 0x308)
    assert faults(code, block(LIBRARY), *given(0x300, 10), use, heap=heap) == []
    heap.begin()  # The next call's record.
    assert faults(code, block(LIBRARY), use, heap=heap) == []
    heap.begin()
    found = faults(code, block(LIBRARY), *taken(0x300), use, heap=heap)
    assert found == ["read 1 byte at 0x308, 8 bytes into a block of 10 bytes from malloc, which was freed"]
    heap.begin()
    again = [access(LIBRARY + 2, 0x304), *given(0x304, 4), access(LIBRARY + 4, 0x304), use]
    assert faults(code, block(LIBRARY), *again, heap=heap) == [
        "read 1 byte at 0x304, 4 bytes into a block of 10 bytes from malloc, which was freed",
        "read 1 byte at 0x308, 1 byte past the end of a block of 4 bytes from malloc",
    ]
    heap.begin()
    assert faults(code, *taken(0x304), *taken(0x304), heap=heap) == ["freed 0x304, which was freed before"]
    assert faults(code, *taken(0x500)) == ["freed 0x500, which malloc did not give"]


def test_the_first_fault_of_each_instruction_in_the_order_of_time(code: CodeMap) -> None:
    rows = [access(LIBRARY + 4, 0x120), access(LIBRARY, 0x122), access(LIBRARY + 4, 0x124)]
    found = faults(code, block(LIBRARY), *rows)
    assert [text.split(",")[0] for text in found] == ["read 1 byte at 0x120", "read 1 byte at 0x122"]
