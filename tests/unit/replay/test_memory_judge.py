# SPDX-License-Identifier: Apache-2.0
"""The judge of accesses, on records that are written here."""

from collections.abc import Mapping
from types import MappingProxyType, SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from minrpc.counters.image import ANYWHERE
from minrpc.replay.code_map import CodeMap, Part
from minrpc.replay.findings import described
from minrpc.replay.heap import Heap
from minrpc.replay.memory_check import Found, MemoryCheck
from minrpc.replay.memory_judge import Extent, judge
from minrpc.replay.trace import BLOCK, IO, LEFT, SIZE_AT, STEP, STORE, Recorded, Steps

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


def test_who_allocated_and_freed_a_block(code: CodeMap) -> None:
    """The last instruction of the library before; an access of more than a byte is to an argument."""
    heap = Heap()
    calls = [(at, int(BLOCK) | size) for at, size in ((0x1200, 2), (0x1010, 6), (0x1020, 8))]
    told = [access(GIVEN, 0x300), access(GIVEN, 0x700, 2), access(GIVEN, 0x30A)]
    rows = [
        *calls[:2],
        block(GIVEN),
        *told,
        calls[2],
        block(TAKEN),
        access(TAKEN, 0x700, 2),
        *taken(0x300)[1:],
    ]
    assert faults(code, *rows, heap=heap) == []
    (found,) = heap.blocks.values()
    assert (found.begin, found.end, found.given_by, found.freed_by) == (0x300, 0x30A, 0x1016, 0x1028)
    heap.begin()
    assert faults(code, (0x1030, int(BLOCK)), *taken(0x300), heap=heap) == [
        "freed 0x300, which was freed before"
    ]
    assert found.freed_by == 0x1028


def test_a_block_replaces_freed_ones_where_it_lies(code: CodeMap) -> None:
    heap = Heap()
    before = [row for begin in (0x300, 0x310, 0x320) for row in (*given(begin, 10), *taken(begin))]
    assert faults(code, block(LIBRARY), *before, *given(0x314, 13), heap=heap) == []
    assert list(heap.blocks) == [0x300, 0x314]


def test_the_first_fault_of_each_instruction_in_the_order_of_time(code: CodeMap) -> None:
    rows = [access(LIBRARY + 4, 0x120), access(LIBRARY, 0x122), access(LIBRARY + 4, 0x124)]
    found = faults(code, block(LIBRARY), *rows)
    assert [text.split(",")[0] for text in found] == ["read 1 byte at 0x120", "read 1 byte at 0x122"]


def checked(
    code: CodeMap,
    *rows: Row,
    known: bool = True,
    stack: tuple[int, int] = (0x8000, 0x9000),
    sections: Mapping[str, int] = MappingProxyType({}),
) -> Found | None:
    """The faults of a call with these steps, by a program with a protected region from 0x40000 on."""
    image = Mock(stack=stack, machine="", regions=[(0x40000, 16, "io")])
    image.place_of = hex
    image.program.elf.sections = [SimpleNamespace(name=name, size=size) for name, size in sections.items()]
    recorder = Mock(image=image)
    recorder.take.return_value = Recorded(np.array(list(rows), STEP), 0)
    check = MemoryCheck(recorder)
    check._code = code, {}, [Extent(0x118, 0x120, "y (firmware)"), Extent(0x10F, 0x200, "covers x")]
    check._heap.known = known
    return check.end([X], ())


def test_a_calls_faults_and_their_places(code: CodeMap) -> None:
    assert checked(code, block(LIBRARY), access(LIBRARY, 0x10F), access(LIBRARY, 0x118)) is None
    wrong = [access(LIBRARY + 2 * number, 0x110) for number in range(8)]
    for count, more in ((1, 0), (6, 0), (7, 1), (8, 2)):
        found = checked(code, block(LIBRARY), *wrong[:count])
        assert found is not None
        assert found.text == "read 1 byte at 0x110, 1 byte past the end of x"
        others = ["and read 1 byte at 0x110, 1 byte past the end of x, in 0x1002"]
        assert found.details[:2] == ["in 0x1000", *others[: count - 1]]
        assert len(found.details) == min(count, 6) + (more > 0)
        assert (found.details[-1] == f"and {more} other places") is (more > 0)


def test_memory_that_malloc_may_have_given_is_no_fault(code: CodeMap) -> None:
    beside, far = access(LIBRARY, 0x110), access(LIBRARY, 0x90000)
    assert [checked(code, block(LIBRARY), row, known=False) is None for row in (beside, far)] == [False, True]


def test_a_protected_regions_page_is_no_device(code: CodeMap) -> None:
    rows = [access(LIBRARY, at, io=True) for at in (0x3FFFF, 0x40000, 0x4000F, 0x40010)]
    assert [checked(code, block(LIBRARY), row) is None for row in rows] == [True, False, False, True]


@pytest.mark.parametrize(("stack", "low"), [((0x7F00, 0x9000), 0x7F00), (ANYWHERE, 0x1000)])
def test_the_stack_is_below_what_the_thunk_stored(code: CodeMap, stack: tuple[int, int], low: int) -> None:
    thunk = [block(RUNTIME), access(RUNTIME, 0x8FFC, 4, store=True), access(RUNTIME, 0x9100, 4)]
    for at, fine in ((low - 1, False), (low, True), (0x8FFF, True), (0x9000, False)):
        rows = [*thunk, block(LIBRARY), access(LIBRARY, at), block(RUNTIME)]
        after = access(RUNTIME, 0x9F00, 4, store=True)
        assert (checked(code, *rows, after, stack=stack) is None) is fine, hex(at)
    assert checked(code, block(LIBRARY), access(LIBRARY, 0x8F00), stack=stack) is not None


@pytest.mark.parametrize("stack", [(0x8000, 0x9000), ANYWHERE])
def test_thread_local_variables_are_at_the_end_of_the_stack(code: CodeMap, stack: tuple[int, int]) -> None:
    """Zephyr rounds the size of each section to the alignment of a stack."""
    thunk = [block(RUNTIME), access(RUNTIME, 0x8EFC, 4, store=True), block(LIBRARY)]
    sections = {"tdata": 4, "tbss": 20, ".tbss": 64}
    for at, fine in ((0x8FCF, False), (0x8FD0, True), (0x8FFF, True), (0x9000, False)):
        assert (checked(code, *thunk, access(LIBRARY, at), stack=stack, sections=sections) is None) is fine
    assert checked(code, *thunk, access(LIBRARY, 0x8FFF), stack=stack) is not None
