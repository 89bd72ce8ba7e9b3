# SPDX-License-Identifier: Apache-2.0
"""Keeps the layout of calls with numpy arrays: a loop over arrays of the same sizes plans only once.

The arrays are copied through memory that the device shares with this process (`CallMemory.run_again`).

Calls with other arguments, such as structs, text and overlapping arrays, are planned each time (`arguments`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from minrpc.library.arguments import CallPlan
from minrpc.library.frame import Block
from minrpc.library.quick import has_plain_result, largest_float
from minrpc.library.scalars import is_float, is_number
from minrpc.library.structs import take_back
from minrpc.program.c_types import (
    CType,
    FunctionDeclaration,
    Parameter,
    Pointer,
    Scalar,
    Void,
    is_const,
    numpy_dtype,
    strip,
    value_range,
)
from minrpc.wire.values import Argument, Handle

# Number of layouts kept for a function, and size of the largest in bytes: each keeps a copy of its frame.
_LAYOUTS: Final = 16
_LARGEST: Final = 1 << 20
_MOST: Final = (1 << 63) - 1
# Flags of an array, as bits of `ndarray.flags.num`: NPY_ARRAY_C_CONTIGUOUS, _OWNDATA, _WRITEABLE.
_CONTIGUOUS: Final = 0x0001
_OWNS: Final = 0x0004
_WRITEABLE: Final = 0x0400


@dataclass(slots=True)
class FrameLayout:
    """Offsets of a call's arrays and guards.

    template: the frame as it is sent, without the arrays' content.
    arrays: for each array, the number of its argument, its begin and its end in the frame.
    returned: the arrays that the function may write; a call must leave all other bytes unchanged.
    """

    template: bytes
    arrays: tuple[tuple[int, int, int], ...]
    returned: tuple[tuple[int, int, int], ...]
    # The arrays' addresses in the last call, with the numbers of their arguments.
    _base: int = field(default=-1, init=False)
    _handles: list[tuple[int, Handle]] = field(default_factory=list, init=False)

    def filled(self, args: Sequence[Any]) -> bytearray:
        """The frame with the arrays' bytes."""
        frame = bytearray(self.template)
        for index, begin, end in self.arrays:
            frame[begin:end] = args[index].tobytes()
        return frame

    def hand_back(self, sent: bytearray, returned: bytes, args: Sequence[Any]) -> bool:
        """Write the bytes that C changed into the arrays; False, and no array is written, if a guard or a
        constant came back changed.

        sent: the frame as `filled` made it; its content is used up.
        """
        changes = []
        for index, begin, end in self.returned:
            new = returned[begin:end]
            changes.append((args[index], new, sent[begin:end]))
            sent[begin:end] = new
        if sent != returned:
            return False
        for array, new, before in changes:
            take_back(array, new, before)
        return True

    def arguments(self, args: Sequence[Any], base: int) -> list[Argument]:
        """The thunk's arguments for a frame at `base`."""
        if base != self._base:
            self._handles = [(index, Handle(base + begin)) for index, begin, _ in self.arrays]
            self._base = base
        sent = list(args)
        for index, handle in self._handles:
            sent[index] = handle
        return sent


class Repeated:
    """The layouts of one function's calls, by the sizes of their guards and arrays in bytes."""

    def __init__(self, accepts: Sequence[_Accepts]) -> None:
        self._accepts = accepts
        self._layouts: dict[tuple[int, tuple[int, ...]], FrameLayout] = {}

    def layout(self, sizes: tuple[int, ...], guard: int, plan: Callable[[], CallPlan]) -> FrameLayout | None:
        """The layout of a call with arrays of these sizes; None if they are too large.

        guard: size of its guards, in bytes. plan: makes the call's plan, with such guards.
        """
        known = self._layouts.get((guard, sizes))
        if known is None:
            if sum(sizes) > _LARGEST:
                return None
            if len(self._layouts) >= _LAYOUTS:
                self._layouts.clear()
            known = self._layouts[guard, sizes] = _layout(plan())
        return known

    def sizes(self, args: Sequence[Any]) -> tuple[int, ...] | None:
        """The arrays' sizes in bytes; None if the call needs its own plan."""
        if len(args) != len(self._accepts):
            return None
        arrays: list[npt.NDArray[Any]] = []
        sizes: list[int] = []
        common = _OWNS
        for accepts, value in zip(self._accepts, args):  # noqa: B905 - as many, by the line above
            if value.__class__ is np.ndarray:
                flags, dtype, nbytes = value.flags.num, value.dtype, value.nbytes
                if not (
                    accepts.flags
                    and flags & accepts.flags == accepts.flags
                    and (dtype in accepts.dtypes if accepts.dtypes else not dtype.hasobject)
                    and nbytes
                    and not (accepts.bools and value.view(np.uint8).max() > 1)
                ):
                    return None
                arrays.append(value)
                sizes.append(nbytes)
                common &= flags
            elif value.__class__ is not accepts.number or not accepts.least <= value <= accepts.most:
                return None
        # Arrays that own their memory overlap only if one occurs twice.
        twice = len(set(map(id, arrays))) < len(arrays)
        if not arrays or twice or (not common and len(arrays) > 1 and _overlap(arrays)):
            return None
        return tuple(sizes)


def _overlap(arrays: Sequence[npt.NDArray[Any]]) -> bool:
    """True if two arrays have bytes in common; called only if needed, since numpy is slow to give
    addresses."""
    spans = sorted((array.ctypes.data, array.nbytes) for array in arrays)
    return any(begin + nbytes > behind for (begin, nbytes), (behind, _) in pairwise(spans))


@dataclass(frozen=True, slots=True)
class _Accepts:
    """Accepted values of a parameter: arrays of `dtypes` (of any type if empty), or numbers of one class.
    flags: an array must have all of them; 0 if the parameter takes no array.
    bools: True for arrays of bools, whose bytes are 0 or 1."""

    flags: int = 0
    dtypes: tuple[np.dtype[Any], ...] = ()
    bools: bool = False
    number: type[int] | type[float] | None = None
    least: float = 0
    most: float = 0


def repeated_calls(function: FunctionDeclaration) -> Repeated | None:
    """Layouts for a function of arrays and numbers; None for any other function."""
    if function.unsupported or not has_plain_result(function.type.result):
        return None
    accepts = [_accepts(parameter) for parameter in function.type.parameters]
    known = [accepted for accepted in accepts if accepted is not None]
    return Repeated(known) if len(known) == len(accepts) and any(item.flags for item in known) else None


def _accepts(parameter: Parameter) -> _Accepts | None:
    ctype = parameter.type
    stripped = strip(ctype)
    if isinstance(stripped, Pointer):
        return _accepts_array(stripped)
    if is_float(ctype):
        largest = largest_float(stripped)
        return _Accepts(number=float, least=-largest, most=largest) if largest else None
    limits = value_range(ctype) if is_number(ctype) else None
    return _Accepts(number=int, least=limits[0], most=min(limits[1], _MOST)) if limits else None


def _accepts_array(pointer: Pointer) -> _Accepts | None:
    flags = _CONTIGUOUS if is_const(pointer.target) else _CONTIGUOUS | _WRITEABLE
    target: CType = strip(pointer.target)
    if isinstance(target, Void):
        return _Accepts(flags)
    if not isinstance(target, Scalar) or target.kind in ("complex", "other"):
        return None
    if target.kind == "char":
        return _Accepts(flags, (np.dtype(np.int8), np.dtype(np.uint8)))
    try:
        return _Accepts(flags, (numpy_dtype(target),), bools=target.kind == "bool")
    except TypeError:
        return None


def _layout(plan: CallPlan) -> FrameLayout:
    frame = plan.frame
    template = bytearray(frame.size)
    for at, data in frame.image(0):
        template[at : at + len(data)] = data
    arrays = [
        (index, block.offset, block.offset + block.size, block.written)
        for index, block in enumerate(plan.sent)
        if isinstance(block, Block)
    ]
    returned = [(index, begin, end) for index, begin, end, written in arrays if written]
    return FrameLayout(
        bytes(template), tuple((index, begin, end) for index, begin, end, _ in arrays), tuple(returned)
    )
