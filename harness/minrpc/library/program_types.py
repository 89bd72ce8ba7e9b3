# SPDX-License-Identifier: Apache-2.0
"""Types of a linked program, read where they are asked for: a firmware has more than anybody calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from io import BytesIO
from pathlib import Path

from elftools.dwarf.compileunit import CompileUnit
from elftools.elf.elffile import ELFFile

from minrpc.library.c_library import Symbols
from minrpc.library.c_types import CType, Declarations, Function, Variable
from minrpc.library.debug_info import declarations_of, read_declarations
from minrpc.library.elf_tables import FUNCTION, GLOBAL, HIDDEN, LOCAL, UNDEFINED, WEAK, Elf, Symbol

_C_NAME = re.compile(r"[A-Za-z_]\w*")


class Program:
    """A linked program: its functions by name, with their types once one is asked for."""

    def __init__(self, elf: Path) -> None:
        self.name = elf.name
        self._content = elf.read_bytes()
        self._file = ELFFile(BytesIO(self._content))
        self._dwarf = (
            self._file.get_dwarf_info(relocate_dwarf_sections=False) if self._file.has_dwarf_info() else None
        )
        self._units: dict[int, Declarations] = {}

    @cached_property
    def symbols(self) -> Symbols:
        """Where its global symbols are."""
        entries = list(self._symbols())
        return Symbols({one.name: one.value for one in entries}, {one.name: one.size for one in entries})

    @cached_property
    def function_names(self) -> list[str]:
        """All functions that another file could call."""
        return sorted({one.name for one in self._symbols() if one.kind == FUNCTION})

    def function(self, name: str) -> Function | None:
        """The function `name` with its types; None where there is no debug information of it."""
        address = self.symbols.addresses[name] & ~(self._file["e_machine"] == "EM_ARM")
        for one in self._declarations_at(address):
            for function in one.functions.values():
                if function.symbol == name:
                    return function
        return None

    @cached_property
    def everything(self) -> Declarations:
        """All that it declares: takes seconds for a large one."""
        return read_declarations(self._content)

    def type(self, name: str) -> CType | None:
        """The type `name`: of the units that were read already, else of any."""
        for one in self._units.values():
            if name in one.types:
                return one.types[name]
        return self.everything.types.get(name)

    def variable(self, name: str) -> Variable | None:
        """The variable `name` of file scope."""
        return self.everything.variables.get(name)

    def _declarations_at(self, address: int) -> Iterator[Declarations]:
        """Of the unit that has the code at `address`, or, where there is no table of them, of all."""
        if self._dwarf is None:
            return
        table = self._dwarf.get_aranges()
        offset = None if table is None else table.cu_offset_at_addr(address)
        units: Iterator[CompileUnit] = self._dwarf.iter_CUs()
        if offset is not None:
            units = iter([self._dwarf.get_CU_at(offset)])
        for unit in units:
            if unit.cu_offset not in self._units:
                self._units[unit.cu_offset] = declarations_of(unit)
            yield self._units[unit.cu_offset]

    def _symbols(self) -> Iterator[Symbol]:
        """A simulator hides the simulated program's symbols: those too."""
        for one in Elf(self._content).symbols:
            seen = one.bind in (GLOBAL, WEAK) or (one.bind == LOCAL and one.visibility == HIDDEN)
            if seen and one.section != UNDEFINED and _C_NAME.fullmatch(one.name):
                yield one


@lru_cache(maxsize=4)
def program(elf: Path) -> Program:
    """The program in the file, opened once."""
    return Program(elf)
