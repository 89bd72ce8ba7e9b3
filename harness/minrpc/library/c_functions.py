# SPDX-License-Identifier: Apache-2.0
"""The C functions of a library as attributes, and Python functions for everything else of a library.

A C function may be called `read`, `types` or `measure`. So `CFunctions` has no public attribute of its own:
each attribute is a C function. `minrpc.read(lib, ...)` and the others are functions beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any, Final, Self, TypeAlias

from minrpc.library.c_library import CFunction, CLibrary
from minrpc.library.fake_functions import Fakes
from minrpc.library.firmware_functions import FirmwareFunctions
from minrpc.library.namespaces import Types, Variables
from minrpc.library.placed import Placed
from minrpc.library.scalars import describe

AnyLibrary: TypeAlias = CLibrary | FirmwareFunctions

# Attributes of earlier versions, with their present spelling.
_NEW: Final = MappingProxyType(
    {
        "types": "minrpc.types(lib)",
        "variables": "minrpc.variables(lib)",
        "measure": "minrpc.measure(lib, NAME)",
        "time_evaluator": "minrpc.time_evaluator(lib, NAME)",
        "read": "minrpc.read(lib, ADDRESS)",
        "write": "minrpc.write(lib, ADDRESS, DATA)",
        "unload": "minrpc.unload(lib)",
        "fakes": "minrpc.fakes(lib)",
    }
)


class CFunctions:
    """The C functions of a library: each attribute is a C function.

    `lib[name]` is the same function, `name in lib` tests for it. Other properties have functions:
    `minrpc.types(lib)`, `minrpc.measure(lib, "fir")`, ...; `minrpc.library_of(lib)` has the rest, such as
    symbols and sizes. At the end of a `with` block its memory is freed.
    """

    __slots__ = ("__weakref__", "_minrpc_library")
    _minrpc_library: AnyLibrary

    def __init__(self, library: AnyLibrary) -> None:
        object.__setattr__(self, "_minrpc_library", library)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"{self._minrpc_library.name}: {name!r} can't be set: a variable is set by "
            f"minrpc.variables(lib).{name} = ..., a function's answer in Python by minrpc.fakes(lib)"
        )

    def __getattr__(self, name: str) -> CFunction:
        library = self._minrpc_library
        if name.startswith("__") and name not in self:
            raise AttributeError(name)
        try:
            return library[name]
        except KeyError as error:
            raise AttributeError(_moved(library, name) or error.args[0]) from None

    def __getitem__(self, name: str) -> CFunction:
        """The function `name`. Raises KeyError."""
        return self._minrpc_library[name]

    def __contains__(self, name: object) -> bool:
        return name in set(self._minrpc_library)

    def __iter__(self) -> Iterator[str]:
        return iter(self._minrpc_library)

    def __dir__(self) -> list[str]:
        return sorted(self._minrpc_library)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        unload(self)

    def __str__(self) -> str:
        return str(self._minrpc_library)

    def __repr__(self) -> str:
        return repr(self._minrpc_library)


def _moved(library: AnyLibrary, name: str) -> str:
    """The message for an attribute of earlier versions; "" for any other name."""
    if name in _NEW:
        return f"{library.name} has no function {name!r}; lib.{name} is now {_NEW[name]}"
    if not name.startswith("_") and (name in vars(library) or hasattr(type(library), name)):
        return f"{library.name} has no function {name!r}; lib.{name} is now minrpc.library_of(lib).{name}"
    return ""


def library_of(lib: CFunctions) -> Any:  # noqa: ANN401 - any of AnyLibrary, such as LoadedLibrary
    """The library behind the functions, such as a `LoadedLibrary`: its module, symbols, sizes.

    Raises TypeError for an object that is not a library.
    """
    return _library(lib)


def _library(lib: CFunctions) -> AnyLibrary:
    if not isinstance(lib, CFunctions):
        raise TypeError(f"a library is expected, as device.load gives, not {describe(lib)}")
    return lib._minrpc_library


def types(lib: CFunctions) -> Types:
    """The structs and enums of a library: `types(lib).point(1, 2)`."""
    return _library(lib).types


def variables(lib: CFunctions) -> Variables:
    """The variables of a library: `variables(lib).n = 0` sets a variable, `variables(lib)["n"]` is the
    variable itself."""
    return _library(lib).variables


def measure(lib: CFunctions, name: str, **options: Any) -> Callable[..., Any]:  # noqa: ANN401 - see RemoteModule
    """Measures a function in whole ticks as `RemoteModule.measure` does, with the C function's arguments."""
    return _library(lib).measure(name, **options)


def time_evaluator(lib: CFunctions, name: str, **options: Any) -> Callable[..., Any]:  # noqa: ANN401 - see RemoteModule
    """Times a function as `RemoteModule.time_evaluator` does, with the C function's arguments.

    Arrays are sent once, before the first call, and are not read back.
    """
    return _library(lib).time_evaluator(name, **options)


def read(lib: CFunctions, address: int, size: int | None = None) -> Any:  # noqa: ANN401 - a memoryview, or a value
    """Read memory of the device at any address: see `CLibrary.read`."""
    return _library(lib).read(address, size)


def write(lib: CFunctions, address: int, data: bytes) -> None:
    """Overwrite bytes of the device's memory; aligned words are written by word accesses."""
    _library(lib).write(address, data)


def place(lib: CFunctions, value: object) -> Placed:
    """Place a struct, an array, text or a list of structs on the device until the end of the library, of a
    `with` block, or of `free()`: for code that keeps pointers. See `CLibrary.place`."""
    return _own(lib, "place").place(value)


def allow_kept_pointers(lib: CFunctions) -> None:
    """Accept pointers to a call's arguments that a library's variables keep when the call is over."""
    _own(lib, "allow_kept_pointers").allow_kept_pointers()


def _own(lib: CFunctions, asked: str) -> CLibrary:
    library = _library(lib)
    if not isinstance(library, CLibrary):
        raise TypeError(f"{asked}: {library.name} is the firmware itself; load a library, and give that")
    return library


def unload(lib: CFunctions) -> None:
    """Free a library's memory on the device. A second call does nothing."""
    library = _library(lib)
    if isinstance(library, CLibrary):
        library.unload()


def fakes(lib: CFunctions) -> Fakes:
    """The Python functions that answer C functions: `fakes(lib).hal_write.calls`."""
    library = _library(lib)
    return library.fakes if isinstance(library, CLibrary) else Fakes(library.name, {})
