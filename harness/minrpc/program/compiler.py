# SPDX-License-Identifier: Apache-2.0
"""The compiler and flags of a program, from its ELF file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from elftools.dwarf.compileunit import CompileUnit

from minrpc.program.elf import Elf
from minrpc.program.program import Program, read_program
from minrpc.program.reader_errors import reads

# Flags to omit, since they contain the sources' paths.
_PLACES = re.compile(r"^-(?:ffile-prefix-map|fmacro-prefix-map|fdebug-prefix-map|imacros|I|include)")
# Machines with an FPU, unless flags disable it.
_WITH_FPU = ("EM_386", "EM_X86_64", "EM_AARCH64")
_NO_FPU = ("-msoft-float", "-mno-80387", "-mgeneral-regs-only")


class Compiler(NamedTuple):
    """name: with its version, "GNU C11 12.2.1". flags: the flags that affect the code. "" if unknown."""

    name: str
    flags: str


@reads
def compiler_of(elf: Path, source: str = "operators.c") -> Compiler:
    """The compiler of `source`, the system library; of most of the program if that source is not in it.

    DW_AT_producer of the compilation units gives it, else the section .comment, which has no flags.
    """
    program = read_program(elf)
    producers = _producers_of(program)
    fallback = (program.elf.section(".comment") or b"").split(b"\0")[0].decode()
    own = [producer for name, producer in producers if name.endswith(f"/{source}")]
    counted = Counter(own or [producer for _, producer in producers])
    return split_producer(counted.most_common(1)[0][0]) if counted else Compiler(fallback, "")


@reads
def compiler_of_object(elf: Elf) -> Compiler:
    """The compiler of an object. If flags give several optimization levels, the last counts."""
    from minrpc.program.debug_info import object_units

    _, producer = next(_producers(object_units(elf)), ("", ""))
    compiler = split_producer(producer)
    flags = compiler.flags.split()
    levels = [place for place, flag in enumerate(flags) if flag.startswith("-O")]
    kept = [flag for place, flag in enumerate(flags) if place not in levels[:-1]]
    return Compiler(compiler.name, " ".join(dict.fromkeys(kept)))


def floating_point(elf: Path) -> str:
    """The unit that computes floating point: "software", "FPU", "FPU, single precision"; "" if unknown.

    The linker's attributes give it on ARM and RISC-V, else the compiler's flags.
    """
    program = read_program(elf)
    if program.machine == "EM_ARM":
        noted = attributes_of(program, ".ARM.attributes")
        return _of_width(bool(noted.get("TAG_FP_ARCH")), noted.get("TAG_ABI_HARDFP_USE") != 1)
    if program.machine == "EM_RISCV":
        extensions = str(attributes_of(program, ".riscv.attributes").get("TAG_ARCH", "")).split("_")
        return _of_width(_has(extensions, "f"), _has(extensions, "d"))
    if program.machine not in _WITH_FPU:
        return ""
    flags = compiler_of(elf).flags.split()
    return _of_width(not any(flag in _NO_FPU for flag in flags), True)


def _of_width(has_fpu: bool, has_double: bool) -> str:
    return ("FPU" if has_double else "FPU, single precision") if has_fpu else "software"


def _has(extensions: Sequence[str], letter: str) -> bool:
    """True if a RISC-V program uses the extension `letter`: "rv32i2p1_f2p2" has f."""
    return any(re.fullmatch(rf"{letter}\d+p\d+", extension) for extension in extensions)


@reads
def attributes_of(program: Program, name: str) -> dict[str, object]:
    """The program's attributes by tag, from section `name`: ".ARM.attributes", ".riscv.attributes"."""
    section: Any = program.file.get_section_by_name(name)
    if section is None:
        return {}
    return {
        attribute.tag: attribute.value
        # pyelftools reads a part of no length for ever.
        for part in islice(section.iter_subsections(), section.data_size)
        for whole in islice(part.iter_subsubsections(), section.data_size)
        for attribute in whole.iter_attributes()
    }


def split_producer(producer: str) -> Compiler:
    """Splits a producer text of GCC or clang: name, then flags."""
    words = producer.split()
    first = next((index for index, word in enumerate(words) if word.startswith("-")), len(words))
    flags = [word for word in words[first:] if not _PLACES.match(word)]
    return Compiler(" ".join(words[:first]), " ".join(flags))


@lru_cache(maxsize=8)
def _producers_of(program: Program) -> tuple[tuple[str, str], ...]:
    """All units' names and producers, kept: reading them takes a fifth of a second."""
    return tuple(_producers(program.units()))


def _producers(units: Iterable[CompileUnit]) -> Iterator[tuple[str, str]]:
    for unit in units:
        attributes = unit.get_top_DIE().attributes
        if "DW_AT_producer" in attributes and "DW_AT_name" in attributes:
            name, producer = (attributes[key].value.decode() for key in ("DW_AT_name", "DW_AT_producer"))
            yield name, producer
