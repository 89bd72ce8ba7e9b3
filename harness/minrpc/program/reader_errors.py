# SPDX-License-Identifier: Apache-2.0
"""The boundary around readers of ELF and DWARF: each failure becomes an error that names the file."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Concatenate, Final, ParamSpec, Protocol, TypeVar

from elftools.common.exceptions import DWARFError, ELFError
from elftools.construct import ConstructError

from minrpc.errors import ProgramFileError

# pyelftools checks little: a damaged file fails it in any operation.
_FAILURES: Final = (
    *(DWARFError, ELFError, ConstructError, struct.error, zlib.error, ArithmeticError, AssertionError),
    *(AttributeError, EOFError, LookupError, MemoryError, RuntimeError, TypeError, ValueError),
)


class Named(Protocol):
    """A file, or its content, with the name for messages."""

    @property
    def name(self) -> str:
        """The file's name."""
        ...


_Source = TypeVar("_Source", bound=Named)
_P = ParamSpec("_P")
_T = TypeVar("_T")


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Raises ProgramFileError for each failure within the block to read the file `name`."""
    try:
        yield
    except _FAILURES as error:
        reason = str(error) or type(error).__name__
        raise ProgramFileError(f"{name} is damaged or cut off: {reason}") from error


def reads(
    function: Callable[Concatenate[_Source, _P], _T],
) -> Callable[Concatenate[_Source, _P], _T]:
    """The function, which raises ProgramFileError if its first argument, a file, can't be read."""

    @wraps(function)
    def guarded(source: _Source, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        with reading(source.name):
            return function(source, *args, **kwargs)

    return guarded
