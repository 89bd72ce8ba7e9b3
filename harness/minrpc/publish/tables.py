# SPDX-License-Identifier: Apache-2.0
"""A run as tables of text, the same for Markdown and HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from minrpc.counters.call_tree import Row
from minrpc.publish.run import CallProfile, PlatformPart, Run
from minrpc.timing.measurement import MemoryUse
from minrpc.timing.record import Record
from minrpc.timing.units import count, quantity

_TOP: Final = 12
_COUNTERS: Final = ("branches", "loads", "stores", "cache_misses")
_BARS: Final = "▁▂▃▄▅▆▇█"
_BINS: Final = 24


@dataclass(frozen=True)
class Table:
    """Rows below a head. right: the columns of numbers, counted from 0; folded: read when asked for."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[int] = ()
    folded: bool = False


def measurements(run: Run) -> Table:
    """A line for each call on each platform: times, counters, sizes of the firmware."""
    found: set[str] = {name for record in run.records for name in record.measurement.counters}
    names = [name for name in _COUNTERS if name in found]
    head = ["call", "platform", "time", "cycles", "instructions", *(name.replace("_", " ") for name in names)]
    memory = any(record.measurement.memory for record in run.records)
    head += [*(["stack", "heap"] if memory else []), "flash", "RAM"]
    rows = [_measured(record, names, memory=memory) for record in run.records]
    return Table("Measurements", head, rows, range(2, len(head)))


def _measured(record: Record, names: Sequence[str], *, memory: bool) -> list[str]:
    one = record.measurement
    counters = one.counters
    counted = [count(one.counter_per_call(name), 1) if name in counters else "" for name in names]
    instructions = one.counter_per_call("instructions") if "instructions" in counters else one.instructions
    firmware = record.firmware
    sizes = [f"{firmware.flash:,}", f"{firmware.ram:,}"] if firmware else ["", ""]
    return [
        record.call,
        record.platform,
        quantity(one.clock.seconds(one.typical_cycles), "s"),
        count(one.typical_cycles, 1),
        "" if instructions is None else count(instructions, 1),
        *counted,
        *(_needed(one.memory) if memory else ()),
        *sizes,
    ]


def _needed(memory: MemoryUse | None) -> tuple[str, str]:
    """Stack and heap of a call."""
    if memory is None:
        return "", ""
    stack, heap = ("" if value is None else f"{value:,}" for value in (memory.stack, memory.heap))
    return stack, heap


def counters(run: Run) -> Table:
    """Each counter of each call; no rows where nothing was counted."""
    names = dict.fromkeys(name for record in run.records for name in record.measurement.counters)
    rows = [
        [
            record.call,
            record.platform,
            *(count(one.counter_per_call(name), 1) if name in one.counters else "" for name in names),
        ]
        for record in run.records
        for one in (record.measurement,)
        if one.counters
    ]
    head = ["call", "platform", *(name.replace("_", " ") for name in names)]
    return Table("Counters, a call", head, rows, range(2, len(head)), folded=True)


def statistics(run: Run) -> Table:
    """How sure the times are, and how they spread."""
    rows = []
    for record in run.records:
        one = record.measurement
        summary, interval = one.summary, one.summary.interval
        rows.append(
            [
                record.call,
                record.platform,
                one.clock.mode,
                f"{len(one.samples)} of {max(sample.number for sample in one.samples):,}",
                count(summary.median, 1),
                count(summary.mad, 1),
                count(summary.min, 1),
                count(summary.max, 1),
                f"{count(interval.low, 1)} to {count(interval.high, 1)}" if interval else "not known",
                histogram(one.cycles_per_call),
            ]
        )
    head = ["call", "platform", "clock", "repeats of calls", "median", "MAD", "min", "max"]
    head += ["95 % interval", "spread"]
    return Table("Statistics, in cycles per call", head, rows, range(4, 8), folded=True)


def histogram(values: Sequence[float]) -> str:
    """How many values lie where from the least to the most, as letters; "" when all are the same."""
    low, high = min(values), max(values)
    if low == high:
        return ""
    counts = [0] * _BINS
    for value in values:
        counts[min(_BINS - 1, int((value - low) / (high - low) * _BINS))] += 1
    most = max(counts)
    return "".join(_BARS[max(0, -(-each * len(_BARS) // most) - 1)] if each else " " for each in counts)


def about(run: Run) -> Table:
    """What was run, where."""
    return Table("About", ["what", ""], [[name, text] for name, text in run.about.items()])


def facts(run: Run) -> Table:
    """What each platform says of itself."""
    names = list(dict.fromkeys(name for one in run.platforms for name in one.facts))
    rows = [[one.platform, *(one.facts.get(name, "") for name in names)] for one in run.platforms]
    return Table("Platforms", ["platform", *names], rows)


def tests(run: Run) -> Table:
    """How each test ended; what failed comes first."""
    order = {"failed": 0, "skipped": 1}
    listed = sorted(run.tests, key=lambda one: order.get(one.outcome, 2))
    rows = [[one.outcome, one.test, one.platform, f"{one.took_s:.2f}", one.text] for one in listed]
    return Table("Tests", ["", "test", "platform", "seconds", "why"], rows, (3,))


def profile_tables(part: PlatformPart, profile: CallProfile) -> Iterator[Table]:
    """By function and by line."""
    total = profile.tree.total
    rows: list[Row] = profile.tree.rows()
    yield Table(
        f"{profile.call} on {part.platform}: {total:,} instructions by function",
        ["function", "own", "share", "with callees", "calls"],
        [_row(row, total) for row in rows],
        (1, 2, 3, 4),
        folded=True,
    )
    if profile.lines:
        lines = [[place, text, f"{each:,}", f"{each / total:.1%}"] for place, text, each in profile.lines]
        yield Table(
            f"{profile.call} on {part.platform}: by line", ["line", "", "own", "share"], lines, (2, 3), True
        )


def _row(row: Row, total: int) -> list[str]:
    return [row.name, f"{row.own:,}", f"{row.own / total:.1%}", f"{row.inclusive:,}", f"{row.calls:,}"]


def components(part: PlatformPart) -> Table:
    """Flash and RAM of a firmware."""
    names = dict.fromkeys([*part.flash, *part.ram])
    sums = {name: [sum(memory.get(name, {}).values()) for memory in (part.flash, part.ram)] for name in names}
    ordered = sorted(names, key=lambda name: (-sums[name][0], -sums[name][1]))
    rows = [[name, *(f"{each:,}" for each in sums[name])] for name in ordered]
    total = [f"{sum(sums[name][index] for name in names):,}" for index in range(2)]
    title = f"{part.platform}: flash {total[0]}, RAM {total[1]} bytes by component"
    return Table(title, ["component", "flash", "RAM"], rows, (1, 2), folded=True)


def first(table: Table, rows: int = _TOP) -> Table:
    """The first rows, and a last one that says how many there are more."""
    if len(table.rows) <= rows + 1:
        return table
    more = [f"{len(table.rows) - rows} more", *("" for _ in table.head[1:])]
    return Table(table.title, table.head, [*table.rows[:rows], more], table.right, table.folded)
