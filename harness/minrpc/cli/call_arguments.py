# SPDX-License-Identifier: Apache-2.0
"""Parses a function's arguments: "float32[1024]" is an array, "3" and "0.5" are numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from minrpc.errors import ConfigurationError
from minrpc.wire.dtypes import to_dtype, to_numpy

# Number of arrays of one shape that the built-in functions take.
ARRAYS: Final = MappingProxyType({"add": 3, "mul": 3, "exp": 2, "myexpf": 2})
DEFAULT_SHAPE: Final = "1024"
DEFAULT_DTYPE: Final = "float32"
_SEED: Final = 12345
_DIGITS: Final = 8


@dataclass(frozen=True, slots=True)
class Array:
    """An array argument: its type as TVM writes it, and its shape."""

    dtype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"

    def host(self, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Its elements: small numbers, also negative if the type has a sign.

        Raises ConfigurationError if this machine has too little memory.
        """
        try:
            return self._elements(rng)
        except (MemoryError, ValueError) as error:  # NumPy's ValueError: too many elements to number
            raise ConfigurationError(
                f"--arg {self} does not fit into this machine's memory", next_step="give a smaller shape"
            ) from error

    def _elements(self, rng: np.random.Generator) -> npt.NDArray[Any]:
        kind = to_numpy(to_dtype(self.dtype))[0]
        if kind.kind == "f":
            return rng.uniform(-1, 1, self.shape).astype(kind)
        return rng.integers(0 if kind.kind == "u" else -4, 5, self.shape).astype(kind)


@dataclass(frozen=True, slots=True)
class ArrayFile(Array):
    """An array argument with the elements of a file of numpy's.

    digest: of the elements: calls with other elements are other calls.
    """

    path: Path
    digest: str

    def __str__(self) -> str:
        return f"{Array.__str__(self)} #{self.digest}"

    def _elements(self, rng: np.random.Generator) -> npt.NDArray[Any]:
        return np.ascontiguousarray(_loaded(self.path))


CallArgument = Array | int | float


def parse_argument(text: str) -> CallArgument:
    """The argument of a text. Raises ConfigurationError if it is neither an array nor a number."""
    if text.endswith(".npy"):
        values = _loaded(Path(text))
        digest = sha256(values.tobytes()).hexdigest()[:_DIGITS]
        return ArrayFile(_dtype(values.dtype.name), values.shape, Path(text), digest)
    array = re.fullmatch(r"\s*([a-z]+\d*)\s*\[([\d,\sx]*)\]\s*", text)
    if array:
        return Array(_dtype(array[1]), parse_shape(array[2]))
    for number in (int, lambda word: int(word, 0), float):
        try:
            return _fitting(number(text), text)
        except ValueError:
            continue
    step = "write float32[1024], 3, 0x1f, 0.5 or data.npy"
    raise ConfigurationError(f"--arg {text}: neither an array nor a number", next_step=step)


def _loaded(path: Path) -> npt.NDArray[Any]:
    """The file's array. Raises ConfigurationError."""
    try:
        values = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        said = getattr(error, "strerror", None) or "it has no whole array of numbers"
        raise ConfigurationError(
            f"--arg {path} can't be read: {said}", next_step="write the file by numpy.save"
        ) from error
    return np.asarray(values)


def _fitting(value: int | float, text: str) -> int | float:
    """A number that a call can pass: integers have 64 bits, with or without a sign."""
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        step = "integers are of 64 bits; write 1e21 for a float"
        raise ConfigurationError(f"--arg {text} does not fit into an integer", next_step=step)
    return value


def parse_shape(text: str) -> tuple[int, ...]:
    """ "16,64" or "16x64". Raises ConfigurationError."""
    sizes = [size.strip() for size in re.split("[,x]", text)]
    if not all(size.isdigit() for size in sizes):
        raise ConfigurationError(
            f"{text!r} is no shape", next_step="write sizes with commas between them: 16,64"
        )
    return tuple(int(size) for size in sizes)


def call_arguments(
    function: str, given: Sequence[str], shape: str | None, dtype: str | None
) -> list[CallArgument]:
    """The arguments of `function`: each given by itself, or arrays of one shape for a built-in function.

    Another function without arguments is called without any; the call raises if it needs some.
    Raises ConfigurationError for arguments that can't be parsed.
    """
    if given:
        if shape is not None or dtype is not None:
            raise ConfigurationError(
                "--arg gives the shape and the type already", next_step="leave --shape and --dtype out"
            )
        return [parse_argument(text) for text in given]
    if function not in ARRAYS and shape is None and dtype is None:
        return []
    if function not in ARRAYS:
        raise ConfigurationError(
            f"the arguments of {function} are not known here",
            next_step="give each argument with --arg, such as --arg 'float32[1024]' --arg 3",
        )
    item = Array(
        _dtype(DEFAULT_DTYPE if dtype is None else dtype),
        parse_shape(DEFAULT_SHAPE if shape is None else shape),
    )
    return [item] * ARRAYS[function]


def to_host(arguments: Sequence[CallArgument]) -> list[npt.NDArray[Any] | int | float]:
    """The arguments as arrays and numbers; arrays have the same elements each time."""
    rng = np.random.default_rng(_SEED)
    return [argument.host(rng) if isinstance(argument, Array) else argument for argument in arguments]


def _dtype(text: str) -> str:
    try:
        dtype = to_dtype(text)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{text} is no type: {error}", next_step="write int8 or float32") from error
    if to_numpy(dtype)[0].kind not in "biuf":
        step = "write int8 or float32"
        raise ConfigurationError(f"{text} is no type that numbers can be made of here", next_step=step)
    return str(dtype)
