# SPDX-License-Identifier: Apache-2.0
"""Lines of C that were executed, from the plugin's counts: nothing is added to the image that runs.

As lcov's files have it (geninfo(1)): `genhtml`, and what shows coverage in reviews, read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from minrpc.counters.image import Image, LoadedCode
from minrpc.host.files import change_whole
from minrpc.program.lines import Line

Lines = dict[str, dict[int, int]]
"""How often each line was executed that has code, by file."""


def covered_lines(
    image: Image,
    executed: Sequence[tuple[LoadedCode | None, Mapping[int, int]]],
    source: Callable[[str], Path | None],
) -> Lines:
    """Lines that have code, each as often as the instruction of it that was executed most.

    executed: of the image (None) and of each piece of code that was loaded, instructions by address.
    source: the file that the debug information calls so; None for a file that is not wanted.
    """
    find = cache(source)
    lines: Lines = {}
    for code, counts in executed:
        for line, count in _counted(code or image, counts):
            path = find(line.file)
            if path is not None and path.is_file():
                numbers = lines.setdefault(str(path), {})
                numbers[line.number] = max(numbers.get(line.number, 0), count)
    return lines


def _counted(code: Image | LoadedCode, counts: Mapping[int, int]) -> Iterator[tuple[Line, int]]:
    """Lines and executions: of the address where each line begins, and of all others that it has.

    Several lines may begin at one address, as a function's first line and its body do.
    """
    for address, line in code.program.lines.starts:
        if isinstance(code, LoadedCode) or code.function_at(address) is not None:
            yield line, counts.get(address, 0)
    for address, count in counts.items():
        found = code.program.lines.at(address)
        if found is not None:
            yield found, count


def lcov(lines: Mapping[str, Mapping[int, int]]) -> str:
    """As the text of a file."""
    text = []
    for path, numbers in sorted(lines.items()):
        text += ["TN:", f"SF:{path}"]
        text += [f"DA:{number},{count}" for number, count in sorted(numbers.items())]
        text += [f"LF:{len(numbers)}", f"LH:{sum(count > 0 for count in numbers.values())}"]
        text.append("end_of_record")
    return "\n".join([*text, ""])


def parse(text: str) -> Lines:
    """From the text of a file; what `lcov` does not write is skipped."""
    lines: Lines = {}
    numbers: dict[int, int] = {}
    for row in text.splitlines():
        kind, _, rest = row.partition(":")
        if kind == "SF":
            numbers = lines.setdefault(rest, {})
        elif kind == "DA":
            number, count = rest.split(",")[:2]
            numbers[int(number)] = numbers.get(int(number), 0) + int(count)
    return lines


def add_coverage(file: Path, lines: Lines) -> None:
    """Add to what is in `file`, whoever else does so now."""

    def added(text: str | None) -> str:
        # Records of one file add up when they are read.
        return lcov(parse((text or "") + lcov(lines)))

    change_whole(file, added)
