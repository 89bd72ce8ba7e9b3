# SPDX-License-Identifier: Apache-2.0
"""A comparison as Markdown, for a pull request's comment."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from html import escape
from types import MappingProxyType
from typing import Final

from minrpc.reports.markdown import table
from minrpc.sizes.growth import growth, growth_text
from minrpc.timing.compare import (
    LEAST_WALL,
    UNCOMPARED,
    BuildChange,
    Change,
    Comparison,
    CounterChange,
    Growth,
)
from minrpc.timing.measurement import MOST, Measurement
from minrpc.timing.record import TimingRecord
from minrpc.timing.units import count, percent, quantity

_BIG: Final = 0.02
INCLUSIVE: Final = MappingProxyType(
    {"instructions": "inclusive instructions", "cycles": "inclusive core cycles"}
)
"""Titles of a call's figures of the function with its callees, without the cost of calling it."""


def inclusive_text(item: Measurement, name: str) -> str:
    """A call's inclusive figure; of cycles that are a range the least is known."""
    more = name == "cycles" and item.counters.get(name) != item.counters.get(MOST)
    return count(item.inclusive[name], 3) + " or more" * more


def comparison_markdown(comparison: Comparison, over: Sequence[str] = ()) -> str:
    """The verdict in one line, times, sizes, and the way of measuring.

    over: sentences about limits that are broken.
    """
    parts = [f"### {headline(comparison)}"]
    if over:
        parts.append("\n".join(f"- **over the limit**: {escape(change, quote=False)}" for change in over))
    if comparison.builds:
        parts.append("\n".join(map(_rebuilt, comparison.builds)))
    parts += _all_times(comparison.changes)
    if any(change.counters for change in comparison.changes):
        parts.append(_counters(comparison.changes))
    if comparison.sizes:
        parts.append(_sizes(comparison.sizes))
        parts += _symbols(comparison.sizes)
    parts.append(_method(comparison))
    return "\n\n".join(parts) + "\n"


def _rebuilt(change: BuildChange) -> str:
    subject = escape(change.subject, quote=False)
    return f"- **built differently**: {subject}: base `{change.base}`, head `{change.head}`"


def headline(comparison: Comparison) -> str:
    """One line: the calls that got worse, the number of calls that were not compared, and the reasons."""
    compared = comparison.compared
    counted = ((verdict, comparison.count(verdict)) for verdict in ("slower", "faster"))
    times = [f"{number} of {compared} {verdict}" for verdict, number in counted if number]
    if not times:
        times = [f"none of {compared} slower" if compared else "nothing could be compared"]
    others = ((verdict, comparison.count(verdict)) for verdict in UNCOMPARED)
    times += [f"{number} {verdict}" for verdict, number in others if number]
    grown = [
        f"{size.platform} {size.region} {size.grown:+,} bytes" for size in comparison.sizes if size.grown
    ]
    return "Timings: " + "; ".join([*times, *grown])


def _all_times(changes: Sequence[Change]) -> Iterator[str]:
    """The important changes; small changes and unchanged calls follow, folded."""
    big = [change for change in changes if change.verdict != "same" and not _is_small(change)]
    small = [change for change in changes if change.verdict != "same" and _is_small(change)]
    same = [change for change in changes if change.verdict == "same"]
    if not big and not small:
        yield _times(changes)
        return
    if big:
        yield _times(big)
    for title, some in ((f"{len(small)} of less than {_BIG:.0%}", small), (f"{len(same)} unchanged", same)):
        if some:
            yield f"<details><summary>{title}</summary>\n\n{_times(some)}\n\n</details>"


def _is_small(change: Change) -> bool:
    """True if the call was compared and differs by little."""
    return change.verdict in ("slower", "faster") and change.weight < _BIG


def _times(changes: Sequence[Change]) -> str:
    rows = [
        [
            f"**{change.verdict}**" if change.verdict == "slower" else change.verdict,
            f"`{change.call}`",
            change.platform,
            value_text(change.base),
            value_text(change.head),
            difference_text(change),
        ]
        for change in changes
    ]
    return table(["", "call", "platform", "base", "head", "change"], rows, right=range(3, 6))


def value_text(measurement: Measurement | None) -> str:
    """Exact times in ticks, other times in seconds with half of their interval."""
    if measurement is None:
        return "-"
    typical = measurement.typical_ticks
    if measurement.clock.exact:
        return f"{count(typical)} ticks"
    interval = measurement.summary.interval
    spread = f" ± {quantity(measurement.clock.seconds(interval.half_width), 's', 3)}" if interval else ""
    return quantity(measurement.clock.seconds(typical), "s") + spread


def difference_text(change: Change) -> str:
    """The difference in time, or the reason why it is not known."""
    if change.ticks is None:
        return change.note or change.verdict
    share = "" if change.relative is None else percent(change.relative)
    if change.p_value is None:
        if change.verdict == "same":
            return "0"
        sign = "+" if change.ticks > 0 else "-"
        return f"{sign}{count(abs(change.ticks))} ticks" + (share and f" ({share})")
    note = f", {change.note}" if change.note else ""
    return f"{share or 'from 0 ticks'} (p = {change.p_value:.2g}{note})"


def _counters(changes: Sequence[Change]) -> str:
    rows = [
        [
            f"`{change.call}`",
            change.platform,
            counter_title(counter.name, change.head.counters if change.head else ()),
            count(counter.base),
            count(counter.head),
            counter_text(counter),
        ]
        for change in changes
        for counter in change.counters
    ]
    known = table(["call", "platform", "a call's", "base", "head", "change"], rows, right=range(3, 6))
    estimates = {
        change.head.estimate: None
        for change in changes
        for counter in change.counters
        if change.head is not None and counter.name in ("cycles", MOST)
    }
    return "\n\n".join([known, *(f"Core cycles: {estimate}." for estimate in estimates if estimate)])


def counter_title(name: str, counters: Collection[str] = (MOST,)) -> str:
    """The name of a counter in a table: estimated cycles are "core cycles".

    counters: all of the measurement; without both ends of an estimate its "cycles" are a device's own.
    """
    core = "core " if MOST in counters and name in ("cycles", MOST) else ""
    return core + name.replace("_", " ")


def counter_text(counter: CounterChange) -> str:
    """The difference of the counter."""
    sign = "+" if counter.head > counter.base else "-"
    relative = f" ({percent(counter.relative)})" if counter.base else ""
    return f"{sign}{count(abs(counter.head - counter.base))}{relative}"


def _sizes(sizes: Sequence[Growth]) -> str:
    rows = [
        [
            size.platform,
            size.region,
            f"{size.base:,}",
            f"{size.head:,}",
            f"{size.grown:+,}" if size.grown else "0",
        ]
        for size in sizes
    ]
    return table(["firmware", "bytes of", "base", "head", "change"], rows, right=range(2, 5))


def _symbols(sizes: Sequence[Growth]) -> Iterator[str]:
    """Symbols that grew or shrank, folded: a section for each region with a difference."""
    for size in sizes:
        if growth(*size.symbols):
            title = f"{size.platform}, {size.region}: {size.grown:+,} bytes by symbol"
            text = growth_text(*size.symbols)
            yield f"<details><summary>{escape(title)}</summary>\n\n```\n{text}\n```\n\n</details>"


def _method(comparison: Comparison) -> str:
    lines = ["<details><summary>How it was measured</summary>", ""]
    for label, records in (("base", comparison.base), ("head", comparison.head)):
        lines += [f"- {label}: {line}" for line in dict.fromkeys(_provenance(records))]
    lines += [
        "",
        "Exact times are times of the shortest repeat, compared to the tick. Others are medians with their",
        "95 % interval, compared by the Mann-Whitney test; below p = 0.01 they differ. On the host's clock",
        f"they are medians of processes, and a change below {LEAST_WALL:.0%} is none: one process tells no",
        "other's time.",
        "",
        "</details>",
    ]
    return "\n".join(lines)


def _provenance(records: Sequence[TimingRecord]) -> Iterator[str]:
    for record in records:
        text = f"{record.platform}: {record.measurement.clock}"
        if record.firmware is not None:
            built = f"{record.firmware.compiler} {record.firmware.flags}".strip() or "unknown compiler"
            text += f"; firmware {record.firmware.content_hash[:12]}, {built}"
            floats = record.firmware.floating_point
            text += f", floats by {floats}" if floats else ""
        if record.code.compiler:
            text += f"; {record.measurement.name} loaded, {record.code.compiler} {record.code.flags}".rstrip()
        yield text
