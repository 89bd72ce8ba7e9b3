# SPDX-License-Identifier: Apache-2.0
"""Divides an ELF file into pieces: each byte of flash and of RAM belongs to exactly one piece.

Flash is the content of the load segments in the file (PT_LOAD, p_filesz): code, constants, initial values of
data, and gaps between them. RAM is the memory of writable sections (SHF_ALLOC and SHF_WRITE, not
SHF_EXECINSTR, not in flash), zeroed and reserved sections included. Section names play no part. If all code
runs from RAM, flash is the loaded image.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, Literal, NamedTuple

from minrpc.program import Elf, read_program
from minrpc.program.elf import CHOSEN_AT_START, FUNCTION, NO_TYPE, OBJECT, Section, Segment
from minrpc.program.source_places import Origins

Memory = Literal["flash", "ram"]
MEMORIES: Final[tuple[Memory, ...]] = ("flash", "ram")

PADDING: Final = "(padding)"
"""Bytes that align the next object, inside a section or between two sections."""
HEADERS: Final = "(ELF headers)"
NO_SYMBOL: Final = "(no symbol)"
"""Bytes of a section that belong to no symbol: strings, tables made by the linker, stacks."""
NO_DEBUG: Final = "(no debug information)"

_TYPES: Final = frozenset({FUNCTION, OBJECT, CHOSEN_AT_START})
_FIRMWARE: Final = "zephyr-app"
_OWN: Final = (["bench"], ["operators"], ["ports"], ["runtime"])
"""The firmware's own directories in this repository's zephyr-app."""
_LIBRARIES: Final = frozenset({"libgcc", "libc", "libm", "picocrt", "glibc"})
# Largest alignment on the supported processors, apart from pages, in bytes.
_MOST_ALIGNED: Final = 64


class SizedSymbol(NamedTuple):
    """A function or an object: `size` bytes at `start`; size 0 means up to the next symbol."""

    start: int
    size: int
    name: str


class Piece(NamedTuple):
    """Bytes of one symbol in one memory.

    address: their address while the program runs.
    file: the source's path in the debug information, or one of the names in parentheses.
    """

    memory: Memory
    section: str
    address: int
    size: int
    symbol: str
    file: str

    @property
    def component(self) -> str:
        """The directory of the source, without the path of its checkout: "runtime", "zephyr/kernel"."""
        return component_of(self.file)


@dataclass(frozen=True, slots=True)
class LoadSegment:
    """A load segment: `size` bytes at `address`. The file has `stored` of them, kept at `loaded_at`."""

    address: int
    loaded_at: int
    size: int
    stored: int
    access: str


@dataclass(frozen=True)
class ProgramSizes:
    """All pieces, by address, and the load segments."""

    pieces: Sequence[Piece]
    regions: Sequence[LoadSegment]

    @cached_property
    def flash(self) -> int:
        """Size in this memory, in bytes."""
        return sum(piece.size for piece in self.pieces if piece.memory == "flash")

    @cached_property
    def ram(self) -> int:
        """Size in this memory, in bytes."""
        return sum(piece.size for piece in self.pieces if piece.memory == "ram")

    def by(self, key: Callable[[Piece], str], memory: Memory | None = None) -> dict[str, int]:
        """Sum of the pieces' sizes for each `key`, the largest first."""
        sums: dict[str, int] = {}
        for piece in self.pieces:
            if memory in (None, piece.memory):
                name = key(piece)
                sums[name] = sums.get(name, 0) + piece.size
        return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))

    def grouped(self, memory: Memory) -> dict[str, dict[str, int]]:
        """Sizes in one memory by component, then by symbol."""
        groups: dict[str, dict[str, int]] = {}
        for piece in self.pieces:
            if piece.memory == memory:
                group = groups.setdefault(piece.component, {})
                group[piece.symbol] = group.get(piece.symbol, 0) + piece.size
        return groups

    def by_symbol(self) -> dict[str, tuple[int, int]]:
        """Flash and RAM by symbol; symbols of the same name are added."""
        flash, ram = (self.by(lambda item: item.symbol, memory) for memory in MEMORIES)
        return {name: (flash.get(name, 0), ram.get(name, 0)) for name in dict.fromkeys([*flash, *ram])}


def program_sizes(elf: Path, *, files: bool = True) -> ProgramSizes:
    """The pieces of the program in `elf`.

    files: True to find the sources in the debug information, which takes seconds for a large program.
    """
    program = read_program(elf)
    sections = [section for section in program.elf.sections if section.allocated and section.size]
    regions = [_region(segment) for segment in program.elf.segments]
    symbols = _symbols(program.elf)
    origins = Origins(program) if files else None
    placed = [*_stored(sections, regions), *_written(program.elf)]
    pieces = [
        Piece(memory, name, at, end - at, symbol, _file(origins, at, symbol))
        for memory, name, start, stop in placed
        for at, end, symbol in _pieces_of(name, start, stop, symbols)
    ]
    return ProgramSizes(pieces, regions)


def totals(elf: Path) -> tuple[int, int]:
    """Total flash and RAM, in bytes, without the pieces."""
    program = read_program(elf).elf
    flash = sum(segment.stored for segment in program.segments)
    return flash, sum(end - start for _, _, start, end in _written(program))


def component_of(file: str) -> str:
    """The directory of a source file, below the top of its checkout if that is known."""
    if file.startswith("("):
        return file
    parts = file.split("/")[:-1]
    # The firmware's own sources: a build shared by several checkouts has the paths of the first.
    own = next(
        (at for at, part in enumerate(parts) if part == _FIRMWARE and parts[at + 1 :][:1] in _OWN), None
    )
    if own is not None:
        return "/".join(parts[own + 1 :])
    if parts[:2] == ["", "minrpc"]:  # The name that firmware/places.py gives to sources.
        place, parts = parts[2:3], parts[3:]
        parts = parts[1:] if place == ["app"] and parts[:1] == [_FIRMWARE] else parts
        return "/".join(parts or place)
    # Sources of the toolchain's libraries, with the paths of the machine that built them.
    library = next((part for part in parts if part in _LIBRARIES), None)
    return library or "/".join(parts) or "."


def cut(
    start: int, end: int, symbols: Iterable[SizedSymbol]
) -> Iterator[tuple[int, int, SizedSymbol | None]]:
    """Divides `start` to `end` into the parts of each symbol; parts between symbols have None.

    symbols: sorted by address. The first of two overlapping symbols gets the common bytes.
    """
    at = start
    inside = [symbol for symbol in symbols if start <= symbol.start < end]
    for index, symbol in enumerate(inside):
        stop = symbol.start + symbol.size
        if symbol.size == 0:
            stop = inside[index + 1].start if index + 1 < len(inside) else end
        stop = min(stop, end)
        if symbol.start > at:
            yield at, symbol.start, None
            at = symbol.start
        if stop > at:
            yield at, stop, symbol
            at = stop
    if at < end:
        yield at, end, None


def _region(segment: Segment) -> LoadSegment:
    leave = ((segment.readable, "r"), (segment.writable, "w"), (segment.executable, "x"))
    access = "".join(letter if given else "-" for given, letter in leave)
    return LoadSegment(segment.address, segment.loaded_at, segment.size, segment.stored, access)


_Place = tuple[Memory, str, int, int]


def _stored(sections: Sequence[Section], regions: Sequence[LoadSegment]) -> Iterator[_Place]:
    """The stored parts of each load segment: its sections, and the bytes before, between and after them."""
    for region in regions:
        at, end = region.address, region.address + region.stored
        first = True
        for item in sorted(sections, key=lambda section: section.address):
            # Zeroed thread-local data has an address, but takes no memory.
            if item.thread_local and not item.stored:
                continue
            start, stop = max(item.address, at), min(item.address + item.size, end)
            if start >= stop:
                continue
            if start > at:
                yield "flash", HEADERS if first else PADDING, at, start
            yield "flash", item.name, start, stop
            at, first = stop, False
        if at < end:
            yield "flash", HEADERS if first else PADDING, at, end


def _written(elf: Elf) -> Iterator[_Place]:
    for section in elf.sections:
        takes_room = section.allocated and section.size and (section.stored or not section.thread_local)
        if takes_room and elf.writes(section):
            yield "ram", section.name, section.address, section.address + section.size


def _symbols(elf: Elf) -> list[SizedSymbol]:
    """The symbols; of several at an address the largest. A linker script's symbols have no type and size."""
    largest: dict[int, SizedSymbol] = {}
    for symbol in elf.symbols:
        kind, size = symbol.kind, symbol.size
        claims = kind in _TYPES or (kind == NO_TYPE and size)
        if not claims or not symbol.placed or (kind == OBJECT and not size):
            continue
        new = SizedSymbol(elf.start_of(symbol), size, symbol.name)
        before = largest.get(new.start)
        if before is None or (-new.size, new.name) < (-before.size, before.name):
            largest[new.start] = new
    return [largest[start] for start in sorted(largest)]


def _pieces_of(
    name: str, start: int, stop: int, symbols: Sequence[SizedSymbol]
) -> Iterator[tuple[int, int, str]]:
    if name in (PADDING, HEADERS):
        yield start, stop, name
        return
    first = bisect_right(symbols, (start,))
    last = bisect_right(symbols, (stop,))
    for at, end, symbol in cut(start, stop, symbols[first:last]):
        if symbol is not None:
            yield at, end, symbol.name
        else:
            yield at, end, PADDING if end != stop and end - at < _alignment(end) else NO_SYMBOL


def _alignment(address: int) -> int:
    """The largest power of two that divides `address`."""
    return min(address & -address or _MOST_ALIGNED, _MOST_ALIGNED)


def _file(origins: Origins | None, address: int, symbol: str) -> str:
    if symbol in (PADDING, HEADERS):
        return symbol
    return (origins.file_of(address, symbol) if origins else None) or NO_DEBUG
