# SPDX-License-Identifier: Apache-2.0
"""A linked program: symbols, functions, source lines and types, each read on first use and kept."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from io import BytesIO
from itertools import zip_longest
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Final, NamedTuple

from elftools.dwarf.aranges import ARanges
from elftools.dwarf.compileunit import CompileUnit
from elftools.dwarf.die import DIE
from elftools.dwarf.dwarfinfo import DWARFInfo
from elftools.elf.elffile import ELFFile

from minrpc.host.files import Stamp, stamp_of
from minrpc.program.elf import FUNCTION, GLOBAL, HIDDEN, LOCAL, UNDEFINED, WEAK, Elf, Symbol
from minrpc.program.lines import Line, LineTable
from minrpc.program.reader_errors import reads
from minrpc.program.walking import below, children

if TYPE_CHECKING:  # Types are read on first use: a device starts sooner without their reader.
    from minrpc.program.c_types import Declarations, FunctionDeclaration

_C_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_NOTE_HEADER: Final = 16  # Header of a note with the name "GNU": three numbers, and the name.
_PROGRAMS: Final = 8


class CodeRange(NamedTuple):
    """Machine code of a function: from `start` up to, not including, `end`."""

    start: int
    end: int
    name: str


@dataclass(frozen=True)
class Symbols:
    """addresses: by linker name; functions' as C function pointers. sizes: of functions and variables, in
    bytes."""

    addresses: Mapping[str, int]
    sizes: Mapping[str, int]


class Program:
    """The ELF file `name` with this content. Members raise ProgramFileError for a damaged file."""

    def __init__(self, name: str, content: bytes) -> None:
        self.name = name
        self.elf = Elf(content, name)
        self.machine = self.elf.machine
        self._units: dict[int, Declarations] = {}
        self._tables: dict[int, LineTable] = {}
        self._returns: dict[str, list[int]] = {}
        # pyelftools seeks and reads in two steps, and threads share a program.
        self._reading = RLock()

    @property
    def file(self) -> ELFFile:
        """The file as pyelftools reads it: each call gives a new object with a position of its own."""
        return ELFFile(BytesIO(self.elf.content))

    def dwarf(self) -> DWARFInfo | None:
        """Its debug information, or None. Each call gives a new object, for a walk over all of it."""
        file = self.file
        return file.get_dwarf_info(relocate_dwarf_sections=False) if file.has_dwarf_info() else None

    def units(self) -> Iterator[CompileUnit]:
        """All compilation units; none without debug information."""
        dwarf = self.dwarf()
        return iter(()) if dwarf is None else dwarf.iter_CUs()

    @cached_property
    def symbols(self) -> Symbols:
        """Addresses and sizes of its global symbols that C can name, and of variables with internal linkage,
        "a.c:count"."""
        entries = self.elf.statics | {symbol.name: symbol for symbol in self._named_in_c()}
        return Symbols(
            {name: symbol.value for name, symbol in entries.items()},
            {name: symbol.size for name, symbol in entries.items()},
        )

    @cached_property
    def function_names(self) -> list[str]:
        """Names of all global functions."""
        return sorted({symbol.name for symbol in self._named_in_c() if symbol.kind == FUNCTION})

    @cached_property
    def functions(self) -> tuple[CodeRange, ...]:
        """Functions by address, not overlapping: a symbol without a size extends to the next."""
        return tuple(_ranges(self.elf))

    def function_at(self, address: int) -> CodeRange | None:
        """The function whose code is at `address`."""
        index = bisect_right(self._starts, address) - 1
        if index < 0 or address >= self.functions[index].end:
            return None
        return self.functions[index]

    def name_of(self, function: CodeRange) -> str:
        """The function's name; "name (file.c)" for a static function whose name others have, too."""
        return self._static_names.get(function, function.name)

    @cached_property
    def _static_names(self) -> Mapping[CodeRange, str]:
        """Names with a place, of the static functions that share a name."""
        public = {
            (self.elf.start_of(symbol), symbol.name) for symbol in self.elf.symbols if symbol.bind != LOCAL
        }
        alike: dict[str, list[CodeRange]] = {}
        for function in self.functions:
            alike.setdefault(function.name, []).append(function)
        return {
            function: f"{function.name} ({place})"
            for several in alike.values()
            if len(several) > 1
            for function, place in zip(several, self._places(several), strict=True)
            if (function.start, function.name) not in public
        }

    def _places(self, functions: Sequence[CodeRange]) -> Sequence[str]:
        """Different texts: each function's file, its path where names are equal, else the address."""
        lines = [self.line_at(function.start) for function in functions]
        paths = [line.file if line else "" for line in lines]
        for texts in ([Path(path).name for path in paths], paths):
            if len(set(texts)) == len(texts) and all(texts):
                return texts
        return [f"0x{function.start:x}" for function in functions]

    @cached_property
    def _starts(self) -> Sequence[int]:
        return [function.start for function in self.functions]

    @cached_property
    @reads
    def lines(self) -> LineTable:
        """Source lines of all its code: takes seconds for a large program."""
        return LineTable(self.units())

    @reads
    def line_at(self, address: int) -> Line | None:
        """The source line of the code at `address`; reads only its unit if there is a table of units."""
        with self._reading:
            units = self._units_at(address)
            return next((line for unit in units if (line := self._table_of(unit).at(address))), None)

    def _table_of(self, unit: CompileUnit) -> LineTable:
        if unit.cu_offset not in self._tables:
            self._tables[unit.cu_offset] = LineTable([unit])
        return self._tables[unit.cu_offset]

    @cached_property
    def contents(self) -> Sequence[tuple[int, bytes]]:
        """Its sections in memory: address and bytes."""
        return self.elf.loaded()

    @cached_property
    def build_id(self) -> str:
        """The linker's build ID of the program, in hexadecimal; "" if it has none."""
        note = self.elf.section(".note.gnu.build-id") or b""
        return note[_NOTE_HEADER:].hex()

    def returns_from(self, name: str) -> list[int]:
        """Return addresses of the calls of function `name`, from GCC's and clang's call-site information."""
        if name not in self._returns:
            self._returns[name] = self._read_returns_from(name)
        return self._returns[name]

    @reads
    def _read_returns_from(self, name: str) -> list[int]:
        return sorted(
            at
            for unit in self.units()
            if (called := {die.offset for die in _functions_of(unit) if _name(die) == name})
            for die in below(unit.get_top_DIE())
            for at in _return_of(die, called)
        )

    @reads
    def function(self, name: str) -> FunctionDeclaration | None:
        """The function `name` with its types; None if it has no debug information."""
        address = self.symbols.addresses[name] & ~self.elf.machine_bit
        with self._reading:
            for declarations in self._declarations_at(address):
                for function in declarations.functions.values():
                    if function.symbol == name:
                        return function
        return None

    @cached_property
    def everything(self) -> Declarations:
        """All its declarations: takes seconds for a large program."""
        from minrpc.program.debug_info import read_declarations

        return read_declarations(self.elf)

    @cached_property
    def _dwarf(self) -> DWARFInfo | None:
        return self.dwarf()

    def _units_at(self, address: int) -> Iterator[CompileUnit]:
        """The unit that has the code at `address`; all units if there is no table of them."""
        if self._dwarf is None:
            return iter(())
        offset = None if self._aranges is None else self._aranges.cu_offset_at_addr(address)
        return self._dwarf.iter_CUs() if offset is None else iter([self._dwarf.get_CU_at(offset)])

    @cached_property
    def _aranges(self) -> ARanges | None:
        table = None if self._dwarf is None else self._dwarf.get_aranges()
        # A function that the linker has left out ends the table.
        return table if table is not None and table.entries else None

    def _declarations_at(self, address: int) -> Iterator[Declarations]:
        from minrpc.program.debug_info import declarations_of

        for unit in self._units_at(address):
            if unit.cu_offset not in self._units:
                self._units[unit.cu_offset] = declarations_of(unit)
            yield self._units[unit.cu_offset]

    def _named_in_c(self) -> Iterator[Symbol]:
        """Symbols that C can name, also hidden ones: a simulator hides the simulated program's symbols."""
        for symbol in self.elf.symbols:
            seen = symbol.bind in (GLOBAL, WEAK) or (symbol.bind == LOCAL and symbol.visibility == HIDDEN)
            if seen and symbol.section != UNDEFINED and _C_NAME.fullmatch(symbol.name):
                yield symbol


def read_program(path: Path) -> Program:
    """The program in the file, read once while the file is the same. Raises ProgramFileError, OSError."""
    return _read(path, stamp_of(path))


@lru_cache(maxsize=_PROGRAMS)
def _read(path: Path, stamp: Stamp) -> Program:
    return Program(path.name, path.read_bytes())


def _ranges(elf: Elf) -> Iterator[CodeRange]:
    """Ranges of functions. If an address has several symbols, a symbol with a size is taken first, then a
    global symbol, then the first by name."""
    best: dict[int, tuple[tuple[bool, bool, str], int]] = {}
    for symbol in elf.symbols:
        if symbol.kind != FUNCTION or not symbol.placed:
            continue
        start = elf.start_of(symbol)
        rank = (symbol.size == 0, symbol.bind != GLOBAL, symbol.name)
        if start not in best or rank < best[start][0]:
            best[start] = (rank, symbol.size)
    starts = sorted(best)
    for start, following in zip_longest(starts, starts[1:]):
        (_, _, name), size = best[start]
        end = start + size
        if following is not None and (size == 0 or end > following):
            end = following
        yield CodeRange(start, max(end, start + 1), name)


def _functions_of(unit: CompileUnit) -> Iterator[DIE]:
    return (die for die in children(unit.get_top_DIE()) if die.tag == "DW_TAG_subprogram")


def _name(die: DIE) -> str:
    attribute = die.attributes.get("DW_AT_name")
    return attribute.value.decode() if attribute else ""


def _return_of(die: DIE, called: set[int]) -> Iterator[int]:
    """The return address of a call site: DWARF 5's attributes (3.4), or GCC's older tag and attributes."""
    if die.tag == "DW_TAG_call_site":
        pc, origin = "DW_AT_call_return_pc", "DW_AT_call_origin"
    elif die.tag == "DW_TAG_GNU_call_site":
        pc, origin = "DW_AT_low_pc", "DW_AT_abstract_origin"
    else:
        return
    attributes = die.attributes
    if pc in attributes and origin in attributes and attributes[origin].value + die.cu.cu_offset in called:
        yield attributes[pc].value
