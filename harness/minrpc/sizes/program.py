# SPDX-License-Identifier: Apache-2.0
"""An ELF file cut into pieces: each byte of flash and of RAM belongs to exactly one.

Flash is what the load segments take in the file (PT_LOAD, p_filesz): code, constants, initial values of data,
and what lies between them. RAM is what sections that are written take in memory (SHF_ALLOC and SHF_WRITE, not
SHF_EXECINSTR, not in flash), zeroed and reserved ones too. No section is known by its name. Where all runs
from RAM, flash is the image that is loaded.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, Literal, NamedTuple

from elftools.construct.lib.container import Container
from elftools.elf.constants import P_FLAGS, SH_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Section, SymbolTableSection

from minrpc.sizes.origins import Origins

Memory = Literal["flash", "ram"]
MEMORIES: Final[tuple[Memory, ...]] = ("flash", "ram")

PADDING: Final = "(padding)"
"""What is left so that the next thing is aligned, in a section or between two."""
HEADERS: Final = "(ELF headers)"
NO_SYMBOL: Final = "(no symbol)"
"""Bytes of a section that no symbol claims: strings, tables that the linker made, stacks."""
NO_DEBUG: Final = "(no debug information)"

_NO_BITS: Final = "SHT_NOBITS"
_TYPES: Final = frozenset({"STT_FUNC", "STT_OBJECT", "STT_LOOS"})
_FIRMWARE: Final = "zephyr-app"
_OWN: Final = (["bench"], ["operators"], ["ports"], ["runtime"])
"""What is in it."""
_LIBRARIES: Final = frozenset({"libgcc", "libc", "libm", "picocrt", "glibc"})
# No processor here aligns anything more than this, but for pages.
_MOST_ALIGNED: Final = 64


class Symbol(NamedTuple):
    """A function or an object: `size` bytes at `start`; 0 for one that goes on to the next."""

    start: int
    size: int
    name: str


class Piece(NamedTuple):
    """Bytes of one memory, which one symbol has.

    address: where they are when the program runs.
    file: the source, as debug information names it; or one of the names in brackets.
    """

    memory: Memory
    section: str
    address: int
    size: int
    symbol: str
    file: str

    @property
    def component(self) -> str:
        """The directory of the source, without where checkouts lie: "runtime", "zephyr/kernel"."""
        return component_of(self.file)


@dataclass(frozen=True, slots=True)
class Region:
    """A load segment: `size` bytes at `address`, of which the file has `stored`, kept at `loaded_at`."""

    address: int
    loaded_at: int
    size: int
    stored: int
    access: str


@dataclass(frozen=True)
class ProgramSizes:
    """All pieces, by address, and the load segments."""

    pieces: Sequence[Piece]
    regions: Sequence[Region]

    @cached_property
    def flash(self) -> int:
        """Bytes of it."""
        return sum(one.size for one in self.pieces if one.memory == "flash")

    @cached_property
    def ram(self) -> int:
        """Bytes of it."""
        return sum(one.size for one in self.pieces if one.memory == "ram")

    def by(self, key: Callable[[Piece], str], memory: Memory | None = None) -> dict[str, int]:
        """Sums by what `key` makes of each piece, most first."""
        sums: dict[str, int] = {}
        for one in self.pieces:
            if memory in (None, one.memory):
                name = key(one)
                sums[name] = sums.get(name, 0) + one.size
        return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))

    def grouped(self, memory: Memory) -> dict[str, dict[str, int]]:
        """One memory by component and, in it, by symbol."""
        groups: dict[str, dict[str, int]] = {}
        for one in self.pieces:
            if one.memory == memory:
                group = groups.setdefault(one.component, {})
                group[one.symbol] = group.get(one.symbol, 0) + one.size
        return groups

    def by_symbol(self) -> dict[str, tuple[int, int]]:
        """Flash and RAM by symbol; those of one name are one."""
        flash, ram = (self.by(lambda one: one.symbol, memory) for memory in MEMORIES)
        return {name: (flash.get(name, 0), ram.get(name, 0)) for name in dict.fromkeys([*flash, *ram])}


def program_sizes(elf: Path, *, files: bool = True) -> ProgramSizes:
    """The pieces of the program in `elf`.

    files: look for the sources in its debug information, which takes seconds for a large one.
    """
    with elf.open("rb") as stream:
        file = ELFFile(stream)
        sections = [_section(one) for one in file.iter_sections() if _allocated(one)]
        regions = [_region(one.header) for one in file.iter_segments("PT_LOAD") if one["p_memsz"]]
        symbols = _symbols(file)
        origins = Origins(file) if files else None
        flash = flash_of(file)
    placed = [*_stored(sections, regions), *_written(sections, flash)]
    pieces = [
        Piece(memory, name, at, end - at, symbol, _file(origins, at, symbol))
        for memory, name, start, stop in placed
        for at, end, symbol in _pieces_of(name, start, stop, symbols)
    ]
    return ProgramSizes(pieces, regions)


def totals(elf: Path) -> tuple[int, int]:
    """Flash and RAM, without what takes them."""
    with elf.open("rb") as stream:
        file = ELFFile(stream)
        flash = sum(one["p_filesz"] for one in file.iter_segments("PT_LOAD"))
        sections = [_section(one) for one in file.iter_sections() if _allocated(one)]
        written = list(_written(sections, flash_of(file)))
    return flash, sum(end - start for _, _, start, end in written)


def flash_of(file: ELFFile) -> list[range]:
    """Addresses of segments with code that run where they are stored, in a program whose data are copied.

    A section in there may be called writable, as vectors made by an assembler are: it is no RAM.
    """
    segments = [one.header for one in file.iter_segments("PT_LOAD") if one["p_filesz"]]
    if all(one.p_vaddr == one.p_paddr for one in segments):
        return []
    return [
        range(one.p_vaddr, one.p_vaddr + one.p_filesz)
        for one in segments
        if one.p_vaddr == one.p_paddr and one.p_flags & P_FLAGS.PF_X
    ]


def component_of(file: str) -> str:
    """The directory of a source file, below its checkout's top where that is known."""
    if file.startswith("("):
        return file
    parts = file.split("/")[:-1]
    # The firmware's own: a build that several checkouts share names the one in which it was made.
    own = next((at for at, one in enumerate(parts) if one == _FIRMWARE and parts[at + 1 :][:1] in _OWN), None)
    if own is not None:
        return "/".join(parts[own + 1 :])
    if parts[:2] == ["", "minrpc"]:  # as firmware/places.py names what builds are made from
        place, parts = parts[2:3], parts[3:]
        parts = parts[1:] if place == ["app"] and parts[:1] == [_FIRMWARE] else parts
        return "/".join(parts or place)
    # A toolchain's own sources, wherever these were when it was built.
    library = next((one for one in parts if one in _LIBRARIES), None)
    return library or "/".join(parts) or "."


def cut(start: int, end: int, symbols: Iterable[Symbol]) -> Iterator[tuple[int, int, Symbol | None]]:
    """`start` to `end` in pieces without a gap: what each symbol takes, and None for what is between.

    symbols: by address. Of two that overlap the first has what both claim.
    """
    at = start
    inside = [one for one in symbols if start <= one.start < end]
    for index, one in enumerate(inside):
        stop = one.start + one.size
        if one.size == 0:
            stop = inside[index + 1].start if index + 1 < len(inside) else end
        stop = min(stop, end)
        if one.start > at:
            yield at, one.start, None
            at = one.start
        if stop > at:
            yield at, stop, one
            at = stop
    if at < end:
        yield at, end, None


class _Section(NamedTuple):
    name: str
    start: int
    size: int
    stored: bool
    written: bool
    thread_local: bool


def _allocated(section: Section) -> bool:
    header = section.header
    return bool(header.sh_flags & SH_FLAGS.SHF_ALLOC) and header.sh_size > 0


def _section(section: Section) -> _Section:
    header = section.header
    flags = header.sh_flags
    return _Section(
        name=section.name,
        start=header.sh_addr,
        size=header.sh_size,
        stored=header.sh_type != _NO_BITS,
        written=bool(flags & SH_FLAGS.SHF_WRITE) and not flags & SH_FLAGS.SHF_EXECINSTR,
        thread_local=bool(flags & SH_FLAGS.SHF_TLS),
    )


def _region(one: Container) -> Region:
    flags = one.p_flags
    access = "".join(letter if flags & bit else "-" for letter, bit in (("r", 4), ("w", 2), ("x", 1)))
    return Region(
        one.p_vaddr,
        one.p_paddr,
        one.p_memsz,
        one.p_filesz,
        access,
    )


_Place = tuple[Memory, str, int, int]


def _stored(sections: Sequence[_Section], regions: Sequence[Region]) -> Iterator[_Place]:
    """What each load segment has in the file, by section, and what lies before, between and behind them."""
    for region in regions:
        at, end = region.address, region.address + region.stored
        first = True
        for one in sorted(sections, key=lambda one: one.start):
            # Zeroes of each thread's own have an address, but no room.
            if one.thread_local and not one.stored:
                continue
            start, stop = max(one.start, at), min(one.start + one.size, end)
            if start >= stop:
                continue
            if start > at:
                yield "flash", HEADERS if first else PADDING, at, start
            yield "flash", one.name, start, stop
            at, first = stop, False
        if at < end:
            yield "flash", HEADERS if first else PADDING, at, end


def _written(sections: Sequence[_Section], flash: Sequence[range]) -> Iterator[_Place]:
    for one in sections:
        if any(one.start in addresses for addresses in flash):
            continue
        if one.written and not (one.thread_local and not one.stored):
            yield "ram", one.name, one.start, one.start + one.size


def _symbols(file: ELFFile) -> list[Symbol]:
    """Of several at an address the largest; those that a linker script made have neither type nor size."""
    thumb = file["e_machine"] == "EM_ARM"
    found: dict[int, Symbol] = {}
    for table in file.iter_sections():
        if not isinstance(table, SymbolTableSection):
            continue
        for one in table.iter_symbols():
            kind, size = one["st_info"]["type"], one["st_size"]
            claims = kind in _TYPES or (kind == "STT_NOTYPE" and size)
            if not claims or not isinstance(one["st_shndx"], int) or (kind == "STT_OBJECT" and not size):
                continue
            start = one["st_value"] & ~1 if thumb and kind == "STT_FUNC" else one["st_value"]
            new = Symbol(start, size, one.name)
            before = found.get(start)
            if before is None or (-new.size, new.name) < (-before.size, before.name):
                found[start] = new
    return [found[start] for start in sorted(found)]


def _pieces_of(name: str, start: int, stop: int, symbols: Sequence[Symbol]) -> Iterator[tuple[int, int, str]]:
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
    """What `address` is a multiple of: a power of two."""
    return min(address & -address or _MOST_ALIGNED, _MOST_ALIGNED)


def _file(origins: Origins | None, address: int, symbol: str) -> str:
    if symbol in (PADDING, HEADERS):
        return symbol
    return (origins.file_of(address, symbol) if origins else None) or NO_DEBUG
