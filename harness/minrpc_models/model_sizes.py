# SPDX-License-Identifier: Apache-2.0
"""The size of a model's C library in a program that uses it, measured by the linker."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from minrpc.extension import Elf, scratch
from minrpc.library import Toolset, run_tool

# Unwinding tables: programs for these devices discard them for C code.
_UNWINDING: Final = (".eh_frame", ".ARM.ex")


class LinkedSizes(NamedTuple):
    """Sizes in bytes. code: functions and constants, which can stay in flash. data: variables, in RAM."""

    code: int
    data: int


def linked_sizes(objects: Sequence[Path], entries: Sequence[str], toolset: Toolset) -> LinkedSizes:
    """Sizes of the sections of `objects` that the linker keeps for a program that calls `entries`."""
    with scratch() as directory:
        whole = directory / "library.o"
        command = [toolset.program("ld"), *toolset.emulation, "-r", "--gc-sections", "-o", str(whole)]
        run_tool([*command, *(f"--undefined={entry}" for entry in entries), *map(str, objects)])
        return _sizes(whole)


def _sizes(path: Path) -> LinkedSizes:
    code = data = 0
    for section in Elf(path.read_bytes(), path.name).sections:
        if not section.allocated or section.name.startswith(_UNWINDING):
            continue
        if section.writable:
            data += section.size
        else:
            code += section.size
    return LinkedSizes(code, data)
