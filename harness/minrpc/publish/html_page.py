# SPDX-License-Identifier: Apache-2.0
"""A run as one HTML file, which loads nothing: its content security policy forbids it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from typing import Final

from minrpc.publish import tables
from minrpc.publish.boxes import areas, flame
from minrpc.publish.differences import Differences, differences, folded, shown
from minrpc.publish.dots import dots
from minrpc.publish.history import histories, history_lines, history_table
from minrpc.publish.markdown_page import headline
from minrpc.publish.run_record import CallProfile, PlatformPart, RunRecord
from minrpc.publish.tables import Cell, Long, Table

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
# Characters after which a test's name may be wrapped.
_BREAKS: Final = re.compile(r"(::|/|\[(?=[^\[\]]*\]$))")
_FAILURES: Final = 20
_FUNCTIONS: Final = 12
_DRAWN: Final = 4
"""Smallest number of symbols for a picture beside the table."""
_CODE_PIXELS: Final = 120
_FIRMWARE_PIXELS: Final = 420
_SORTED: Final = 5
"""Smallest number of rows of a sortable table."""


_SEARCHED: Final = 30
"""Smallest number of rows of a table with a search."""


def html_page(run: RunRecord, when: str, base: RunRecord | None = None) -> str:
    """The page. when: time of its creation, for the last line. base: an earlier run to compare with."""
    changed = [("Changes", _changed(differences(base, run)))] if base else []
    sections = [(title, body) for title, body in (*changed, *_sections(run)) if body]
    head = escape(headline(run))
    links = "".join(f'<a href="#{_anchor(title)}">{escape(title)}</a>' for title, _ in sections)
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<link rel="icon" href="data:,">',
        f"<title>{head}</title><style>{_own('page.css')}</style></head>",
        f"<body><h1>{head}</h1>{f'<nav>{links}</nav>' if len(sections) > 1 else ''}<main>",
        *(f'<h2 id="{_anchor(title)}">{escape(title)}</h2>{body}' for title, body in sections),
        f"</main><footer>minrpc, {escape(when)}</footer>",
        f"<script>{_own('page.js')}</script></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _own(name: str) -> str:
    return (files("minrpc.publish") / name).read_text(encoding="utf-8")


def _anchor(title: str) -> str:
    return re.sub(r"\W+", "-", title.lower()).strip("-")


def _sections(run: RunRecord) -> Iterator[tuple[str, str]]:
    """The sections: failures and the user's own code first; reference material is folded."""
    failures = tables.failures(run)
    if failures.rows:
        few, rest = tables.split(failures, _FAILURES)
        yield "Failures", _table(few) + (_folded(rest) if rest.rows else "")
    if run.records:
        more = [
            table
            for table in (tables.counters(run), tables.statistics(run), tables.firmwares(run))
            if table.rows
        ]
        yield "Measurements", _table(tables.measurements(run)) + "".join(map(_folded, more))
        past = histories(run.records)
        if past:
            yield "History", history_lines(past) + _table(history_table(past))
        yield "Repeats", dots(run.records)
    for part in run.platforms:
        for profile in part.profiles:
            yield f"{profile.call} on {part.platform}", _profile(profile)
    own = tables.own_sizes(run)
    if own.rows:
        drawn = ""
        if len(own.rows) >= _DRAWN:
            code = tables.own_code(run).items()
            drawn = "".join(areas(f"{name}: bytes of your code", sizes, _CODE_PIXELS) for name, sizes in code)
        compilers = tables.own_compilers(run)
        yield "Your code", _table(own) + drawn + (_folded(compilers) if compilers.rows else "")
    if run.tests:
        outcomes = list(tables.outcomes(run))
        alone = len(outcomes) == 1 and not failures.rows and len(outcomes[0].rows) <= _FAILURES
        yield "Tests", "".join(_folded(item, opened=alone) for item in outcomes)
    sized = [part for part in run.platforms if part.flash or part.ram]
    if sized:
        yield "Firmware", "".join(map(_firmware, sized))
    if run.platforms or run.about:
        stated = [*tables.facts(run), *([tables.about(run)] if run.about else [])]
        yield "Versions", "".join(map(_folded, stated))


def _changed(differences: Differences) -> str:
    """Differences from the base: a table for each kind of difference, the rows beyond the first folded."""
    sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in differences.sentences())
    body = ""
    for table in shown(differences):
        few, rest = tables.split(table, _FAILURES)
        body += f"<h3>{escape(table.title)}</h3>{_table(few)}" + (_folded(rest) if rest.rows else "")
    return sentences + body + "".join(map(_folded, folded(differences)))


def _profile(profile: CallProfile) -> str:
    functions, *lines = tables.profile_tables(profile)
    tree = tables.own_tree(profile)
    few, rest = tables.split(functions, _FUNCTIONS)
    drawn = flame(f"{profile.call}: {tree.total:,} {profile.unit_title}", tree, profile.unit_title)
    more = [*([rest] if rest.rows else []), *lines]
    return drawn + _table(few) + "".join(map(_folded, more))


def _firmware(part: PlatformPart) -> str:
    component = tables.components(part)
    drawn = areas(f"{part.platform}, flash by component and symbol", part.flash, _FIRMWARE_PIXELS)
    return f"<details><summary>{escape(component.title)}</summary>{_table(component)}{drawn}</details>"


def _folded(table: Table, *, opened: bool = False) -> str:
    state = " open" if opened else ""
    return f"<details{state}><summary>{escape(table.title)}</summary>{_table(table)}</details>"


def _table(table: Table) -> str:
    numbers = set(table.right)
    kinds = ["number" if column in numbers else "" for column in range(len(table.head))]
    head = "".join(
        f'<th scope="col"{_class(kind)}><button type="button">{escape(name)}</button></th>'
        for name, kind in zip(table.head, kinds, strict=True)
    )
    rows = "".join(_row(row, table.head, kinds) for row in table.rows)
    single = " single" if len(table.rows) < _SORTED else ""
    notes = "".join(f"<p>{escape(note)}</p>" for note in table.notes)
    search = '<input type="search" aria-label="Search the table" placeholder="Search">'
    return (
        f"{search if len(table.rows) >= _SEARCHED else ''}"
        f'<div class="wide{single}"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
        f"{notes}"
    )


def _row(row: Sequence[Cell], head: Sequence[str], kinds: Sequence[str]) -> str:
    first, *others = row
    named = zip(others, head[1:], kinds[1:], strict=True)
    cells = "".join(
        f'<td data-label="{escape(name)}"{_class("long" if isinstance(cell, Long) else kind)}>'
        f"{_cell(cell)}</td>"
        for cell, name, kind in named
    )
    name = _BREAKS.sub(r"\1<wbr>", _cell(first))
    return f'<tr><th scope="row"{_class(kinds[0])}>{name}</th>{cells}</tr>'


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def _cell(cell: Cell) -> str:
    if not isinstance(cell, Long):
        return escape(cell)
    whole = (
        f"<details><summary>all of it</summary><pre>{escape(cell.whole)}</pre></details>"
        if cell.whole
        else ""
    )
    return escape(cell.text) + whole
