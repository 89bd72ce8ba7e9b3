# SPDX-License-Identifier: Apache-2.0
"""What changed between two results, so that growth is seen in review."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from minrpc.reports.markdown import table

from minrpc_bench.rows import Report, Row, SourceSize
from minrpc_bench.table import number


def comparison(base: Report, head: Report) -> str:
    """Two Markdown tables: rows, and sources that changed in size or stack.

    Of a row with a baseline the ratios are compared, because the runs may be of two machines.
    """
    tables = [_rows(base.rows, head.rows)]
    if base.sizes and head.sizes:
        tables.append(_sizes(base.sizes, head.sizes))
    return "\n\n".join(tables)


def _rows(base: Sequence[Row], head: Sequence[Row]) -> str:
    before = {row.key: row for row in base}
    lines = [_row_line(before.get(row.key), row) for row in head]
    gone = [row for row in base if row.key not in {row.key for row in head}]
    lines += [(*_name(row), number(_compared(row)), "not measured", "") for row in gone]
    return table(("what", "platform", "unit", "before", "now", "change"), lines, right=frozenset({3, 4, 5}))


def _row_line(before: Row | None, now: Row) -> tuple[str, ...]:
    old = None if before is None else _compared(before)
    return (*_name(now), number(old), number(_compared(now)), _change(old, _compared(now)))


def _name(row: Row) -> tuple[str, str, str]:
    unit = row.unit if row.ratio is None else "ratio to baseline"
    return f"{row.group}: {row.name}", row.platform, unit


def _compared(row: Row) -> float:
    return row.value if row.ratio is None else row.ratio


def _change(old: float | None, new: float) -> str:
    if old is None:
        return "new"
    return f"{(new - old) / old:+.1%}" if old else f"{new - old:+g}"


def _sizes(base: Sequence[SourceSize], head: Sequence[SourceSize]) -> str:
    before, now = _by_file(base), _by_file(head)
    lines = [
        line for name in sorted(before | now) for line in _source_lines(name, before.get(name), now.get(name))
    ]
    lines.append(_delta("all", "text", _total(base), _total(head)))
    return table(("file", "bytes of", "before", "now", "change"), lines, right=frozenset({2, 3, 4}))


def _by_file(sizes: Sequence[SourceSize]) -> dict[str, SourceSize]:
    return {size.file: size for size in sizes}


def _total(sizes: Sequence[SourceSize]) -> int:
    return sum(size.text for size in sizes)


def _source_lines(name: str, before: SourceSize | None, now: SourceSize | None) -> Iterable[tuple[str, ...]]:
    """A line for each number that changed."""
    for field in ("text", "data", "bss", "stack"):
        old, new = getattr(before, field, 0), getattr(now, field, 0)
        if old != new:
            yield _delta(name, field, old, new)


def _delta(name: str, field: str, old: int, new: int) -> tuple[str, ...]:
    return name, field, str(old), str(new), f"{new - old:+d}"
