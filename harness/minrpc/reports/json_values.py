# SPDX-License-Identifier: Apache-2.0
"""Values of JSON as dataclasses declare them: the first value of another type is an error with its keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from reprlib import repr as short_repr
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

_T = TypeVar("_T")
_Decoder = Callable[[Any], Any]

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_LARGEST: Final = 1e300
_PLAIN: Final[Mapping[object, tuple[str, Callable[[Any], bool]]]] = {
    int: ("a whole number from 0 to 2**64 - 1", lambda value: type(value) is int and 0 <= value < 1 << 64),
    float: ("a finite number", lambda value: type(value) in (int, float) and abs(value) < _LARGEST),
    str: ("a text", lambda value: isinstance(value, str) and not _SURROGATE.search(value)),
    bool: ("true or false", lambda value: isinstance(value, bool)),
}


class DecodingError(ValueError):
    """A value of another type. reason: the expected type. keys: the way to the value, the outermost first."""

    def __init__(self, reason: str, keys: tuple[str | int, ...] = ()) -> None:
        self.reason = reason
        self.keys = keys
        path = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
        super().__init__(f"{path.removeprefix('.')}: {reason}" if keys else reason)


def decoded(kind: type[_T], value: object) -> _T:
    """The parsed JSON value as `kind`, a dataclass of numbers, texts, sequences, mappings and dataclasses.

    Keys without a field are left out; a field with a default may be missing. Raises DecodingError; its reason
    is also that of a ValueError which a dataclass raises.
    """
    key: Any = kind
    made: _T = _decoder(key)(value)
    return made


@cache
def _decoder(kind: Any) -> _Decoder:  # noqa: ANN401 - a type
    if kind in _PLAIN:
        return _checked(*_PLAIN[kind])
    if is_dataclass(kind):
        return _object(kind)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return _checked(f"one of {', '.join(arguments)}", lambda value: value in arguments)
    if origin is UnionType:
        inner = _decoder(next(each for each in arguments if each is not NoneType))
        return lambda value: None if value is None else inner(value)
    if origin is Mapping:
        return _mapping(_decoder(arguments[1]))
    if origin is tuple and arguments[-1] is not ...:
        return _row([_decoder(each) for each in arguments])
    elements = _list(_decoder(arguments[0]))
    return (lambda value: tuple(elements(value))) if origin is tuple else elements


def _wrong(expected: str, value: object) -> DecodingError:
    return DecodingError(f"must be {expected}, not {'null' if value is None else short_repr(value)}")


def _checked(expected: str, fits: Callable[[Any], bool]) -> _Decoder:
    def decode(value: object) -> object:
        if not fits(value):
            raise _wrong(expected, value)
        return value

    return decode


def _each(items: Iterable[tuple[str | int, _Decoder, object]]) -> Iterator[Any]:
    """The decoded values of items (key, decoder, value)."""
    for key, decode, value in items:
        try:
            yield decode(value)
        except DecodingError as error:
            raise DecodingError(error.reason, (key, *error.keys)) from None


def _list(decode: _Decoder) -> _Decoder:
    whole = _checked("a list", lambda value: isinstance(value, list))
    return lambda value: list(_each((place, decode, each) for place, each in enumerate(whole(value))))


def _row(columns: list[_Decoder]) -> _Decoder:
    size = len(columns)
    whole = _checked(f"a list of {size}", lambda value: isinstance(value, list) and len(value) == size)
    return lambda value: tuple(_each(zip(range(size), columns, whole(value), strict=True)))


def _mapping(decode: _Decoder) -> _Decoder:
    whole = _checked("an object", lambda value: isinstance(value, dict))
    name = _decoder(str)

    def decode_all(value: object) -> dict[str, Any]:
        pairs = whole(value)
        return dict(zip(map(name, pairs), _each((key, decode, pairs[key]) for key in pairs), strict=True))

    return decode_all


def _object(kind: Any) -> _Decoder:  # noqa: ANN401 - a dataclass
    whole = _checked("an object", lambda value: isinstance(value, dict))
    types = get_type_hints(kind)
    decoders = {each.name: _decoder(types[each.name]) for each in fields(kind)}
    required = {each.name for each in fields(kind) if _is_required(each)}

    def decode(value: object) -> object:
        pairs = whole(value)
        names = [name for name in decoders if name in pairs]
        missing = required.difference(names)
        if missing:
            raise DecodingError(f"has no key {min(missing)}")
        values = _each((name, decoders[name], pairs[name]) for name in names)
        try:
            return kind(**dict(zip(names, values, strict=True)))
        except DecodingError:
            raise
        except ValueError as error:
            raise DecodingError(str(error)) from None

    return decode


def _is_required(each: Field[Any]) -> bool:
    return each.default is MISSING and each.default_factory is MISSING
