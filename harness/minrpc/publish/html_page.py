# SPDX-License-Identifier: Apache-2.0
"""A run as one HTML file: nothing is loaded from anywhere, its own policy forbids it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from typing import Final

from minrpc.counters.profile_files import flame_graph
from minrpc.publish import tables
from minrpc.publish.dots import dots
from minrpc.publish.markdown_page import headline
from minrpc.publish.run import Run
from minrpc.publish.tables import Table
from minrpc.reports.treemap import treemap

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def html_page(run: Run, when: str) -> str:
    """The page. when: it was made, for its last line."""
    sections = [(title, body) for title, body in _sections(run) if body]
    head = escape(headline(run))
    links = " ".join(f'<a href="#{_anchor(title)}">{escape(title)}</a>' for title, _ in sections)
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<link rel="icon" href="data:,">',
        f"<title>{head}</title><style>{_own('page.css')}</style></head>",
        f"<body><h1>{head}</h1><nav>{links}</nav>",
        *(f'<h2 id="{_anchor(title)}">{escape(title)}</h2>{body}' for title, body in sections),
        f"<footer>minrpc, {escape(when)}</footer>",
        f"<script>{_own('page.js')}</script></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _own(name: str) -> str:
    return (files("minrpc.publish") / name).read_text(encoding="utf-8")


def _anchor(title: str) -> str:
    return re.sub(r"\W+", "-", title.lower()).strip("-")


def _sections(run: Run) -> Iterator[tuple[str, str]]:
    if run.records:
        counted = tables.counters(run)
        folded = _folded(counted) if counted.rows else ""
        yield "Measurements", _table(tables.measurements(run)) + folded
        yield "Times", _figure(dots(run.records), scroll=True) + _folded(tables.statistics(run))
    if run.tests:
        yield "Tests", _table(tables.tests(run))
    for part in run.platforms:
        for profile in part.profiles:
            drawn = _figure(flame_graph(profile.call, profile.tree), scroll=True)
            listed = "".join(map(_folded, tables.profile_tables(part, profile)))
            yield f"{profile.call} on {part.platform}", drawn + listed
    for part in run.platforms:
        if part.flash or part.ram:
            drawn = _figure(treemap(f"{part.platform}, flash", part.flash), scroll=True)
            yield f"Sizes of {part.platform}", drawn + _folded(tables.components(part))
    if run.platforms:
        yield "Platforms", _table(tables.facts(run))
    if run.about:
        yield "About", _table(tables.about(run))


def _figure(svg: str, *, scroll: bool = False) -> str:
    kind = ' class="scroll"' if scroll else ""
    return f"<figure{kind}>{svg}<figcaption></figcaption></figure>"


def _folded(one: Table) -> str:
    return f"<details><summary>{escape(one.title)}</summary>{_table(one)}</details>"


def _table(one: Table) -> str:
    numbers = set(one.right)
    kinds = [' class="number"' if column in numbers else "" for column in range(len(one.head))]
    head = "".join(
        f'<th scope="col"{kind}><button type="button">{escape(name) or "&nbsp;"}</button></th>'
        for name, kind in zip(one.head, kinds, strict=True)
    )
    rows = "".join(f"<tr>{''.join(map(_cell, row, kinds))}</tr>" for row in one.rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _cell(text: str, kind: str) -> str:
    marked = ' class="failed"' if text == "failed" else kind
    return f"<td{marked}>{escape(text)}</td>"
