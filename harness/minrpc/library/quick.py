# SPDX-License-Identifier: Apache-2.0
"""Calls with only numbers and arrays of the device as arguments: they need no plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from minrpc.client.array import RemoteArray
from minrpc.client.rpc import RpcClient
from minrpc.library.pointer_types import array_address
from minrpc.library.scalars import is_float, is_number
from minrpc.program.c_types import (
    CType,
    FunctionDeclaration,
    Pointer,
    RecordType,
    Scalar,
    Void,
    strip,
    value_range,
)
from minrpc.wire.dtypes import DataType
from minrpc.wire.values import Argument


class _Converter(NamedTuple):
    """accepted: types of arrays that fit, as far as they are known. convert: takes any value."""

    accepted: set[DataType]
    convert: Callable[[object, RpcClient], Argument]


_LARGEST_FLOAT = 3.4e38


class _NotQuickError(Exception):
    """A value that needs a plan."""


def quick_call(
    function: FunctionDeclaration,
) -> Callable[[Sequence[object], RpcClient], list[Argument] | None] | None:
    """A converter from a call's arguments to the thunk's; it gives None for a call that needs a plan.

    None for a function whose calls always need a plan.
    """
    if function.unsupported or not has_plain_result(function.type.result):
        return None
    converts = [
        _converter(function.name, parameter.name, parameter.type) for parameter in function.type.parameters
    ]
    if not all(converts):
        return None
    made = [convert for convert in converts if convert is not None]

    def convert(args: Sequence[object], rpc: RpcClient) -> list[Argument] | None:
        if len(args) != len(made):
            return None
        sent: list[Argument] = []
        try:
            for (accepted, other), value in zip(made, args):  # noqa: B905 - as many: it was looked at
                if type(value) is RemoteArray and value.dtype in accepted and value.usable_on(rpc):
                    sent.append(value.pointer)
                else:
                    sent.append(other(value, rpc))
        except _NotQuickError:
            return None
        return sent

    return convert


def has_plain_result(ctype: CType) -> bool:
    """True if the caller gets the thunk's result unconverted."""
    stripped = strip(ctype)
    if isinstance(stripped, Void):
        return True
    if not isinstance(stripped, Scalar):
        return False
    return is_float(stripped) or stripped.size < {"int": 16, "uint": 8}.get(stripped.kind, 0)


def _converter(function: str, name: str, ctype: CType) -> _Converter | None:
    stripped = strip(ctype)
    if isinstance(stripped, Pointer):
        return _array_converter(f"{function}: {name}", ctype, stripped)
    if is_float(ctype):
        return _float_converter(stripped)
    limits = value_range(ctype) if is_number(ctype) else None
    return _int_converter(*limits) if limits is not None else None


def _int_converter(least: int, most: int) -> _Converter:
    most = min(most, (1 << 63) - 1)

    def convert(value: object, _rpc: RpcClient) -> Argument:
        if type(value) is int and least <= value <= most:
            return value
        raise _NotQuickError

    return _Converter(set(), convert)


def _float_converter(ctype: CType) -> _Converter:
    largest = largest_float(ctype)

    def convert(value: object, _rpc: RpcClient) -> Argument:
        if type(value) is float and largest and -largest <= value <= largest:
            return value
        raise _NotQuickError

    return _Converter(set(), convert)


def largest_float(ctype: CType) -> float:
    """The largest number whose rounding needs no check; 0 if all numbers need it, or the type is not a
    number."""
    if not isinstance(ctype, Scalar):
        return 0.0
    return {2: 0.0, 4: _LARGEST_FLOAT}.get(ctype.size, float("inf"))


def _array_converter(where: str, ctype: CType, pointer: Pointer) -> _Converter:
    accepted: set[DataType] = set()
    of_records = isinstance(strip(pointer.target), RecordType)

    def convert(value: object, rpc: RpcClient) -> Argument:
        if type(value) is not RemoteArray:
            raise _NotQuickError
        if value.dtype not in accepted:
            array_address(where, ctype, pointer, value)
            if not of_records:  # An array of numbers for a struct must be large enough, too.
                accepted.add(value.dtype)
        if not value.usable_on(rpc):
            value.check(rpc)
        return value.pointer

    return _Converter(accepted, convert)
