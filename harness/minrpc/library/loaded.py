# SPDX-License-Identifier: Apache-2.0
"""A library that was loaded into a device's memory, and what gives that back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from minrpc.client.counting import Measurer
from minrpc.client.function import RemoteModule
from minrpc.client.session import Session
from minrpc.client.timing import TimeEvaluator
from minrpc.library.c_library import CLibrary, Symbols
from minrpc.library.compiling import Compiled
from minrpc.library.linking import Image
from minrpc.library.toolset import ProgramFacts
from minrpc.running.crash import last_addresses
from minrpc.timing import Measurement

_RED_ZONE: Final = 128
"""Bytes below the stack pointer that a function on x86-64 may use, and GCC's figures leave out."""


class LoadedLibrary(CLibrary):
    """C functions, variables and types that were loaded into a device: each function is an attribute.

    It is given back by `unload()`, at the end of a `with` block, when nobody references it, and with the
    session.
    """

    def __init__(
        self, device: Session, compiled: Compiled, image: Image, facts: ProgramFacts, module: RemoteModule
    ) -> None:
        symbols = Symbols(image.symbols, image.sizes)
        super().__init__(
            device, compiled.name, compiled.functions, compiled.declarations, symbols, facts, module
        )
        self.compiled = compiled
        self._bounds, self._thunk_frames = compiled.stack_bounds, compiled.thunk_frames
        self.image = image

    def _timed(self, name: str, timer: TimeEvaluator | Measurer) -> Callable[..., Any]:
        timed = super()._timed(name, timer)

        def bounded(*args: object) -> Any:  # noqa: ANN401 - TimingResult or Measurement
            return self._with_bound(name, timed(*args))

        return bounded

    def _with_bound(self, name: str, result: object) -> object:
        """The stack of the function alone, without its thunk's, and the compiler's bound of it beside."""
        memory = result.memory if isinstance(result, Measurement) else None
        if not isinstance(result, Measurement) or memory is None or memory.stack is None:
            return result
        stack = max(0, memory.stack - self._thunk_frames.get(name, 0))
        bound = self._bounds.get(name)
        if bound is not None and self.facts.machine == "EM_X86_64":
            bound += _RED_ZONE
        return replace(result, memory=replace(memory, stack=stack, bound=bound))

    @property
    def device_bytes(self) -> int:
        """Bytes of the device's memory that it takes."""
        return self.image.size

    def crash_places(self, console: str) -> list[str]:
        """Which of its functions the addresses in a crash's last words are in."""
        mask = ~1 if self.facts.thumb else ~0
        end = self.image.base + self.image.size
        found = []
        for register, address in last_addresses(console):
            for name, begin in self.symbols.addresses.items():
                inside = (address & mask) - (begin & mask)
                if self.image.base <= begin < end and 0 <= inside < self.symbols.sizes[name]:
                    found.append(f"{register} 0x{address:x} is in {name} of {self.name}, at byte {inside}")
                    break
        return found

    def read(self, address: int, size: int) -> memoryview:
        """Bytes of the loaded code's own memory. Raises ValueError when it is no longer there."""
        self._check()
        return self._memory.read(self.image.base, address - self.image.base, size)

    def write(self, address: int, data: bytes) -> None:
        """Overwrite bytes of the loaded code's own memory. Raises ValueError when it is no longer there."""
        self._check()
        self._memory.write(self.image.base, address - self.image.base, data)

    def _check(self) -> None:
        rpc = self.module.rpc
        rpc.ready()
        self.module.check(rpc)

    def unload(self) -> None:
        """Give its memory back, at the latest before the next request. A second call does nothing."""
        self.module.free()
        self._memory.free()

    @property
    def unloaded(self) -> bool:
        """Whether it was given back."""
        return self.module.freed

    def __repr__(self) -> str:
        head = f"LoadedLibrary({self.name!r}, {self.image.size} bytes at 0x{self.image.base:x})"
        return "\n".join([head] + [f"  {one.prototype}" for one in self._functions.values()])
