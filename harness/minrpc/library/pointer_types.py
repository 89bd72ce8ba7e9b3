# SPDX-License-Identifier: Apache-2.0
"""Checks that a value given for a pointer has the type that the pointer points to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from minrpc.client.array import RemoteArray
from minrpc.library.scalars import Address, describe, wrong
from minrpc.program.c_types import (
    ArrayType,
    CType,
    Enumeration,
    FunctionType,
    Pointer,
    RecordType,
    Scalar,
    Void,
    declaration,
    numpy_dtype,
    same_type,
    strip,
)
from minrpc.wire.dtypes import to_numpy

Callback: TypeAlias = Callable[[CType, Callable[..., object]], Address]
"""Gives the address of a function in C, of a function type, that calls a function in Python."""


@runtime_checkable
class InMemory(Protocol):
    """Protocol: an object with an address on the device, a function or a variable of a library."""

    @property
    def address(self) -> int:
        """The address; a function's as a C function pointer."""
        ...

    @property
    def pointee(self) -> CType:
        """The type of the object."""
        ...


def device_address(
    where: str, ctype: CType, pointer: Pointer, value: object, callback: Callback | None
) -> int | None:
    """The address of a value on the device, or of a function in C that calls the function in Python; None for
    another value of the host. Raises TypeError, ValueError."""
    if value is None:
        return 0
    if isinstance(value, RemoteArray):
        return array_address(where, ctype, pointer, value)
    if isinstance(value, Address):
        check_address(where, ctype, pointer, value)
        return int(value)
    if isinstance(value, InMemory) and isinstance(value.address, int):  # A mock has all attributes.
        check_pointee(where, ctype, pointer, value)
        return value.address
    if callback is not None and callable(value) and isinstance(strip(pointer.target), FunctionType):
        return int(callback(pointer.target, value))
    return None


def check_dtype(where: str, ctype: CType, pointer: Pointer, value: np.ndarray[Any, Any]) -> None:
    """Raise TypeError if an array's elements differ from the pointer's target type."""
    target = strip(pointer.target)
    if isinstance(target, Void):
        return
    shape: tuple[int | None, ...] = ()
    while isinstance(target, ArrayType):
        shape += (target.count,)
        target = strip(target.element)
    if isinstance(target, RecordType) and not target.complete:
        raise TypeError(f"{where}: {declaration(ctype)} is a pointer to an incomplete struct")
    if isinstance(target, Scalar) and target.kind == "char" and value.dtype in (np.int8, np.uint8):
        return
    try:
        expected = numpy_dtype(target)
    except TypeError as error:
        raise wrong(where, ctype, value, str(error)) from None
    fits = value.dtype == expected or (
        isinstance(target, Pointer | Enumeration)
        and value.dtype.kind in "iu"
        and value.dtype.newbyteorder("<") == value.dtype
        and value.itemsize == expected.itemsize
    )
    if not fits or not _ends_in(value.shape, shape):
        shown = expected.name
        if isinstance(target, RecordType):
            shown = f"an array of {declaration(target)}, by its dtype"
        elif shape:
            shown += f"[..,{','.join('..' if count is None else str(count) for count in shape)}]"
        raise TypeError(f"{where}: expected {shown} ({declaration(ctype)}), got {describe(value)}")
    require_bools(where, ctype, value)


def require_bools(where: str, ctype: CType, value: np.ndarray[Any, Any]) -> None:
    """Raise ValueError for a bool, also in a structured array, whose byte is neither 0 nor 1."""
    for name in value.dtype.names or ():
        require_bools(f"{where}: {name}", ctype, value[name])
    if value.dtype == np.bool_ and (most := value.view(np.uint8).max(initial=0)) > 1:
        raise ValueError(f"{where}: expected {declaration(ctype)}, got a byte {most}: a bool is 0 or 1")


def _ends_in(shape: tuple[int, ...], end: tuple[int | None, ...]) -> bool:
    """True if the last dimensions are `end`; None stands for any, as in an array sized by a parameter."""
    if len(shape) < len(end):
        return False
    last = shape[len(shape) - len(end) :]
    return all(due is None or size == due for size, due in zip(last, end, strict=True))


def array_address(where: str, ctype: CType, pointer: Pointer, value: RemoteArray) -> int:
    """Address of an array of the device. Raises TypeError if the pointer is to another type."""
    target = strip(pointer.target)
    while isinstance(target, ArrayType):
        target = strip(target.element)
    held = to_numpy(value.dtype)[0]
    fits = isinstance(target, Void) or held == numpy_dtype(target)
    if isinstance(target, Scalar) and target.kind == "char":
        fits = held in (np.int8, np.uint8)
    if isinstance(target, RecordType):  # Plain numbers on the device: only the caller knows their meaning.
        fits = value.dtype.itemsize <= 8 and held.kind in "iu"
        if fits and value.nbytes < target.size:
            raise TypeError(
                f"{where}: {declaration(ctype)} is a pointer to {target.size} bytes, "
                f"{value!r} has {value.nbytes}"
            )
    if not fits:
        raise TypeError(f"{where}: expected {declaration(ctype)}, got {value!r}")
    return value.address


def check_pointee(where: str, ctype: CType, pointer: Pointer, value: InMemory) -> None:
    """Raise TypeError if a function or variable differs from the pointer's target type."""
    given = strip(value.pointee)
    if isinstance(given, ArrayType) and not isinstance(strip(pointer.target), ArrayType):
        given = given.element
    if not _points_to(pointer.target, given):
        raise TypeError(
            f"{where}: expected {declaration(ctype)}, got {declaration(value.pointee, str(value))}"
            f"{_of_files(pointer.target, given)}"
        )


def check_address(where: str, ctype: CType, pointer: Pointer, value: Address) -> None:
    """Raise TypeError if an address is of another type than the pointer's target, ValueError if it is no
    address of the device."""
    require_fits(where, pointer.size, value)
    given = strip(value.ctype)
    assert isinstance(given, Pointer)
    if not isinstance(strip(given.target), Void) and not _points_to(pointer.target, given.target):
        raise TypeError(
            f"{where}: expected {declaration(ctype)}, got {value!r}{_of_files(pointer.target, given.target)}"
        )


def _of_files(target: CType, given: CType) -> str:
    """Names the files of two structs of one name: ": a.c:pt is not b.c:pt"."""
    one, two = strip(target), strip(given)
    if isinstance(one, RecordType) and isinstance(two, RecordType) and one.names == two.names and one.file:
        return f": {one.shown} is not {two.shown}"
    return ""


def require_fits(where: str, pointer_size: int, address: int, size: int = 0) -> None:
    """Raise ValueError unless pointers of `pointer_size` bytes reach the `size` bytes at the address."""
    if not 0 <= address <= (1 << 8 * pointer_size) - max(size, 1):
        shown = f"{size:,} bytes at {address:#x}: " if size else f"{address:#x}: "
        raise ValueError(f"{where}: {shown}an address of the device has {8 * pointer_size} bits")


def _points_to(target: CType, given: CType) -> bool:
    """True if a pointer to `target` may point to an object of the type `given`."""
    match strip(target), strip(given):
        case Void(), _:
            return True
        case FunctionType() as one, FunctionType() as two if len(one.used) == len(two.used):
            # A pointer to void stands for any, as in a comparison for qsort.
            return all(_is_passed_as(a, b) for a, b in zip(one.used, two.used, strict=True))
        case Scalar(_, 1, "char"), Scalar(_, 1, "char" | "int" | "uint"):
            return True
        case Enumeration(_, size), Scalar(_, other, "int" | "uint") | Enumeration(_, other):
            return size == other
        case one, two:
            return same_type(one, two)


def _is_passed_as(first: CType, other: CType) -> bool:
    match strip(first), strip(other):
        case Pointer(one), Pointer(two) if Void() in (strip(one), strip(two)):
            return True
        case one, two:
            return same_type(one, two)
