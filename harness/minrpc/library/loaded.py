# SPDX-License-Identifier: Apache-2.0
"""A library that was loaded into a device's memory, and what gives that back."""

from __future__ import annotations

from minrpc.client.device import Device
from minrpc.client.function import RemoteModule
from minrpc.library.c_library import CLibrary, Symbols
from minrpc.library.compiling import Compiled
from minrpc.library.linking import Image
from minrpc.library.toolset import ProgramFacts


class LoadedLibrary(CLibrary):
    """C functions, variables and types that were loaded into a device: each function is an attribute.

    It is given back by `unload()`, at the end of a `with` block, when nobody references it, and with the
    session.
    """

    def __init__(
        self, device: Device, compiled: Compiled, image: Image, facts: ProgramFacts, module: RemoteModule
    ) -> None:
        symbols = Symbols(image.symbols, image.sizes)
        super().__init__(
            device, compiled.name, compiled.functions, compiled.declarations, symbols, facts, module
        )
        self.compiled = compiled
        self.image = image

    @property
    def device_bytes(self) -> int:
        """Bytes of the device's memory that it takes."""
        return self.image.size

    def read(self, address: int, size: int) -> memoryview:
        """Bytes of the loaded code's own memory."""
        return self._memory.read(self.image.base, address - self.image.base, size)

    def write(self, address: int, data: bytes) -> None:
        """Overwrite bytes of the loaded code's own memory."""
        self._memory.write(self.image.base, address - self.image.base, data)

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
