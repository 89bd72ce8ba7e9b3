# SPDX-License-Identifier: Apache-2.0
"""Which lines of C were executed, from the plugin's counts: nothing is added to the image that runs.

As lcov's files have it (geninfo(1)): `genhtml`, and what shows coverage in reviews, read them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from minrpc.counters.image import Image
from minrpc.counters.lines import LineTable
from minrpc.counters.qemu_counters import Counts
from minrpc.host.files import change_whole

Lines = dict[str, dict[int, int]]
"""How often each line was executed that has code, by file."""


def covered_lines(image: Image, counts: Counts, source: Callable[[str], Path]) -> Lines:
    """Lines of the sources that are here, each as often as the instruction of it that was executed most.

    source: where the file is that the debug information calls so.
    """
    paths: dict[str, str] = {}
    lines: Lines = {}
    for address, line in LineTable(image.path).starts.items():
        if image.function_at(address) is None:
            continue
        if line.file not in paths:
            path = source(line.file)
            paths[line.file] = str(path) if path.is_file() else ""
        if paths[line.file]:
            numbers = lines.setdefault(paths[line.file], {})
            executed = counts.by_address.get(address, 0)
            numbers[line.number] = max(numbers.get(line.number, 0), executed)
    return lines


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
