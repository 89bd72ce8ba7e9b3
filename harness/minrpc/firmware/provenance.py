# SPDX-License-Identifier: Apache-2.0
"""How a program was compiled, as its own debug information tells."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from elftools.elf.elffile import ELFFile

# What a flag must not say: where the sources were.
_PLACES = re.compile(r"^-(?:ffile-prefix-map|fmacro-prefix-map|fdebug-prefix-map|imacros|I|include)")


class Compiler(NamedTuple):
    """name: with its version, "GNU C11 12.2.1"; flags: those that decide the code. "" where not known."""

    name: str
    flags: str


def compiler_of(elf: Path, source: str = "operators.c") -> Compiler:
    """What compiled `source`, the system library; most of the program where that is not in it.

    From DW_AT_producer of the compilation units, else from the section .comment, which has no flags.
    """
    with elf.open("rb") as stream:
        file = ELFFile(stream)
        producers = list(_producers(file))
        comment = file.get_section_by_name(".comment")
        fallback = comment.data().split(b"\0")[0].decode() if comment else ""
    own = [producer for name, producer in producers if name.endswith(f"/{source}")]
    counted = Counter(own or [producer for _, producer in producers])
    return split_producer(counted.most_common(1)[0][0]) if counted else Compiler(fallback, "")


def split_producer(producer: str) -> Compiler:
    """GCC's and clang's way to name themselves: words, then flags."""
    words = producer.split()
    first = next((index for index, word in enumerate(words) if word.startswith("-")), len(words))
    flags = [word for word in words[first:] if not _PLACES.match(word)]
    return Compiler(" ".join(words[:first]), " ".join(flags))


def _producers(file: ELFFile) -> Iterator[tuple[str, str]]:
    if not file.has_dwarf_info():
        return
    for unit in file.get_dwarf_info().iter_CUs():
        attributes = unit.get_top_DIE().attributes
        if "DW_AT_producer" in attributes and "DW_AT_name" in attributes:
            name, producer = (attributes[key].value.decode() for key in ("DW_AT_name", "DW_AT_producer"))
            yield name, producer
