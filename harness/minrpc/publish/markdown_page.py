# SPDX-License-Identifier: Apache-2.0
"""A run as Markdown for a job's summary: results open, details folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from typing import Final

from minrpc.publish import tables
from minrpc.publish.differences import Differences, differences, folded, shown
from minrpc.publish.history import histories, history_table
from minrpc.publish.run_record import OUTCOMES, RunRecord
from minrpc.publish.tables import Cell, Long, Table
from minrpc.reports.markdown import table

_FAILURES: Final = 50
_LONGEST: Final = 2000
"""Largest number of characters of a failure: GitHub allows 1 MiB for a step."""


def markdown_page(run: RunRecord, base: RunRecord | None = None) -> str:
    """The page. base: an earlier run to compare with."""
    return "\n\n".join(_parts(run, base)) + "\n"


def headline(run: RunRecord) -> str:
    """The run's outcome in a line."""
    if not run.tests:
        return run.title
    counted = {name: sum(test.outcome == name for test in run.tests) for name in OUTCOMES}
    return f"{run.title}: " + ", ".join(f"{number} {name}" for name, number in counted.items() if number)


def _parts(run: RunRecord, base: RunRecord | None) -> Iterator[str]:
    yield f"### {headline(run)}"
    if base is not None:
        yield from _changed(differences(base, run))
    failures = tables.failures(run)
    if failures.rows:
        few, rest = tables.split(failures, _FAILURES)
        yield _shown(few)
        if rest.rows:
            yield _folded(rest)
        yield from _whole(few)
    if run.records:
        yield _shown(tables.measurements(run))
        past = histories(run.records)
        yield from (f"**History**\n\n{_shown(history_table(past))}" for _ in past[:1])
    yield from (_folded(item) for item in _looked_up(run) if item.rows)


def _changed(differences: Differences) -> Iterator[str]:
    """Differences from the base; the rows beyond the first are folded."""
    yield "\n\n".join(["#### Changes", *differences.sentences()])
    for item in shown(differences):
        few, rest = tables.split(item, _FAILURES)
        yield f"**{few.title}**\n\n{_shown(few)}"
        if rest.rows:
            yield _folded(rest)
    yield from map(_folded, folded(differences))


def _whole(failures: Table) -> Iterator[str]:
    """The whole text of each failure that has more than one line, folded."""
    for row in failures.rows:
        told = row[-1]
        if isinstance(told, Long) and told.whole:
            name = escape(str(row[0]), quote=False)
            text = escape(told.whole[:_LONGEST], quote=False)
            yield f"<details><summary>{name}</summary>\n\n<pre>\n{text}\n</pre>\n\n</details>"


def _looked_up(run: RunRecord) -> Iterator[Table]:
    """The folded tables, the user's own code first."""
    for part in run.platforms:
        for profile in part.profiles:
            for profile_table in tables.profile_tables(profile):
                title = f"{profile.call} on {part.platform}: {profile_table.title}"
                yield replace(tables.first(profile_table), title=title)
    yield tables.own_sizes(run)
    yield tables.own_compilers(run)
    yield tables.counters(run)
    yield tables.statistics(run)
    yield from tables.outcomes(run)
    yield tables.firmwares(run)
    yield from (tables.components(part) for part in run.platforms if part.flash or part.ram)
    yield from tables.facts(run)
    yield tables.about(run)


def _shown(item: Table) -> str:
    text = table(
        [_cell(cell) for cell in item.head], [_cells(row) for row in item.rows], right=set(item.right)
    )
    return "\n\n".join([text, *item.notes])


def _folded(item: Table) -> str:
    # GitHub reads Markdown in an element only after an empty line.
    return f"<details><summary>{escape(item.title)}</summary>\n\n{_shown(item)}\n\n</details>"


def _cells(row: Sequence[Cell]) -> list[str]:
    return [_cell(cell) for cell in row]


def _cell(cell: Cell) -> str:
    """The cell's text, escaped for a line of a table."""
    text = cell.text if isinstance(cell, Long) else cell
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
