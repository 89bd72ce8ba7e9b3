# SPDX-License-Identifier: Apache-2.0
"""A run as tables of text, the same for Markdown and HTML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from minrpc.counters.call_tree import CallTree, Row
from minrpc.counters.profile import APART, CALLING, inclusive_of
from minrpc.publish.run_record import CallProfile, PlatformPart, RunRecord, Tested
from minrpc.timing.comparison_text import INCLUSIVE, counter_title, inclusive_text
from minrpc.timing.measurement import MemoryUse
from minrpc.timing.record import TimingRecord, newest_firmwares
from minrpc.timing.units import count, quantity

_TOP: Final = 12
_COUNTERS: Final = ("instructions", "cycles", "branches", "loads", "stores", "cache_misses")
_BARS: Final = "▁▂▃▄▅▆▇█"
_BINS: Final = 24
_EMPTY: Final = "·"
"""A visible space: HTML and Markdown merge consecutive spaces."""


_REASON: Final = 200
_OUTCOMES: Final[Mapping[str, str]] = {
    "xpassed": "passed, though failure is expected",
    "passed": "passed",
    "skipped": "skipped",
    "xfailed": "failed as expected",
}
_LINES: Final = 3


class Long(NamedTuple):
    """A cell with a short text and the whole text."""

    text: str
    whole: str = ""


Cell = str | Long


@dataclass(frozen=True)
class Table:
    """Rows below a head; the first column names the row. right: indices of right-aligned columns, from 0.

    notes: lines below the table.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    right: Sequence[int] = ()
    notes: Sequence[str] = ()


def called(record: TimingRecord) -> str:
    """The call, or the test's name for it."""
    return record.call.removesuffix("()")


def measurements(run: RunRecord) -> Table:
    """A line for each call on each platform, a call's platforms together: times, counters, memory."""
    present: set[str] = {name for record in run.records for name in record.measurement.counters}
    names = [name for name in _COUNTERS if name in present]
    head = ["call", "platform", "time", "ticks", *INCLUSIVE.values()]
    head += [*(counter_title(name, present) for name in names), "stack", "heap"]
    calls = {record.call: place for place, record in reversed(list(enumerate(run.records)))}
    ordered = sorted(run.records, key=lambda record: calls[record.call])
    rows = [_measured(record, names) for record in ordered]
    notes = dict.fromkeys(f"Core cycles are an {record}" for record in map(_estimate, run.records) if record)
    return _without_empty(Table("Measurements", head, rows, range(2, len(head)), list(notes)))


def _estimate(record: TimingRecord) -> str:
    return record.measurement.estimate


def _measured(record: TimingRecord, names: Sequence[str]) -> list[str]:
    item = record.measurement
    counters = item.counters
    counted = [count(item.counter_per_call(name), 1) if name in counters else "" for name in names]
    return [
        called(record),
        record.platform,
        quantity(item.clock.seconds(item.typical_ticks), "s"),
        count(item.typical_ticks, 1),
        *(inclusive_text(item, name) if name in item.inclusive else "" for name in INCLUSIVE),
        *counted,
        *_needed(item.memory),
    ]


def _without_empty(table: Table) -> Table:
    """The table without its empty columns."""
    kept = [column for column in range(len(table.head)) if any(row[column] for row in table.rows)]
    return replace(
        table,
        head=[table.head[column] for column in kept],
        rows=[[row[column] for column in kept] for row in table.rows],
        right=[place for place, column in enumerate(kept) if column in set(table.right)],
    )


def _needed(memory: MemoryUse | None) -> tuple[str, str]:
    """Stack and heap of a call."""
    if memory is None:
        return "", ""
    stack, heap = ("" if value is None else f"{value:,}" for value in (memory.stack, memory.heap))
    return stack, heap


def counters(run: RunRecord) -> Table:
    """Each counter of each call; no rows if nothing was counted."""
    names = dict.fromkeys(name for record in run.records for name in record.measurement.counters)
    rows = [
        [
            called(record),
            record.platform,
            *(count(item.counter_per_call(name), 1) if name in item.counters else "" for name in names),
        ]
        for record in run.records
        for item in (record.measurement,)
        if item.counters
    ]
    head = ["call", "platform", *(counter_title(name, names) for name in names)]
    return Table("Counters, a call", head, rows, range(2, len(head)))


def statistics(run: RunRecord) -> Table:
    """Confidence and spread of the times."""
    measured = [record.measurement for record in run.records]
    rows = []
    for record in run.records:
        item = record.measurement
        summary, interval = item.summary, item.summary.interval
        rows.append(
            [
                called(record),
                record.platform,
                item.clock.mode,
                f"{len(item.samples)} of {max(sample.number for sample in item.samples):,}",
                count(summary.median, 1),
                count(summary.mad, 1),
                count(summary.min, 1),
                count(summary.max, 1),
                f"{count(interval.low, 1)} to {count(interval.high, 1)}" if interval else "not known",
                histogram(item.ticks_per_call),
            ]
        )
    head = ["call", "platform", "clock", "repeats of calls", "median", "MAD", "min", "max"]
    head += ["95 % interval", "spread"]
    alone = any(item.clock.mode == "wall" and item.processes == 1 for item in measured)
    note = "On the host's clock the interval holds in this process only: another's median may lie outside."
    return Table("Statistics, in ticks per call", head, rows, range(4, 8), [note] if alone else [])


def histogram(values: Sequence[float]) -> str:
    """A histogram from the smallest to the largest value, as letters; "" if all values are equal."""
    low, high = min(values), max(values)
    if low == high:
        return ""
    counts = [0] * _BINS
    for value in values:
        counts[min(_BINS - 1, int((value - low) / (high - low) * _BINS))] += 1
    most = max(counts)
    return "".join(_BARS[max(0, -(-each * len(_BARS) // most) - 1)] if each else _EMPTY for each in counts)


def about(run: RunRecord) -> Table:
    """Command, machine and versions of the run."""
    return Table("About", ["of", "version"], [[name, text] for name, text in run.about.items()])


def facts(run: RunRecord) -> Iterator[Table]:
    """A table of each platform's facts."""
    for platform in run.platforms:
        yield Table(
            platform.platform,
            ["fact", "value"],
            [[name, text] for name, text in platform.facts.items() if text],
        )


def firmwares(run: RunRecord) -> Table:
    """Sizes of the measured firmware, by platform."""
    rows = [
        [name, f"{item.flash:,}", f"{item.ram:,}", item.compiler, item.flags]
        for name, item in newest_firmwares(run.records).items()
    ]
    return Table("Firmware", ["platform", "flash", "RAM", "compiler", "flags"], rows, (1, 2))


def own_compilers(run: RunRecord) -> Table:
    """Compilers of the user's code."""
    rows = [
        [called(record), record.platform, record.code.compiler, record.code.flags]
        for record in run.records
        if record.code.compiler
    ]
    return Table("Compiler of your code", ["call", "platform", "compiler", "flags"], rows)


def failures(run: RunRecord) -> Table:
    """The failed tests, with the reasons."""
    failed = [test for test in run.tests if test.outcome == "failed"]
    return _without_empty(_tested("Failures", failed))


def outcomes(run: RunRecord) -> Iterator[Table]:
    """The tests that did not fail: a table for each outcome."""
    for outcome, title in _OUTCOMES.items():
        tests = [test for test in run.tests if test.outcome == outcome]
        if tests:
            yield _without_empty(_tested(f"{len(tests)} {title}", tests))


def _tested(title: str, tests: Sequence[Tested]) -> Table:
    rows = [[item.test, item.platform, f"{item.took_s:.2f}", why(item.text)] for item in tests]
    return Table(title, ["test", "platform", "seconds", "why"], rows, (2,))


def why(text: str) -> Cell:
    """The first line with text; with the whole text if there is more."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    first = lines[0]
    if first.endswith(":"):
        first = f"{first} {', '.join(lines[1:_LINES])}".rstrip()
    short = first if len(first) <= _REASON else f"{first[: _REASON - 1]}…"
    return Long(short, "" if short == text.strip() else text.strip())


def own_code(run: RunRecord) -> Mapping[str, Mapping[str, Mapping[str, int]]]:
    """Bytes of the user's code: by platform, then library or function, then symbol."""
    by_platform: dict[str, dict[str, Mapping[str, int]]] = {}
    for part in run.platforms:
        for name, sizes in part.loaded.items():
            by_platform.setdefault(part.platform, {})[name] = sizes
    for record in run.records:
        if record.code.symbols:
            by_platform.setdefault(record.platform, {})[record.measurement.name] = record.code.symbols
    return by_platform


def own_sizes(run: RunRecord) -> Table:
    """The user's functions and variables: bytes on each platform."""
    by_platform = own_code(run)
    names = dict.fromkeys(
        (library, symbol)
        for libraries in by_platform.values()
        for library, sizes in libraries.items()
        for symbol, size in sizes.items()
        if size
    )
    several = len({library for library, _ in names}) > 1
    rows = [
        [
            symbol,
            library if several else "",
            *(_bytes(libraries.get(library, {}).get(symbol)) for libraries in by_platform.values()),
        ]
        for library, symbol in names
    ]
    return _without_empty(
        Table("Bytes of your code", ["symbol", "of", *by_platform], rows, range(2, 2 + len(by_platform)))
    )


def _bytes(size: int | None) -> str:
    return "" if size is None else f"{size:,}"


def own_tree(profile: CallProfile) -> CallTree:
    """The called function and its callees; the cost of the call is a separate node.

    All of the tree, if an older document does not tell the function.
    """
    name = profile.function or profile.call.partition("(")[0]
    return profile.tree.below(name, CALLING) if name in profile.tree.names else profile.tree


def profile_tables(profile: CallProfile) -> Iterator[Table]:
    """Tables of a profile: by function and by line."""
    tree = own_tree(profile)
    total = inclusive_of(tree)
    rows = [row for row in tree.rows() if row.name not in APART]
    most = f" to {total + profile.spread:,}" if profile.spread else ""
    notes = [f"Apart from these, {tree.total - total:,} for calling it, and for interrupts."]
    yield Table(
        f"{total:,}{most} {profile.unit_title} by function",
        ["function", "own", "share", "with callees", "calls"],
        [_row(row, total) for row in rows],
        (1, 2, 3, 4),
        [*notes, "Each row has the least."] if most else notes,
    )
    if profile.lines:
        lines = [[place, text, f"{each:,}", f"{each / total:.1%}"] for place, text, each in profile.lines]
        title = f"{profile.unit_title.capitalize()} by line"
        yield Table(title, ["line", "source", "own", "share"], lines, (2, 3))


def _row(row: Row, total: int) -> list[str]:
    calls = f"{row.calls:,}" if row.calls else ""
    return [row.name, f"{row.own:,}", f"{row.own / total:.1%}", f"{row.inclusive:,}", calls]


def components(part: PlatformPart) -> Table:
    """Flash and RAM of a firmware."""
    names = dict.fromkeys([*part.flash, *part.ram])
    sums = {name: [sum(memory.get(name, {}).values()) for memory in (part.flash, part.ram)] for name in names}
    ordered = sorted(names, key=lambda name: (-sums[name][0], -sums[name][1]))
    rows = [[name, *(f"{each:,}" for each in sums[name])] for name in ordered]
    total = [f"{sum(sums[name][index] for name in names):,}" for index in range(2)]
    title = f"{part.platform}: flash {total[0]}, RAM {total[1]} bytes by component"
    return Table(title, ["component", "flash", "RAM"], rows, (1, 2))


def first(table: Table, rows: int = _TOP) -> Table:
    """The first rows, and a last row with the number of the others."""
    if len(table.rows) <= rows + 1:
        return table
    more = [f"{len(table.rows) - rows} more", *("" for _ in table.head[1:])]
    return replace(table, rows=[*table.rows[:rows], more])


def split(table: Table, rows: int) -> tuple[Table, Table]:
    """The first rows, and the others as a table whose title has their number."""
    rest = table.rows[rows:]
    return replace(table, rows=table.rows[:rows]), replace(table, title=f"{len(rest)} more", rows=rest)
