# SPDX-License-Identifier: Apache-2.0
"""A device: a session, and the C libraries, TVM modules and memory layouts that a compiler makes possible."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Unpack

from minrpc.client import Owner, Session
from minrpc.client.layout import Layout, Where
from minrpc.errors import LinkClosedError
from minrpc.pipeline.relayout import Relayout, RestartFields
from minrpc.transport import Transport

if TYPE_CHECKING:  # Compilers' parts are loaded on first use: a session without them starts sooner.
    from minrpc.firmware import Firmware
    from minrpc.library import CFunctions, FakesGiven, ReplacementsGiven
    from minrpc.library.tvm_modules import TvmLibrary


class Device(Session):
    """A `Session` into which C libraries and TVM modules can be loaded."""

    _firmware: CFunctions | None = None
    _relayout: Relayout | None = None

    def load(
        self,
        sources: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        include: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
        flags: str | Sequence[str] = (),
        defines: Mapping[str, object] | str | Sequence[str] = (),
        libraries: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
        headers: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
        declare: str | Sequence[str] = (),
        firmware: Firmware | None = None,
        fakes: FakesGiven | None = None,
        replace: ReplacementsGiven | None = None,
        statics: bool = False,
    ) -> CFunctions:
        """Compile C for this device, link it against the firmware, load it: each function is an attribute.

        sources: C, C++ without a runtime, assembler (.S), objects (.o), archives (.a).
        include: directories of headers. flags: come after the firmware's flags. defines: names and values.
            Either may be a text, such as "-O3 -funroll-loops".
        libraries: archives and objects that are linked where they are needed. headers: included before each
            source.
        declare: prototypes of functions that are written in assembler, "int f(int)", or headers with them.
        firmware: the firmware that runs on the device, if the device was not started here.
        fakes: Python functions for undefined functions that the sources call: {"hal_millis": lambda: 42}.
            Each may be any callable, a `unittest.mock.Mock`, a `minrpc.fake`, or "zero", which answers zero.
            The name "*" stands for all other undefined functions; fakes="zero" is {"*": "zero"}.
        replace: Python functions for functions that the sources define, for calls from all files. The
            originals are not loaded.
        statics: True to call static functions, too. If several files have a static function of the same name,
            its name is "pid.c:clamp". The compiler keeps the code of each static function, so it may inline
            less.

        Raises CompileError with the compiler's output, LinkError, LoadError, DeviceMemoryError; the session
        goes on.
        """
        from minrpc import library

        given = library.Sources.of(
            sources,
            include=include,
            flags=flags,
            defines=defines,
            libraries=libraries,
            headers=headers,
            declare=declare,
            statics=statics,
        )
        loaded = library.load(self, given, firmware=firmware, fakes=fakes, replaced=replace)
        return library.CFunctions(loaded)

    def load_tvm(
        self,
        module: str | PathLike[str] | Any,  # noqa: ANN401 - TVM has no types
        *,
        firmware: Firmware | None = None,
    ) -> TvmLibrary:
        """Load a module that TVM generated: each function is an attribute, and takes numpy arrays.

        module: a file `.c`, `.o` or `.tar`, or the result of `tvm.compile` for the target "c", or for
            `minrpc.tvm.llvm_target(device)`.
        firmware: the firmware that runs on the device, if the device was not started here.

        Raises ModuleError for another file or object, and as `load` does.
        """
        from minrpc.library.tvm_modules import load_tvm

        return load_tvm(self, module, firmware=firmware)

    def library(
        self, name: str, *, linked: bool | None = None, fakes: FakesGiven | None = None
    ) -> CFunctions:
        """The C library `name` of [libraries.NAME] in minrpc.toml: each function is an attribute.

        It is part of the firmware, or loaded now if the file has `linked = false`.

        linked: True raises LoadError if the firmware lacks the library; False loads it anyway.
        fakes: as for `load`. A library that is part of the firmware has the fakes that minrpc.toml names; the
            latest answers count.

        Raises ConfigurationError for an unknown library, and as `load` does.
        """
        from minrpc import library

        return library.CFunctions(library.named(self, name, linked=linked, fakes=fakes))

    @property
    def firmware(self) -> CFunctions:
        """The functions of the running firmware, by name: `device.firmware.k_uptime_ticks()`.

        They have their own types, from debug information: every function with external linkage, variables and
        types. Raises LoadError if the running firmware is unknown.
        """
        from minrpc import library

        if self._firmware is None:
            known = library.FirmwareFunctions(self, library.firmware_of(self))
            self._firmware = library.CFunctions(known)
        return self._firmware

    def relayout(
        self,
        *,
        arena: Where | None = None,
        code: Where | None = None,
        stack: int | None = None,
        **given: Unpack[RestartFields],
    ) -> Layout:
        """Move arrays and code to other memory, or run the device with another stack or other options.

        Each call sets the whole layout: an omitted argument has the value that the device was opened with.
        Arrays and code move within the session if possible: existing arrays, functions and libraries then
        stay valid. After a new session or a restart, these are invalid, and raise when used; the result and
        the log "minrpc.layout" report it.

        arena: bytes for arrays and workspace, at the beginning of their memory; or an address and bytes.
            A size above the firmware's restarts the device, if it can be built or started with more.
        code: bytes for loaded code alone, at the end of that memory; or an address and bytes; 0 for no
            separate memory.
        stack: bytes of the stack that functions run on. It restarts the device, as do these options:
            cmake_options (on Zephyr Kconfig's too: "-DCONFIG_X=y"), defines, sources, timing, ...

        Raises ConfigurationError for a layout that the device can't have, ValueError for an invalid size, and
        the errors of `build` and `start`; after an error the device is unchanged. Raises LinkClosedError for
        a closed device.
        """
        with self.rpc.lock:
            if self._closed:
                raise LinkClosedError(f"{self.name}: the device is closed", next_step="open the device again")
            if self._relayout is None:
                self._relayout = Relayout(self)
            return self._relayout(arena, code, stack, given)

    def move_to(self, transport: Transport, owner: Owner, on_close: Callable[[], None]) -> None:
        """See `Session.move_to`."""
        with self.rpc.lock:
            self._firmware = None
            super().move_to(transport, owner, on_close)
