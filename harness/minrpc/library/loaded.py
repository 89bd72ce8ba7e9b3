# SPDX-License-Identifier: Apache-2.0
"""A library that was loaded into a device's memory, and the release of that memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Final

from minrpc.client.function import RemoteFunction, RemoteModule
from minrpc.client.session import Session
from minrpc.library.c_library import CLibrary
from minrpc.library.code_guard import CodeGuard
from minrpc.library.compiling import Compiled
from minrpc.library.fake_functions import FakeFunction
from minrpc.library.linking import LinkedImage
from minrpc.library.pointer_types import Callback
from minrpc.library.thunks import COPY, thunk_name
from minrpc.library.toolset import ProgramFacts
from minrpc.names import listed
from minrpc.program import Program, Symbols
from minrpc.program.elf import LOCAL, UNDEFINED, Elf, Symbol
from minrpc.program.objects import SectionSizes, elves_of, section_sizes
from minrpc.timing import MeasuredCode, Measurement

FROM_LIBRARIES: Final = "(from libraries)"


class LoadedLibrary(CLibrary):
    """C functions, variables and types that were loaded into a device: each function is an attribute.

    Its memory is freed by `unload()`, at the end of a `with` block, when nothing references it, and with the
    session.
    """

    def __init__(
        self,
        session: Session,
        compiled: Compiled,
        image: LinkedImage,
        facts: ProgramFacts,
        module: RemoteModule,
        load_copier: Callable[[], LoadedLibrary],
        fakes: Mapping[str, FakeFunction],
        callback: Callback,
    ) -> None:
        """load_copier: loads a library with the function `COPY`. fakes, callback: as in `CLibrary`."""
        symbols = Symbols(image.symbols, _sizes_with_statics(image, compiled))
        super().__init__(
            session,
            compiled.name,
            compiled.functions,
            compiled.declarations,
            symbols,
            facts,
            module,
            callback,
            CodeGuard.of(session.owner, compiled.name, image),
            fakes,
        )
        self.compiled = compiled
        self._thunk_frames = compiled.thunk_frames
        self.image = image
        self._load_copier = load_copier
        self._copying: LoadedLibrary | None = None

    @property
    def check_frame(self) -> int:
        """By the report of the thunks' compiler."""
        return self.compiled.check_frame

    def _described(self, name: str, measured: Measurement, args: Sequence[object]) -> Measurement:
        compiler = self.compiled.compiler
        code = MeasuredCode(self[name].size, self.own_sizes, compiler.name, compiler.flags)
        return replace(super()._described(name, measured, args), code=code)

    @property
    def device_bytes(self) -> int:
        """Its size in the device's memory, in bytes, without the gap that an emulator's pages make."""
        return self.image.device_bytes

    def stack_bound(self, name: str) -> int | None:
        """Computed from GCC's call graph; see `CLibrary`."""
        return self.compiled.stack_bounds.get(name)

    def thunk_frame(self, name: str) -> int:
        """By the compiler's report."""
        return self._thunk_frames.get(name, 0)

    def thunk_address(self, name: str) -> int | None:
        """By its symbol."""
        return self.symbols.addresses.get(self._thunks.get(name, ""))

    @cached_property
    def _thunks(self) -> Mapping[str, str]:
        """The thunks' symbols; thunks are numbered in the order of the functions that have one."""
        callable_ones = [name for name, item in self.compiled.functions.items() if not item.unsupported]
        return {name: thunk_name(index) for index, name in enumerate(callable_ones)}

    def _read(self, address: int, size: int) -> memoryview:
        """Raises ValueError if the library has been unloaded."""
        self._check()
        if not self._has(address, size):
            return super()._read(address, size)
        return self._memory.read(self.image.base, address - self.image.base, size)

    def _write(self, address: int, data: bytes) -> None:
        """Raises ValueError if the library has been unloaded."""
        self._check()
        if not self._has(address, len(data)):
            super()._write(address, data)
            return
        self._memory.write(self.image.base, address - self.image.base, data)
        if self._code is not None:
            self._code.written(address, data)

    def _has(self, address: int, size: int) -> bool:
        """True if all these bytes are in the loaded code's own memory."""
        return self.image.base <= address and address + size <= self.image.base + self.image.size

    def _copier(self) -> RemoteFunction:
        """The copying function, loaded at first use; a library without functions has it itself."""
        if not self.compiled.functions:
            return super()._copier()
        if self._copying is None or self._copying.unloaded:
            self._copying = self._load_copier()
        return self._copying.module.get_function(COPY)

    def _check(self) -> None:
        rpc = self.module.rpc
        rpc.ready_for_memory()
        self.module.check(rpc)

    def unload(self) -> None:
        """Free its memory, at the latest before the next request. A second call does nothing."""
        self.module.free()
        super().unload()
        if self._copying is not None:
            self._copying.unload()

    @property
    def unloaded(self) -> bool:
        """True if its memory has been freed."""
        return self.module.freed

    @cached_property
    def own_sizes(self) -> Mapping[str, int]:
        """Size in bytes of each function and variable of its sources; all from libraries is one sum.

        Thunks and fakes are left out. If an address has several names, a global name is taken. A name
        in several files has an entry for each: "helper (a.c)".
        """
        compiled = self.compiled
        user = _elves(compiled.own_objects)
        made = _elves(compiled.objects[len(compiled.own_objects) :])
        own = {name: size for name, size in _sizes(user).items() if name not in self._fakes}
        ours = {*_sizes(made), *(f"__{name}_veneer" for name in _needed(made) - _needed(user))}
        linked = {name: size for name, size in self.image.sizes.items() if ":" not in name}
        sizes = {**linked, **own}
        by_address: dict[int, str] = {}
        for name in (*own, *sizes):
            if sizes[name] and name in self.image.sizes and (name in own or name not in ours):
                by_address.setdefault(self.image.symbols[name], name)
        own_sizes = {name: sizes[name] for name in by_address.values() if name in own}
        rest = sum(sizes[name] for name in by_address.values() if name not in own)
        own_sizes = _of_each_file(own_sizes, Program(self.name, self.image.program))
        return {**own_sizes, FROM_LIBRARIES: rest} if rest else own_sizes

    @cached_property
    def section_sizes(self) -> list[SectionSizes]:
        """Bytes of code and constants, of initial values, and of zeros of each source, in the order of the
        sources."""
        return [section_sizes(path) for path in self.compiled.own_objects]

    def __repr__(self) -> str:
        names = listed(list(self._declared), 12)
        return f"<{self.name}, {self.device_bytes:,} bytes at 0x{self.image.base:x}: {names}>"


def _sizes_with_statics(image: LinkedImage, compiled: Compiled) -> Mapping[str, int]:
    """The sizes by symbol, also by the second symbols of functions with internal linkage."""
    wanted = (function.symbol for function in compiled.functions.values())
    seconds = {name: image.symbols[name] for name in wanted if not image.sizes.get(name, 1)}
    symbols = Elf(image.program, compiled.name).symbols if seconds else ()
    by_address = {symbol.value: symbol.size for symbol in symbols if symbol.size and symbol.placed}
    return {**image.sizes, **{name: by_address.get(address, 0) for name, address in seconds.items()}}


def _of_each_file(sizes: Mapping[str, int], program: Program) -> dict[str, int]:
    """The sizes, with each file's own of a name that several places of the linked program have."""
    elf, each = program.elf, dict(sizes)
    places: dict[str, dict[int, Symbol]] = {name: {} for name in sizes}
    for symbol in elf.symbols:
        if symbol.size and symbol.placed and symbol.name in places:
            places[symbol.name][elf.start_of(symbol)] = symbol
    files = {symbol.value: title.rpartition(":")[0] for title, symbol in elf.statics.items()}
    for name, alike in places.items():
        if len(alike) > 1:
            del each[name]
            for start, symbol in alike.items():
                function = program.function_at(start)
                title = f"{name} ({files[start]})" if start in files else name
                each[title if function is None else program.name_of(function)] = symbol.size
    return each


def _elves(paths: Iterable[Path]) -> Sequence[Elf]:
    return [elf for path in paths for elf in elves_of(path)]


def _sizes(objects: Iterable[Elf]) -> dict[str, int]:
    """Sizes in bytes of the objects' symbols, global names first."""
    symbols = [symbol for elf in objects for symbol in elf.symbols if symbol.size]
    return {entry.name: entry.size for entry in sorted(symbols, key=lambda item: item.bind == LOCAL)}


def _needed(objects: Iterable[Elf]) -> set[str]:
    """The objects' undefined symbols: ld reaches a far one through a veneer, which has the symbol's name."""
    return {symbol.name for elf in objects for symbol in elf.symbols if symbol.section == UNDEFINED}
