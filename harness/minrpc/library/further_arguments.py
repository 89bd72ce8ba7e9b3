# SPDX-License-Identifier: Apache-2.0
"""Further arguments of a variadic function that Python answers: a format, as printf's, has their types."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from minrpc.program.c_types import FunctionDeclaration, Pointer, Scalar, size_of, strip

_CONVERSION: Final = re.compile(
    r"%[-+ #0']*(?P<width>\*|\d*)(?:\.(?P<precision>\*|-?\d*))?"
    r"(?P<length>hh|h|ll|l|j|z|t|q|L)?(?P<kind>[diouxXcsaAeEfFgGpn%])"
)
_SIGNED: Final = frozenset("di")
_INTEGERS: Final = frozenset("diouxXc")
# The letter of the C type that an integer of this length is passed as; see `stubs`.
_PASSED_AS: Final = {"l": "l", "z": "l", "t": "l", "ll": "q", "j": "q", "q": "q"}
_NARROW: Final = {"hh": 1, "h": 2}


class Further(NamedTuple):
    """An argument that a conversion reads.

    passed: the type that C passes, a letter of `stubs`. size, signed: of an integer, size in bytes.
    text: True for a text. limit: most bytes of the text, -1 if the argument before it says.
    """

    passed: str
    size: int = 0
    signed: bool = False
    text: bool = False
    limit: int | None = None


def takes_format(declared: FunctionDeclaration) -> bool:
    """True if the last parameter can be a format of printf's. scanf's arguments are all pointers."""
    parameters = declared.type.parameters
    last = strip(parameters[-1].type) if parameters else None
    target = strip(last.target) if isinstance(last, Pointer) else None
    return isinstance(target, Scalar) and size_of(target) == 1 and "scan" not in declared.name


def further(form: str, long_size: int) -> Iterator[Further]:
    """The arguments that `form` reads, in their order. long_size: size of C's long, in bytes.

    Raises ValueError for a conversion that printf does not have.
    """
    at = form.find("%")
    while at >= 0:
        match = _CONVERSION.match(form, at)
        if match is None or (match["length"] == "l" and match["kind"] == "s"):
            raise ValueError(f"the conversion at {form[at : at + 8]!r} is none of printf's that can be read")
        yield from _of(match, long_size)
        at = form.find("%", match.end())


def _of(match: re.Match[str], long_size: int) -> Iterator[Further]:
    kind, length = match["kind"], match["length"] or ""
    for number in (match["width"], match["precision"]):
        if number == "*":
            yield Further("i", 4, signed=True)
    if kind in _INTEGERS:
        passed = _PASSED_AS.get(length, "i")
        size = _NARROW.get(length, {"i": 4, "l": long_size, "q": 8}[passed])
        if kind == "c" and not length:  # Converted to unsigned char (C17, 7.21.6.1p8).
            size = 1
        yield Further(passed, size, kind in _SIGNED)
    elif kind == "s":
        precision = match["precision"]
        limit = None if precision is None else -1 if precision == "*" else int(precision or 0)
        yield Further("p", text=True, limit=limit)
    elif kind in "pn":
        yield Further("p")
    elif kind != "%":
        yield Further("F" if length == "L" else "f")
