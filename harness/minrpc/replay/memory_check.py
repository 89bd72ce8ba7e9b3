# SPDX-License-Identifier: Apache-2.0
"""The check of a device's calls: takes the record of each call, and gives it to the judge of accesses."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from minrpc.counters.image import ANYWHERE, CONSTANTS_END, Image, LoadedCode
from minrpc.program.elf import OBJECT
from minrpc.replay.code_map import CodeMap, Part
from minrpc.replay.findings import described, places
from minrpc.replay.heap import Heap, HeapBlock
from minrpc.replay.memory_judge import Extent, Fault, first_of_each, judge
from minrpc.replay.operations import Operation
from minrpc.replay.origins import Replay, can_replay
from minrpc.replay.trace import ADDRESS, BLOCK, IO, SIZE_AT, STORE, Recorder, Steps
from minrpc.replay.variables import Variables

# A stack that is mapped when its thread starts is assumed to have this many bytes below the call.
_STACK_BELOW: Final = 0x8000
# Zephyr's sections of thread-local variables, with the alignment of a stack, and a mapped stack's.
_THREAD_LOCALS: Final = ("tdata", "tbss")
_ALIGNED: Final = 16
_PAGE: Final = 4096
# A gap between variables that is not smaller has data without a symbol, as assembler code may have.
_UNNAMED: Final = 16
_MOST: Final = 5
# Steps of a call in which pointers are followed: they take this process a few seconds.
_REPLAYED: Final = 200_000
# Bytes from an object to an access that is certainly not of an unknown block of malloc.
_BESIDE: Final = 16
_OF_RUNTIME: Final = "minrpc"


log = logging.getLogger("minrpc.check")


class Found(NamedTuple):
    """text: the first fault. details: its place, and the other faults."""

    text: str
    details: Sequence[str]


class MemoryCheck:
    """The check for one run of QEMU."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._heap = Heap()
        self._session: object = None
        self._variables: Variables | None = None
        self._operations: dict[tuple[int, int], list[Operation]] = {}
        self._code: tuple[CodeMap, dict[int, list[Extent]], list[Extent]] | None = None

    @property
    def image(self) -> Image:
        """The firmware, with the code that was loaded."""
        return self.recorder.image

    def note_code(self, base: int, size: int, name: str, program: bytes) -> None:
        """Does the same as `Recorder.note_code`."""
        self._code = self._variables = None
        self.recorder.note_code(base, size, name, program)

    def begin(self, session: object) -> None:
        """A call begins, in this session: a new session has an empty heap."""
        if session != self._session:
            self._session = session
            self._heap.clear()
            self.recorder.take()
            return
        code, _, _ = self._loaded()
        steps, lost = self.recorder.take()
        self._heap.known &= not lost
        self._heap.begin()
        for _ in self._heap.follow(steps, code.owners(steps)):
            pass

    def end(self, extents: Sequence[Extent], bases: Collection[int]) -> Found | None:
        """The faults of the call; None if there are none.

        extents: its arguments, and the device's arrays. bases: addresses of the code that is still loaded.
        """
        code, own, firmwares = self._loaded()
        steps, lost = self.recorder.take()
        if lost:
            log.warning("the record had no room for the last %s steps of the call", f"{lost:,}")
        self._heap.begin()
        libraries = [item for base in bases for item in own.get(base, ())]
        stack = self._stack(steps, code)
        known = [*extents, *libraries, *stack, *self._thread_locals(stack)]
        # The firmware has variables in which arrays, code or the stack lie.
        known += [item for item in firmwares if not any(_overlap(item, other) for other in known)]
        steps = self._without_io(steps)
        verdict = judge(steps, code, known, self._heap)
        known_before, self._heap.known = self._heap.known, self._heap.known and not lost
        faults = first_of_each([*verdict.faults, *self._replayed(steps, code, stack, verdict.given)])
        if not known_before:  # It may have given any memory that is not beside an object.
            faults = [fault for fault in faults if isinstance(fault.near, Extent) and _is_beside(fault)]
        if not faults:
            return None
        first, *others = faults
        details = places(first, steps, code, self.image)
        details += [
            f"and {described(other)}, in {self.image.place_of(other.where)}" for other in others[:_MOST]
        ]
        more = len(others) - _MOST
        details += [f"and {more} other places"] if more > 0 else []
        return Found(described(first), details)

    def _replayed(
        self, steps: Steps, code: CodeMap, stack: Sequence[Extent], given: Mapping[int, HeapBlock]
    ) -> Sequence[Fault]:
        """The faults of pointers that left their object."""
        if not stack or not can_replay(self.image):
            return ()
        if self._variables is None:
            self._variables = Variables(self.image.loaded)
            self._operations.clear()
        if len(steps) > _REPLAYED:
            log.warning(
                "pointers were followed for %s of %s steps of the call", f"{_REPLAYED:,}", f"{len(steps):,}"
            )
        replay = Replay(self.image, self._variables, stack[0], given, self._operations)
        return replay.run(steps[:_REPLAYED], code.owners(steps[:_REPLAYED]))

    def _without_io(self, steps: Steps) -> Steps:
        """The steps; QEMU takes memory that a page shares with a protected region for a device's."""
        address = (steps["what"] & ADDRESS).astype(np.int64)
        for begin, size, _ in self.image.regions:
            inside = (address >= begin) & (address < begin + size) & ((steps["what"] & BLOCK) == 0)
            steps["what"][inside] &= ~IO
        return steps

    def _loaded(self) -> tuple[CodeMap, dict[int, list[Extent]], list[Extent]]:
        """The loaded code, its extents by its address, and the firmware's."""
        if self._code is None:
            loaded = self.image.loaded
            extents = {code.base: list(_sections(code)) for code in loaded}
            self._code = CodeMap(loaded), extents, list(self._of_firmware())
        return self._code

    def _of_firmware(self) -> Iterator[Extent]:
        """The firmware's variables and constants: loaded code names some, and gets others by functions."""
        constant = [region for region in self.image.regions if region.kind == "flash"]
        for symbol in self.image.program.elf.symbols:
            if symbol.kind == OBJECT and symbol.size and not symbol.name.startswith(_OF_RUNTIME):
                is_constant = any(0 <= symbol.value - item.base < item.size for item in constant)
                yield Extent(
                    symbol.value, symbol.value + symbol.size, f"{symbol.name} (firmware)", not is_constant
                )

    def _stack(self, steps: Steps, code: CodeMap) -> list[Extent]:
        """The stack below the thunk's frame: the thunk saves registers before it calls the function."""
        parts = code.parts(steps["where"])
        called = np.flatnonzero(parts == Part.LIBRARY)
        before = steps[: int(called[0])] if len(called) else steps[:0]
        stores = before["what"][
            (parts[: len(before)] == Part.RUNTIME) & ((before["what"] & (BLOCK | STORE)) == STORE)
        ]
        if not len(stores):
            return []
        ends = (stores & ADDRESS) + np.left_shift(np.uint64(1), stores >> SIZE_AT & np.uint64(15))
        top = int(ends.max())
        low = top - _STACK_BELOW if self.image.stack == ANYWHERE else self.image.stack[0]
        return [Extent(low, top, "the stack of the call")]

    def _thread_locals(self, stack: Sequence[Extent]) -> Iterator[Extent]:
        """The variables of the calls' thread, such as errno, which Zephyr has at the end of its stack."""
        sections = self.image.program.elf.sections
        size = sum(-(-item.size // _ALIGNED) * _ALIGNED for item in sections if item.name in _THREAD_LOCALS)
        if stack and size:
            mapped = self.image.stack == ANYWHERE
            end = -(-stack[0].end // _PAGE) * _PAGE if mapped else self.image.stack[1]
            yield Extent(end - size, end, "thread-local variables of the firmware")


def _sections(code: LoadedCode) -> Iterator[Extent]:
    """The code and constants of a library, its variables, and data without a symbol."""
    elf = code.program.elf
    end = next((item.value for item in elf.symbols if item.name == CONSTANTS_END), code.base + code.size)
    yield Extent(code.base, end, f"code and constants of {code.name}", writable=False)
    named = {
        symbol.value: symbol
        for symbol in elf.symbols
        if symbol.size and end <= symbol.value < code.base + code.size and symbol.kind == OBJECT
    }
    for section in elf.sections:
        if section.thread_local and section.allocated and section.size:
            yield Extent(section.address, section.address + section.size, f"thread's data of {code.name}")
    at = end
    for symbol in sorted(named.values(), key=lambda item: item.value):
        if symbol.value - at >= _UNNAMED:
            yield Extent(at, symbol.value, f"data of {code.name}")
        yield Extent(symbol.value, symbol.value + symbol.size, symbol.name)
        at = max(at, symbol.value + symbol.size)
    if code.base + code.size - at >= _UNNAMED:
        yield Extent(at, code.base + code.size, f"data of {code.name}")


def _is_beside(fault: Fault) -> bool:
    assert fault.near is not None
    return fault.near.begin - _BESIDE <= fault.address <= fault.near.end + _BESIDE


def _overlap(one: Extent, other: Extent) -> bool:
    return one.begin < other.end and other.begin < one.end


def check_for(elf: Path) -> MemoryCheck:
    """The check for a run of the program in `elf`."""
    return MemoryCheck(Recorder(Image(elf)))
