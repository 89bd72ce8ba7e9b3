# SPDX-License-Identifier: Apache-2.0
"""Compares two sets of measurements: finds calls that got slower and firmware that grew."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

from minrpc.sizes.growth import growth
from minrpc.timing.measurement import MOST, PEAKS, Measurement
from minrpc.timing.record import FirmwareRecord, TimingRecord, newest, newest_firmwares
from minrpc.timing.significance import SIGNIFICANT, least_p, mann_whitney, shift

Verdict = Literal["slower", "faster", "same", "can't tell", "not comparable", "new", "gone"]

# Worst first: the order of a report.
ORDER: Final[tuple[Verdict, ...]] = (
    "slower",
    "not comparable",
    "can't tell",
    "gone",
    "new",
    "faster",
    "same",
)

LEAST_WALL: Final = 0.01
"""The smallest share of a time that counts as a change on a host's clock: the place of code and data, which
unrelated edits move, changes the time of the same instructions by as much."""

# Verdicts that say nothing about a call's times.
UNCOMPARED: Final[tuple[Verdict, ...]] = ("not comparable", "can't tell", "gone", "new")


@dataclass(frozen=True, slots=True)
class CounterChange:
    """A counter per call that differs between both sets."""

    name: str
    base: float
    head: float

    @property
    def relative(self) -> float:
        """The change over the base; infinite for a counter that was 0."""
        return (self.head - self.base) / self.base if self.base else math.inf


@dataclass(frozen=True, slots=True)
class Change:
    """One function's times in both sets.

    ticks: head minus base, per call, without a change in the cost of calling the function, where that is
        known; None if they can't be compared.
    counters: the counters that differ, if times are exact.
    p_value: the probability that chance alone makes such a difference; None for exact times.
    """

    platform: str
    call: str
    verdict: Verdict
    base: Measurement | None
    head: Measurement | None
    ticks: float | None = None
    p_value: float | None = None
    note: str = ""
    counters: tuple[CounterChange, ...] = ()

    @property
    def relative(self) -> float | None:
        """The change over the base; None if they can't be compared, or the base took 0 ticks."""
        if self.base is None or not self.base.typical_ticks or self.ticks is None:
            return None
        return self.ticks / self.base.typical_ticks

    @property
    def weight(self) -> float:
        """The size of the change, to sort by: infinite from 0 ticks."""
        return abs(self.relative if self.relative is not None else math.inf if self.ticks else 0.0)

    @property
    def exact(self) -> bool:
        """True if only the firmware can be the cause of the difference."""
        return self.base is not None and self.base.clock.exact and self.p_value is None


@dataclass(frozen=True, slots=True)
class Growth:
    """A platform's firmware in both sets, or the code loaded for a call, in bytes.

    region: "flash", "RAM", or the call that the code was loaded for.
    symbols: bytes of each symbol in both, if known.
    own: growth of the called function itself, where other functions may be loaded with it; None of firmware.
    """

    platform: str
    region: str
    base: int
    head: int
    symbols: tuple[Mapping[str, int], Mapping[str, int]] = ({}, {})
    own: int | None = None

    @property
    def grown(self) -> int:
        """Growth in bytes."""
        return self.head - self.base


@dataclass(frozen=True, slots=True)
class BuildChange:
    """A firmware, or the code of a call, that was compiled by another compiler or with other flags.

    subject: "firmware of posix", or "fir(int16[8]) on posix".
    base, head: the words of compiler and flags that only this side has; all words if only their order
        differs.
    """

    subject: str
    base: str
    head: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Changes, the worst first, and sizes by platform."""

    changes: tuple[Change, ...]
    sizes: tuple[Growth, ...]
    base: Sequence[TimingRecord]
    head: Sequence[TimingRecord]
    builds: tuple[BuildChange, ...] = ()

    def count(self, verdict: Verdict) -> int:
        """The number of calls with this verdict."""
        return sum(change.verdict == verdict for change in self.changes)

    @property
    def compared(self) -> int:
        """The number of calls whose times were compared."""
        return len(self.changes) - sum(self.count(verdict) for verdict in UNCOMPARED)

    def worse(self, *, strict: bool) -> bool:
        """True if a call got slower, or a firmware or a loaded function grew: by exact times and sizes, with
        `strict` by any clock."""
        slower = any(change.verdict == "slower" and (change.exact or strict) for change in self.changes)
        return slower or any((size.grown if size.own is None else size.own) > 0 for size in self.sizes)


def compare(base: Sequence[TimingRecord], head: Sequence[TimingRecord]) -> Comparison:
    """Compares `head` with `base`: of several records of a call, the newest."""
    before, after = (newest(records, lambda record: record.key) for records in (base, head))
    changes = [_change(key, before.get(key), after.get(key)) for key in dict.fromkeys([*before, *after])]
    changes.sort(key=lambda change: (ORDER.index(change.verdict), -change.weight))
    builds = dict.fromkeys(_rebuilt(before, after.values()))
    sizes = _sizes(before.values(), after.values())
    return Comparison(tuple(changes), tuple(sizes), base, head, tuple(builds))


def _change(key: tuple[str, str], base: TimingRecord | None, head: TimingRecord | None) -> Change:
    platform, call = key
    if base is None or head is None:
        before, after = (record.measurement if record else None for record in (base, head))
        return Change(platform, call, "new" if base is None else "gone", before, after)
    return judge(platform, call, base.measurement, head.measurement)


def judge(platform: str, call: str, base: Measurement, head: Measurement) -> Change:
    """Compares exact times by their difference alone, other times by a test of significance."""
    if base.clock != head.clock:
        note = f"base {base.clock}; head {head.clock}"
        return Change(platform, call, "not comparable", base, head, note=note)
    if base.subtracted != head.subtracted:
        note = "base net; head gross" if base.subtracted else "base gross; head net"
        return Change(platform, call, "not comparable", base, head, note=note)
    if base.clock.exact:
        return replace(_judge_exact(platform, call, base, head), counters=_counters(base, head))
    return _judge_noisy(platform, call, base, head)


def _counters(base: Measurement, head: Measurement) -> tuple[CounterChange, ...]:
    """Counters of both sets that differ, the largest change first. Counts are exact: any difference
    counts."""
    both = [name for name in base.counters if name in head.counters]
    if base.estimate != head.estimate:  # Cycles of two cores, or of two tables, are no change.
        both = [name for name in both if name not in ("cycles", MOST)]
    changes = [CounterChange(name, base.counter_per_call(name), head.counter_per_call(name)) for name in both]
    changed = [
        change
        for change in changes
        if abs(change.head - change.base) > counter_tolerance(change.name, base, head)
    ]
    return tuple(sorted(changed, key=lambda change: -abs(change.relative)))


def _judge_exact(platform: str, call: str, base: Measurement, head: Measurement) -> Change:
    """The function's own time, by both the median and the shortest repeat: one more interrupt in some repeats
    moves only one of them."""
    calling = _calling(base, head)
    ticks = head.typical_ticks - base.typical_ticks - calling
    median = head.summary.median - base.summary.median - calling
    limit = tolerance(base, head)
    differs = abs(ticks) > limit and abs(median) > limit and ticks * median > 0
    return Change(platform, call, _direction(ticks, differs), base, head, ticks)


def _calling(base: Measurement, head: Measurement) -> float:
    """Ticks per call by which the cost of calling the function differs; 0 where this is not known, as of
    calls that differ: the inclusive figure is their mean."""
    each = head.clock.ticks_per_instruction
    known = all("instructions" in item.inclusive and _alike(item) for item in (base, head))
    if each is None or not known:
        return 0.0
    base_calling, head_calling = (
        item.counter_per_call("instructions") - item.inclusive["instructions"] for item in (base, head)
    )
    return (head_calling - base_calling) * float(each)


def _alike(item: Measurement) -> bool:
    """True if the calls of all repeats took equally many instructions, but for the timer's share."""
    values = [item.per_call("instructions", sample) for sample in item.samples]
    return max(values) - min(values) <= counter_tolerance("instructions", item, item)


def tolerance(base: Measurement, head: Measurement) -> float:
    """The difference in ticks per call that the same firmware can show in exact times.

    The tolerance is the clock's rounding, and the timer's own share, which depends on the number of calls.
    """
    return base.resolution_ticks + head.resolution_ticks + timer_share(base, head)


def timer_share(base: Measurement, head: Measurement) -> float:
    """Cycles per call by which the timer's own share differs: 0 where batches have equal numbers of calls."""
    shares = [run.overhead.timer / (sample.number or 1) for run in (base, head) for sample in run.samples]
    return max(shares) - min(shares)


def counter_tolerance(name: str, base: Measurement, head: Measurement) -> float:
    """The difference of a counter per call that the same firmware can show: each batch has it once.

    The evaluator's loop takes fewer instructions than starting and stopping the timer, each accesses memory
    once or moves up to 8 bytes, and it is the same for batches of equal numbers.
    """
    if name in PEAKS:
        return 0.0
    instructions = timer_share(base, head) / float(head.clock.ticks_per_instruction or 1)
    return instructions * (8 if name.endswith("_bytes") else 1)


def _judge_noisy(platform: str, call: str, base: Measurement, head: Measurement) -> Change:
    before, after = base.summarized, head.summarized
    ticks, p_value = shift(before, after), mann_whitney(before, after)
    alone = base.clock.mode == "wall" and min(base.processes, head.processes) == 1
    if alone or least_p(len(before), len(after)) > SIGNIFICANT:
        note = "of one process: measure with --processes 10" if alone else "too few repeats"
        return Change(platform, call, "can't tell", base, head, ticks, p_value, note)
    small = base.clock.mode == "wall" and abs(ticks) < LEAST_WALL * base.typical_ticks
    differs = p_value < SIGNIFICANT and not small
    return Change(platform, call, _direction(ticks, differs), base, head, ticks, p_value)


def _direction(ticks: float, differs: bool) -> Verdict:
    if not differs or ticks == 0:
        return "same"
    return "slower" if ticks > 0 else "faster"


def _sizes(base: Collection[TimingRecord], head: Collection[TimingRecord]) -> Iterator[Growth]:
    before, after = newest_firmwares(base), newest_firmwares(head)
    for platform in before:
        if platform in after:
            old, new = before[platform], after[platform]
            yield Growth(platform, "flash", old.flash, new.flash, (_of(old, 0), _of(new, 0)))
            yield Growth(platform, "RAM", old.ram, new.ram, (_of(old, 1), _of(new, 1)))
    loaded = {row.key: row for row in base if row.code.symbols}
    for row in head:
        kept = loaded.get(row.key)
        if kept is not None and row.code.symbols:
            symbols = (kept.code.symbols, row.code.symbols)
            yield Growth(
                row.platform,
                f"code loaded for {row.call}",
                sum(kept.code.symbols.values()),
                sum(row.code.symbols.values()),
                symbols,
                row.code.function_bytes - kept.code.function_bytes,
            )


def _of(firmware: FirmwareRecord, memory: int) -> dict[str, int]:
    return {name: sizes[memory] for name, sizes in firmware.symbols.items() if sizes[memory]}


def _rebuilt(
    base: Mapping[tuple[str, str], TimingRecord], head: Collection[TimingRecord]
) -> Iterator[BuildChange]:
    """Firmware and code of calls that were compiled by another compiler or with other flags."""
    for record in head:
        earlier = base.get(record.key)
        if earlier is not None:
            for subject, (old, new) in _builds(earlier, record).items():
                if old != new:
                    yield BuildChange(subject, *_differing(old, new))


def _builds(base: TimingRecord, head: TimingRecord) -> dict[str, tuple[list[str], list[str]]]:
    """Compiler and flags of both, as words, if known for both."""
    firmwares = [
        f"{firmware.compiler} {firmware.flags}" if firmware else ""
        for firmware in (base.firmware, head.firmware)
    ]
    codes = [f"{run.code.compiler} {run.code.flags}" for run in (base, head)]
    names = {f"firmware of {head.platform}": firmwares, f"{head.call} on {head.platform}": codes}
    return {
        name: (old.split(), new.split()) for name, (old, new) in names.items() if old.strip() and new.strip()
    }


def _differing(base: Sequence[str], head: Sequence[str]) -> tuple[str, str]:
    """The words that only one side has; all words if only the order differs."""
    old, new = [row for row in base if row not in head], [row for row in head if row not in base]
    both = (old, new) if old or new else (base, head)
    return " ".join(both[0]) or "-", " ".join(both[1]) or "-"


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """The comparison's JSON; see docs/json.md."""
    return {
        "changes": [
            {
                "platform": change.platform,
                "call": change.call,
                "verdict": change.verdict,
                "note": change.note,
                "exact": change.exact,
                "base_ticks": change.base.typical_ticks if change.base else None,
                "head_ticks": change.head.typical_ticks if change.head else None,
                "change_ticks": change.ticks,
                "change_ratio": change.relative,
                "counters": [
                    {"counter": counter.name, "base": counter.base, "head": counter.head}
                    for counter in change.counters
                ],
                "p_value": change.p_value,
            }
            for change in comparison.changes
        ],
        "sizes": [
            {
                "platform": size.platform,
                "region": size.region,
                "base_bytes": size.base,
                "head_bytes": size.head,
                "change_bytes": size.grown,
                "symbols": [
                    {"symbol": change.symbol, "base_bytes": change.base, "head_bytes": change.head}
                    for change in growth(*size.symbols)
                ],
            }
            for size in comparison.sizes
        ],
        "built_otherwise": [asdict(change) for change in comparison.builds],
    }
