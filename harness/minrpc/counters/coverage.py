# SPDX-License-Identifier: Apache-2.0
"""Lines of C that were executed, from the plugin's counts: nothing is added to the image that runs.

The format is lcov's (geninfo(1)): `genhtml`, and tools that show coverage in reviews, read it. There, a line
that was perhaps executed has no execution, and a branch that was perhaps evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from operator import add
from pathlib import Path

from minrpc.counters.image import Image, LoadedCode
from minrpc.host.files import change_whole, unwritable
from minrpc.program import CodeRange
from minrpc.program.lines import Line

Count = int | None
"""Number of executions; None for code that was perhaps executed."""
Lines = dict[str, dict[int, Count]]
"""Number of executions of each line with code, by file."""


def covered_lines(
    image: Image,
    executed: Sequence[tuple[LoadedCode | None, Mapping[int, Count]]],
    source: Callable[[str], Path | None],
) -> Lines:
    """Lines with code, each with the executions of its most executed instruction.

    A line in the code of several functions, as of a header's inline functions, has the sum of theirs.

    executed: counts of the image (None) and of each loaded code, by the instruction's address.
    source: gives the path of a file named by the debug information; None for a file to leave out.
    """
    find = cache(source)
    lines: Lines = {}
    for code, counts in executed:
        most: dict[tuple[Line, str], Count] = {}
        for line, function, count in _counted(code or image, counts):
            most[line, function] = _joined(max, most.get((line, function), 0), count)
        for (line, _), count in most.items():
            path = find(line.file)
            if path is not None and path.is_file():
                numbers = lines.setdefault(str(path), {})
                numbers[line.number] = _joined(add, numbers.get(line.number, 0), count)
    return lines


def _joined(join: Callable[[int, int], int], *both: Count) -> Count:
    first, second = (count or 0 for count in both)
    return join(first, second) or (None if None in both else 0)


def _counted(code: Image | LoadedCode, counts: Mapping[int, Count]) -> Iterator[tuple[Line, str, Count]]:
    """Lines, their functions and executions: where each line begins, and at its other addresses.

    Several lines may begin at one address, as a function's first line and its body do.
    """
    for address, line in code.program.lines.starts:
        function = code.function_at(address)
        if isinstance(code, LoadedCode) or function is not None:
            yield line, _whole(code, function), counts.get(address, 0)
    for address, count in counts.items():
        source_line = code.program.lines.at(address)
        if source_line is not None:
            yield source_line, _whole(code, code.function_at(address)), count


def _whole(code: Image | LoadedCode, function: CodeRange | None) -> str:
    """The name of the function that the compiler has split: "f.part.0" and "f.cold" are parts of "f"."""
    return re.sub(r"\.(part|cold)(\.\d+)?$", "", code.program.name_of(function)) if function else ""


def lcov(lines: Mapping[str, Mapping[int, Count]]) -> str:
    """The lines as the text of lcov's file."""
    text = []
    for path, numbers in sorted(lines.items()):
        text += ["TN:", f"SF:{path}"]
        perhaps = sorted(number for number, count in numbers.items() if count is None)
        text += [f"BRDA:{number},0,0,-" for number in perhaps]
        text += [f"BRF:{len(perhaps)}", "BRH:0"] if perhaps else []
        text += [f"DA:{number},{count or 0}" for number, count in sorted(numbers.items())]
        text += [f"LF:{len(numbers)}", f"LH:{sum(bool(count) for count in numbers.values())}"]
        text.append("end_of_record")
    return "\n".join([*text, ""])


def parse(text: str) -> Lines:
    """The lines from the text of a file; records that `lcov` does not write are skipped."""
    lines: Lines = {}
    numbers: dict[int, Count] = {}
    for row in text.splitlines():
        kind, _, rest = row.partition(":")
        if kind == "SF":
            numbers = lines.setdefault(rest, {})
        elif kind == "DA":
            number, count = map(int, rest.split(",")[:2])
            before = numbers.get(number, 0)
            numbers[number] = (before or 0) + count or before
        elif kind == "BRDA":
            number = int(rest.partition(",")[0])
            numbers[number] = numbers.get(number) or None
    return lines


def add_coverage(file: Path, lines: Lines) -> None:
    """Add the lines to those in `file`, safely against other processes that add to it.

    Raises ConfigurationError, which names the file.
    """

    def added(text: str | None) -> str:
        # Records of one file add up when they are read.
        return lcov(parse((text or "") + lcov(lines)))

    try:
        change_whole(file, added)
    except OSError as error:
        raise unwritable(file, error) from error
