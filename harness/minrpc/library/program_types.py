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
from elftools.elf.sections import SymbolTableSection

from minrpc.library.c_library import Symbols
from minrpc.library.c_types import CType, Declarations, Function, Variable
from minrpc.library.debug_info import declarations_of, read_declarations

_C_NAME = re.compile(r"[A-Za-z_]\w*")


class Program:
    """A linked program: its functions by name, with their types once one is asked for."""

    def __init__(self, elf: Path) -> None:
        self.name = elf.name
        self._content = elf.read_bytes()
        self._file = ELFFile(BytesIO(self._content))
        self._dwarf = self._file.get_dwarf_info() if self._file.has_dwarf_info() else None
        self._units: dict[int, Declarations] = {}

    @cached_property
    def symbols(self) -> Symbols:
        """Where its global symbols are."""
        entries = list(self._symbols())
        addresses = {name: address for name, _, address, _ in entries}
        return Symbols(addresses, {name: size for name, _, _, size in entries})

    @cached_property
    def function_names(self) -> list[str]:
        """All functions that another file could call."""
        return sorted({name for name, kind, *_ in self._symbols() if kind == "STT_FUNC"})

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

    def _symbols(self) -> Iterator[tuple[str, str, int, int]]:
        """Name, kind, address, size. A simulator hides the simulated program's symbols: those too."""
        table = self._file.get_section_by_name(".symtab")
        for symbol in table.iter_symbols() if isinstance(table, SymbolTableSection) else ():
            bind, kind = symbol["st_info"]["bind"], symbol["st_info"]["type"]
            hidden = bind == "STB_LOCAL" and symbol["st_other"]["visibility"] == "STV_HIDDEN"
            seen = bind in ("STB_GLOBAL", "STB_WEAK") or hidden
            if seen and symbol["st_shndx"] != "SHN_UNDEF" and _C_NAME.fullmatch(symbol.name):
                yield symbol.name, kind, symbol["st_value"], symbol["st_size"]


@lru_cache(maxsize=4)
def program(elf: Path) -> Program:
    """The program in the file, opened once."""
    return Program(elf)
