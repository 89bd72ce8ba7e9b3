# SPDX-License-Identifier: Apache-2.0
"""Markdown tables that are readable in a terminal and in a pull request."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence


def table(head: Sequence[str], lines: Iterable[Sequence[str]], right: Collection[int]) -> str:
    """A table with padded columns; those whose numbers are in `right` are flush right."""
    cells = [list(head), *(list(line) for line in lines)]
    widths = [max(3, *(len(line[column]) for line in cells)) for column in range(len(head))]
    rule = ["-" * (width - 1) + (":" if column in right else "-") for column, width in enumerate(widths)]
    return "\n".join(_line(line, widths, right) for line in (cells[0], rule, *cells[1:]))


def _line(line: Sequence[str], widths: Sequence[int], right: Collection[int]) -> str:
    padded = [
        cell.rjust(width) if column in right else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(line, widths, strict=True))
    ]
    return f"| {' | '.join(padded)} |"
