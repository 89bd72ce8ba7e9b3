# SPDX-License-Identifier: Apache-2.0
"""A run as Markdown, fit for a job's summary: what matters open, the rest folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from minrpc.publish import tables
from minrpc.publish.run import Run
from minrpc.publish.tables import Table
from minrpc.reports.markdown import table


def markdown_page(run: Run) -> str:
    """The page."""
    return "\n\n".join(_parts(run)) + "\n"


def headline(run: Run) -> str:
    """How it went, in a line."""
    if not run.tests:
        return run.title
    counted = {
        name: sum(one.outcome == name for one in run.tests) for name in ("failed", "passed", "skipped")
    }
    return f"{run.title}: " + ", ".join(f"{number} {name}" for name, number in counted.items() if number)


def _parts(run: Run) -> Iterator[str]:
    yield f"### {headline(run)}"
    if run.records:
        yield _shown(tables.measurements(run))
    failed = [one for one in run.tests if one.outcome == "failed"]
    if failed:
        yield _shown(tables.tests(Run(run.title, tests=failed)))
    if run.records:
        yield _folded(tables.statistics(run))
        if tables.counters(run).rows:
            yield _folded(tables.counters(run))
    for part in run.platforms:
        for profile in part.profiles:
            for one in tables.profile_tables(part, profile):
                yield _folded(tables.first(one))
        if part.flash or part.ram:
            yield _folded(tables.components(part))
    if run.tests:
        yield _folded(tables.tests(run))
    if run.platforms:
        yield _folded(tables.facts(run))
    if run.about:
        yield _folded(tables.about(run))


def _shown(one: Table) -> str:
    return table([_cell(cell) for cell in one.head], [_cells(row) for row in one.rows], right=set(one.right))


def _folded(one: Table) -> str:
    # GitHub reads Markdown in an element only behind an empty line.
    return f"<details><summary>{escape(one.title)}</summary>\n\n{_shown(one)}\n\n</details>"


def _cells(row: Sequence[str]) -> list[str]:
    return [_cell(cell) for cell in row]


def _cell(text: str) -> str:
    """What a table's line can hold."""
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
