# SPDX-License-Identifier: Apache-2.0
"""Finds a packed function's code: from its name in a table of the image to its C function.

A table's entry is `struct minrpc_function` (zephyr-app/runtime/include/minrpc/function.h): three pointers, to
the name, to the letters of its arguments, and to the function.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from minrpc.counters.image import Image
from minrpc.program import CodeRange

# Index of the function's address in an entry, in pointers.
_RUN: Final = 2
# The symbol of a linked-in library's thunk, before the packed function's name: see library/thunks.py.
_THUNK: Final = "minrpc_t."


def packed_function_code(image: Image, name: str) -> CodeRange | None:
    """The C function of the image's packed function `name`; None if unknown.

    Functions of TVM's registries, whose tables hold no names, are found by a symbol of the same name, those
    of linked-in libraries by their thunk's: it is the function that the thunk calls, if C can name it.
    """
    file = image.program.elf
    sections = file.loaded()
    word = file.bits // 8
    order: Literal["little", "big"] = "little" if file.little_endian else "big"
    for address in _addresses(sections, name.encode() + b"\0"):
        pointer = address.to_bytes(word, order)
        for place, data in sections:
            for at in _places(data, pointer):
                begin = at + _RUN * word
                if (place + at) % word == 0 and begin + word <= len(data):
                    run = int.from_bytes(data[begin : begin + word], order)
                    code = image.function_at(run & ~file.machine_bit)
                    if code is not None:
                        return code
    names = (name, f"{_THUNK}{name}")
    found = next((function for function in image.functions if function.name in names), None)
    if found is not None and found.name != name:
        behind = image.program.symbols.addresses.get(name.partition(".")[2])
        own = None if behind is None else image.function_at(behind & ~file.machine_bit)
        return own or found
    return found


def _addresses(sections: list[tuple[int, bytes]], text: bytes) -> Iterator[int]:
    """Addresses of the text; the linker may have merged it with the end of another."""
    return (place + at for place, data in sections for at in _places(data, text))


def _places(data: bytes, wanted: bytes) -> Iterator[int]:
    at = data.find(wanted)
    while at >= 0:
        yield at
        at = data.find(wanted, at + 1)
