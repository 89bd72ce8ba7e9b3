# SPDX-License-Identifier: Apache-2.0
"""Reads `wire.txt`, the golden cases of the wire protocol; their format is described at its top."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).with_name("wire.txt")

_TOKEN = re.compile(
    r'_|"(?P<text>[^"]*)"|(?P<byte>[0-9a-f]{2})(?:\*(?P<times>\d+))?|(?P<any>\.\.)|(?P<rest>~)|\$(?P<name>[a-z])'
)


class Row(NamedTuple):
    """One case. fields: the fields after its name."""

    kind: str
    name: str
    fields: list[str]


def rows(kind: str) -> list[Row]:
    """All cases of that kind."""
    return [row for row in _all_rows() if row.kind == kind]


def _all_rows() -> Iterator[Row]:
    for line in TABLE.read_text("ascii").splitlines():
        if line and not line.startswith("#"):
            kind, name, *fields = line.split(" ")
            yield Row(kind, name, fields)


def _tokens(field: str) -> Iterator[re.Match[str]]:
    position = 0
    while position < len(field):
        match = _TOKEN.match(field, position)
        if match is None:
            raise ValueError(f"{field[position : position + 10]!r} is no part of BYTES")
        yield match
        position = match.end()


def to_bytes(field: str, names: dict[str, bytes] | None = None) -> bytes:
    """BYTES without placeholders except the placeholders in `names`."""
    result = b""
    for token in _tokens("" if field == "-" else field):
        if token["byte"]:
            result += bytes.fromhex(token["byte"]) * int(token["times"] or 1)
        elif token["text"]:
            result += token["text"].encode()
        elif token["name"]:
            result += (names or {})[token["name"]]
        elif token[0] != "_":
            raise ValueError(f"{token[0]!r} stands for no bytes")
    return result


def to_pattern(field: str, names: dict[str, bytes]) -> re.Pattern[bytes]:
    """A pattern for an answer: a name that is not in `names` is a group of 8 bytes."""
    result = b""
    for token in _tokens("" if field == "-" else field):
        if token["any"]:
            result += b"."
        elif token["rest"]:
            result += b".*"
        elif token["name"] and token["name"] not in names:
            result += b"(?P<" + token["name"].encode() + b">.{8})"
        else:
            result += re.escape(to_bytes(token[0], names))
    return re.compile(result, re.DOTALL)
