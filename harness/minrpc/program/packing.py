# SPDX-License-Identifier: Apache-2.0
"""Alignments of members that debug information does not tell: those of packed structs.

A packed struct may have the layout of another one, and on Arm it is still passed in other registers. The
compiler tells the alignments, in an object with a section of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from minrpc.program.c_types import (
    ArrayType,
    CType,
    Declarations,
    FunctionType,
    Pointer,
    RecordType,
    Typedef,
    alignment_of,
    declaration,
    strip,
)

SECTION: Final = ".minrpc_alignments"
"""The section of the compiled answer: a byte for each member, its alignment."""


class _Asked(NamedTuple):
    """A member whose alignment is not known. expression: it in C."""

    record: RecordType
    number: int
    expression: str


def ask_alignments(read: Declarations, source: str, word: int, answer: Callable[[str], bytes]) -> None:
    """Give members of structs by value their alignments, if they may be other ones than the type's own.

    read: the declarations of a C file. source: its path. word: the largest alignment that is passed like
    smaller ones, in bytes. answer: compiles a source, and gives the bytes of its section `SECTION`.
    """
    found: dict[tuple[int, int], _Asked] = {}
    tables = read.functions, read.declared, read.statics
    for ctype in _by_value(item.type for table in tables for item in table.values()):
        named = isinstance(ctype, Typedef) or (isinstance(ctype, RecordType) and ctype.tag)
        if named and alignment_of(ctype) > word:
            for asked in _members(ctype, f"(({declaration(ctype)} *)0)->"):
                found.setdefault((id(asked.record), asked.number), asked)
    if not found:
        return
    numbers = ", ".join(f"__alignof__({item.expression})" for item in found.values())
    place = f'__attribute__((used, section("{SECTION}")))'
    text = f'#include "{source}"\n{place} const unsigned char minrpc_alignments[] = {{{numbers}}};\n'
    for (record, number, _), alignment in zip(found.values(), answer(text), strict=True):
        fields = list(record.fields)
        fields[number] = replace(fields[number], alignment=alignment)
        record.fields = tuple(fields)


def _by_value(functions: Iterable[FunctionType]) -> Iterator[CType]:
    """The parameters and results of the functions, and of the functions that these point to."""
    waiting: list[CType] = list(functions)
    seen: set[int] = set()
    while waiting:
        ctype = strip(waiting.pop())
        match ctype:
            case FunctionType(result, parameters):
                used = [result, *(parameter.type for parameter in parameters)]
                yield from (each for each in used if isinstance(strip(each), RecordType))
                waiting += used
            case Pointer(inner) | ArrayType(inner):
                waiting.append(inner)
            case RecordType() as record if id(record) not in seen:
                seen.add(id(record))
                waiting += [field.type for field in record.fields]


def _members(ctype: CType, prefix: str) -> Iterator[_Asked]:
    record = strip(ctype)
    assert isinstance(record, RecordType)
    for number, field in enumerate(record.fields):
        if field.bits is None and field.name and not field.alignment:
            yield _Asked(record, number, prefix + field.name)
        if isinstance(strip(field.type), RecordType):
            yield from _members(field.type, f"{prefix}{field.name}." if field.name else prefix)
