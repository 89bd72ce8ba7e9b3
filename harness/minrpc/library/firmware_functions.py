# SPDX-License-Identifier: Apache-2.0
"""The functions of the firmware itself, by name, with types from its debug information."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from minrpc.client.session import Session
from minrpc.firmware import Firmware
from minrpc.library.c_library import CFunction
from minrpc.library.compiling import Compiled, check_frame, compile_text, thunk_frames
from minrpc.library.loaded import LoadedLibrary
from minrpc.library.loading import load_compiled
from minrpc.library.namespaces import Types, Variables
from minrpc.library.pointer_types import Callback
from minrpc.library.stack_bound import CallGraph, linked_graph, stack_frames
from minrpc.library.thunks import callable_functions, thunk_source
from minrpc.library.toolset import program_facts, toolset_of
from minrpc.names import did_you_mean
from minrpc.program import Symbols, read_program
from minrpc.program.c_types import Declarations, FunctionDeclaration


class FirmwareFunctions:
    """The functions of the running firmware that have external linkage.

    `types` has its structs and enums, `variables` its variables. A function's thunk is compiled and loaded at
    first use: it takes a few hundred bytes of the device's memory for code, until the session ends.
    """

    callback: Callback | None = None

    def __init__(self, session: Session, firmware: Firmware) -> None:
        self.name = firmware.elf.name
        self.session = session
        self._firmware = firmware
        self._program = read_program(firmware.elf)
        self._loaded: dict[str, LoadedLibrary] = {}

    @property
    def types(self) -> Types:
        """Its structs and enums. Reading all debug information takes a second at the first use."""
        return Types(self.name, self._program.everything.types)

    @property
    def variables(self) -> Variables:
        """Its variables, as `types`."""
        return Variables(self, self._program.everything.variables)

    def require_there(self) -> None:
        """Does nothing: its variables have the same addresses in each session."""

    @property
    def symbols(self) -> Symbols:
        """Addresses of its functions and variables."""
        return self._program.symbols

    def __getitem__(self, name: str) -> CFunction:
        """The function `name`. Raises KeyError, and as `load` does."""
        try:
            return self._library(name)[name]
        except AttributeError as error:
            raise KeyError(error.args[0]) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._program.function_names)

    def __repr__(self) -> str:
        return f"<{len(self._program.function_names)} functions of {self.name}>"

    def time_evaluator(self, name: str, **options: Any) -> Callable[..., Any]:  # noqa: ANN401 - see CLibrary
        """Times a function as `CLibrary.time_evaluator` does."""
        return self._library(name).time_evaluator(name, **options)

    def measure(self, name: str, **options: Any) -> Callable[..., Any]:  # noqa: ANN401 - see CLibrary
        """Measures a function in whole ticks as `CLibrary.measure` does."""
        return self._library(name).measure(name, **options)

    def code_address(self, name: str) -> int | None:
        """The address of the function `name` on the device."""
        return self._library(name).code_address(name)

    def read(self, address: int, size: int | None = None) -> Any:  # noqa: ANN401 - see CLibrary
        """Bytes of the device's memory: see `CLibrary.read`."""
        return self._library("").read(address, size)

    def write(self, address: int, data: bytes) -> None:
        """Overwrite bytes of the device's memory."""
        self._library("").write(address, data)

    def _library(self, name: str) -> LoadedLibrary:
        """The loaded library with the thunk of `name`; for "", with the function that copies memory."""
        known = self._loaded.get(name)
        if known is None or not known.module.usable_on(self.session.rpc):
            known = self._loaded[name] = self._load([self._function(name)] if name else [])
        return known

    def _function(self, name: str) -> FunctionDeclaration:
        if name not in self._program.function_names:
            raise AttributeError(self._missing(name))
        function = self._program.function(name)
        if function is None:
            raise AttributeError(
                f"{self.name} has no debug information of {name}, so its types are not known: "
                "load a C file with a function that calls it"
            )
        return callable_functions([function], program_facts(self._firmware.elf).limits)[0]

    def _missing(self, name: str) -> str:
        hint = did_you_mean(name, self._program.function_names)
        return f"{self.name} has no function {name!r} with external linkage" + (f"; {hint}?" if hint else "")

    @cached_property
    def _graph(self) -> CallGraph:
        return linked_graph(self._firmware.build_dir)  # Other functions have no reports.

    def _load(self, functions: list[FunctionDeclaration]) -> LoadedLibrary:
        toolset = toolset_of(self._firmware)
        supported = [function for function in functions if not function.unsupported]
        limits = program_facts(toolset.elf).limits
        thunks = compile_text(thunk_source(supported, limits, copy=not functions), toolset)
        named = {function.name: function for function in functions}
        bounds = [(function.name, self._graph.bound(function.symbol)) for function in functions]
        compiled = Compiled(
            self.name,
            (thunks,),
            (),
            named,
            Declarations(named),
            start=False,
            key=thunks.parent.name,
            stack_bounds={name: bound for name, bound in bounds if bound is not None},
            thunk_frames=thunk_frames(thunks, [function.name for function in supported]),
            check_frame=check_frame(stack_frames(thunks.with_suffix(".su"))),
        )
        library = load_compiled(self.session, compiled, toolset)
        sizes = self._program.symbols.sizes
        own = {function.symbol: sizes.get(function.symbol, 0) for function in functions}
        library.symbols = Symbols(library.symbols.addresses, {**library.symbols.sizes, **own})
        return library
