# SPDX-License-Identifier: Apache-2.0
"""The instructions of C functions that were loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from minrpc.hardware.loads_stores import instructions
from minrpc.library.c_library import CFunction
from minrpc.program import CodeRange, Program
from minrpc.program.elf import Symbol


def texts_of(
    function: CFunction, functions: Iterable[str], instruction_set: str
) -> Iterator[tuple[int, str]]:
    """The instructions of the named functions of a library that was loaded: address and text; "" for one that
    is not interrupted."""
    image = getattr(function.library, "image", None)
    if image is None:
        return
    program, names = Program(function.library.name, image.program), set(functions)
    marks = [symbol for symbol in program.elf.symbols if symbol.name.startswith(("$d", "$t", "$x"))]
    marks.sort(key=lambda symbol: symbol.value)
    for item in program.functions:
        if item.name in names or program.name_of(item) in names:
            for start, code in _pieces(program, item, marks):
                yield from instructions(start, code, instruction_set)


def _pieces(program: Program, function: CodeRange, marks: Sequence[Symbol]) -> Iterator[tuple[int, bytes]]:
    """The function's machine code without its constants, as tables of jumps: address and bytes of each piece.

    marks: the program's mapping symbols by address. Source: Arm's ELF ABI (AAELF32).
    """
    inside = ((mark.value, mark.name.startswith("$d")) for mark in marks)
    bounds = [(at, is_data) for at, is_data in inside if function.start < at < function.end]
    start, is_data = function.start, False
    for end, begins_data in [*bounds, (function.end, True)]:
        if not is_data and start < end:
            yield start, _bytes(program, start, end)
        start, is_data = end, begins_data


def _bytes(program: Program, start: int, end: int) -> bytes:
    for address, content in program.contents:
        if address <= start and end <= address + len(content):
            return content[start - address : end - address]
    return b""
