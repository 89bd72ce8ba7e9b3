# SPDX-License-Identifier: Apache-2.0
"""What a firmware's ELF file says about addresses: functions, code, and where timing begins and ends."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Final, Literal, NamedTuple

from elftools.construct.lib.container import Container
from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.die import DIE
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Symbol, SymbolTableSection

from minrpc.counters.lines import Line, LineTable
from minrpc.sizes.program import flash_of

TIMER_START: Final = "minrpc_timer_start"
TIMER_STOP: Final = "minrpc_timer_stop"

# Machines whose instructions start on even addresses only; on the others any address will do.
_EVEN: Final = frozenset({"EM_ARM", "EM_AARCH64", "EM_RISCV"})


ANYWHERE: Final = (0, 2**64 - 1)
"""A stack that lies where a batch stores first: the evaluator, or what it calls, does that to its own."""

# Zephyr has a symbol for each option of its configuration.
_MAPS_STACKS: Final = "CONFIG_THREAD_STACK_MEM_MAPPED"

# The stack of the thread that serves, as the Zephyr port calls it.
_THREADS_STACK: Final = re.compile(r"stack|minrpc_(?:thread_)?stack|z_main_stack")


class Function(NamedTuple):
    """A function of the image: its code is at `start` up to, not including, `end`."""

    start: int
    end: int
    name: str


class Code(NamedTuple):
    """Memory from which the image may run: `size` bytes at `base`."""

    base: int
    size: int


@dataclass(frozen=True)
class LoadedCode:
    """Code that a device was given while it ran: `size` bytes at `base`, of the ELF file `program`."""

    base: int
    size: int
    functions: tuple[Function, ...]
    program: bytes = field(repr=False)

    @cached_property
    def lines(self) -> LineTable:
        """Its lines of source."""
        return LineTable(BytesIO(self.program))

    @cached_property
    def contents(self) -> Sequence[tuple[int, bytes]]:
        """Its sections: address and bytes."""
        return _contents(BytesIO(self.program))

    def function_at(self, address: int) -> Function | None:
        """The smallest function at `address`: what has no name of its own is in one for all."""
        found = [one for one in self.functions if one.start <= address < one.end]
        return min(found, key=lambda one: one.end - one.start, default=None)


class Region(NamedTuple):
    """Memory by its kind: `size` bytes at `base`."""

    base: int
    size: int
    kind: Literal["flash", "ram"]


@dataclass(frozen=True, slots=True)
class Window:
    """Addresses of the instructions at which a timed batch begins, and at which it has ended."""

    opens: tuple[int, ...]
    closes: tuple[int, ...]


class Image:
    """The ELF file at `path`, read as it is asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # What a device was given while it ran, in the order of loading: a later one lies over an earlier.
        self.loaded: list[LoadedCode] = []

    def as_of_now(self) -> Image:
        """The same; what is loaded later is not in it."""
        now = copy(self)
        now.loaded = list(self.loaded)
        return now

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """By address, not overlapping: a symbol without a size goes on to the next one."""
        with self.path.open("rb") as stream:
            file = ELFFile(stream)
            return tuple(_functions(file))

    @cached_property
    def code(self) -> tuple[Code, ...]:
        """What is loaded with leave to be executed."""
        with self.path.open("rb") as stream:
            segments = [one.header for one in ELFFile(stream).iter_segments("PT_LOAD")]
        return tuple(Code(one.p_vaddr, one.p_memsz) for one in segments if one.p_flags & 1 and one.p_memsz)

    @cached_property
    def regions(self) -> tuple[Region, ...]:
        """What is loaded: flash where it is only read, RAM where it is written, zeroed or reserved too.

        Segments that touch or share a page are told apart by their sections.
        """
        with self.path.open("rb") as stream:
            file = ELFFile(stream)
            sections = [one.header for one in file.iter_sections() if one["sh_size"]]
            flash = flash_of(file)
        return tuple(
            Region(one.sh_addr, one.sh_size, "ram" if _writable(one, flash) else "flash")
            for one in sorted(sections, key=lambda one: int(one.sh_addr))
            if one.sh_flags & SH_FLAGS.SHF_ALLOC and not one.sh_flags & SH_FLAGS.SHF_TLS
        )

    @cached_property
    def machine(self) -> str:
        """As ELF names it: "EM_ARM", "EM_386", "EM_X86_64", "EM_RISCV"."""
        with self.path.open("rb") as stream:
            return str(ELFFile(stream)["e_machine"])

    @cached_property
    def stack(self) -> tuple[int, int]:
        """Where the stack lies that functions run on, and its end; 0 and 0 where no symbol says it.

        Without an operating system it is an object of ours; picolibc's linker script has its top and its size
        as symbols, Zephyr an object for each thread's, which it may map elsewhere when the thread starts:
        `ANYWHERE` then.
        """
        with self.path.open("rb") as stream:
            found = {one.name: one for one in _symbols(ELFFile(stream))}
            if _MAPS_STACKS in found:
                return ANYWHERE
            own = found.get("minrpc_stack")
            if own is not None and own["st_size"]:
                return own["st_value"], own["st_value"] + own["st_size"]
            top, size = found.get("__stack"), found.get("__stack_size")
            if top is not None and size is not None:
                return top["st_value"] - size["st_value"], top["st_value"]
            for name, one in found.items():
                if _THREADS_STACK.fullmatch(name) and one["st_size"]:
                    return one["st_value"], one["st_value"] + one["st_size"]
        return 0, 0

    @cached_property
    def shift(self) -> int:
        """An instruction starts on a multiple of 1 << shift bytes."""
        return 1 if self.machine in _EVEN else 0

    @cached_property
    def window(self) -> Window:
        """From the return of `minrpc_timer_start` to the call of `minrpc_timer_stop`.

        Where the image has no debug information the former is its beginning, so that what the timer itself
        takes is inside.
        """
        starts = [one.start for one in self.functions if one.name == TIMER_START]
        stops = [one.start for one in self.functions if one.name == TIMER_STOP]
        with self.path.open("rb") as stream:
            returns = sorted(_returns(ELFFile(stream), TIMER_START))
        return Window(tuple(returns or starts), tuple(stops))

    def function_at(self, address: int) -> Function | None:
        """The function whose code is at `address`, also one that was loaded."""
        code = self._loaded_at(address)
        if code is not None:
            return code.function_at(address)
        index = bisect_right(self._starts, address) - 1
        if index < 0 or address >= self.functions[index].end:
            return None
        return self.functions[index]

    @cached_property
    def lines(self) -> LineTable:
        """Lines of the image's own source."""
        with self.path.open("rb") as stream:
            return LineTable(stream)

    def line_at(self, address: int) -> Line | None:
        """The line that the code at `address` was made from, also code that was loaded; None if unknown."""
        code = self._loaded_at(address)
        return (code or self).lines.at(address)

    def place_of(self, address: int) -> str:
        """Function, file and line of the code at `address`: "mul at scale.c:12"."""
        function, line = self.function_at(address), self.line_at(address)
        name = function.name if function else f"0x{address:x}"
        return f"{name} at {line.file.rpartition('/')[2]}:{line.number}" if line else name

    def bytes_at(self, address: int, size: int) -> bytes:
        """Up to `size` bytes of the program at `address`, also of loaded code; b"" where it has none."""
        code = self._loaded_at(address)
        for base, data in (code or self).contents:
            if 0 <= address - base < len(data):
                return data[address - base : address - base + size]
        return b""

    @cached_property
    def contents(self) -> Sequence[tuple[int, bytes]]:
        """Its sections: address and bytes."""
        with self.path.open("rb") as stream:
            return _contents(stream)

    def _loaded_at(self, address: int) -> LoadedCode | None:
        return next((one for one in reversed(self.loaded) if 0 <= address - one.base < one.size), None)

    @cached_property
    def wide(self) -> bool:
        """Whether addresses have 64 bits."""
        with self.path.open("rb") as stream:
            return bool(ELFFile(stream).elfclass == 64)

    @cached_property
    def _starts(self) -> Sequence[int]:
        return [one.start for one in self.functions]


def _symbols(file: ELFFile) -> Iterator[Symbol]:
    for table in file.iter_sections():
        if isinstance(table, SymbolTableSection):
            yield from table.iter_symbols()


def _contents(stream: BinaryIO) -> Sequence[tuple[int, bytes]]:
    sections = ELFFile(stream).iter_sections()
    return [
        (one["sh_addr"], one.data())
        for one in sections
        if one["sh_flags"] & SH_FLAGS.SHF_ALLOC and one["sh_type"] == "SHT_PROGBITS"
    ]


def _writable(section: Container, flash: Sequence[range]) -> bool:
    """A linker script may have made code writable: it is where it was put all the same."""
    written = section.sh_flags & SH_FLAGS.SHF_WRITE and not section.sh_flags & SH_FLAGS.SHF_EXECINSTR
    return bool(written) and not any(section.sh_addr in addresses for addresses in flash)


def _functions(file: ELFFile) -> Iterator[Function]:
    """Of several symbols at an address the one with a size, then the global one, then the first by name."""
    thumb = file["e_machine"] == "EM_ARM"
    found: dict[int, tuple[tuple[bool, bool, str], int]] = {}
    for symbol in _symbols(file):
        info, where = symbol["st_info"], symbol["st_shndx"]
        if info["type"] != "STT_FUNC" or not isinstance(where, int):
            continue
        start = symbol["st_value"] & ~1 if thumb else symbol["st_value"]
        rank = (symbol["st_size"] == 0, info["bind"] != "STB_GLOBAL", symbol.name)
        if start not in found or rank < found[start][0]:
            found[start] = (rank, symbol["st_size"])
    starts = sorted(found)
    for start, following in zip(starts, [*starts[1:], None], strict=True):
        (_, _, name), size = found[start]
        end = start + size
        if following is not None and (size == 0 or end > following):
            end = following
        yield Function(start, max(end, start + 1), name)


def _returns(file: ELFFile, name: str) -> Iterator[int]:
    """Where calls of `name` return to, as GCC's and clang's call-site information has it (DWARF 5, 3.4)."""
    if not file.has_dwarf_info():
        return
    for unit in file.get_dwarf_info().iter_CUs():
        called = {die.offset for die in _declarations(unit) if _name(die) == name}
        if called:
            yield from (at for die in unit.iter_DIEs() for at in _return_of(die, called))


def _declarations(unit: CompileUnit) -> Iterator[DIE]:
    return (die for die in unit.get_top_DIE().iter_children() if die.tag == "DW_TAG_subprogram")


def _name(die: DIE) -> str:
    attribute = die.attributes.get("DW_AT_name")
    return attribute.value.decode() if attribute else ""


def _return_of(die: DIE, called: set[int]) -> Iterator[int]:
    """DWARF 5 has names for it; before, GCC had its own tag with other attributes."""
    if die.tag == "DW_TAG_call_site":
        pc, origin = "DW_AT_call_return_pc", "DW_AT_call_origin"
    elif die.tag == "DW_TAG_GNU_call_site":
        pc, origin = "DW_AT_low_pc", "DW_AT_abstract_origin"
    else:
        return
    found = die.attributes
    if pc in found and origin in found and found[origin].value + die.cu.cu_offset in called:
        yield found[pc].value
