# SPDX-License-Identifier: Apache-2.0
"""Finds the limits of a project that a run or a comparison breaks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from minrpc.targets.limits import Limit
from minrpc.timing import Measurement
from minrpc.timing.compare import counter_tolerance, timer_share
from minrpc.timing.record import TimingRecord, newest, newest_firmwares
from minrpc.timing.units import count, percent, quantity

_TIMES: Final = ("time", "ticks")


@dataclass(frozen=True, slots=True)
class Broken:
    """A broken limit. subject: "add(int8[2]) on posix". base: the base's value, None without a base.
    estimate: the source of estimated cycles and their error, a line; "" for measured values.
    """

    limit: Limit
    subject: str
    base: float | None
    head: float
    estimate: str = ""

    def __str__(self) -> str:
        shown = _shown(self.limit.what, self.head)
        grown = ""
        if self.base is not None:
            change = percent((self.head - self.base) / self.base) if self.base else "from none"
            grown = f", {change} of {_shown(self.limit.what, self.base)}"
        known = f" ({self.estimate})" if self.estimate else ""
        allowed = f"{self.limit.key} allows {self.limit.text}"
        return f"{self.subject}: {self.limit.what} {shown}{grown}{known}; {allowed}"


def broken_limits(
    limits: Sequence[Limit], head: Sequence[TimingRecord], base: Sequence[TimingRecord] = ()
) -> list[Broken]:
    """Limits that `head` breaks, by itself or against `base`, each subject once."""
    before = _Bases(base)
    broken = []
    for limit in limits:
        seen = set()
        for record in head:
            for subject, old, new in _judged(limit, record, before.of(limit, record)):
                if subject not in seen and not limit.allows(old, new):
                    measured = record.measurement
                    estimated = limit.function and limit.what == "cycles" and "cycles" in measured.counters
                    broken.append(Broken(limit, subject, old, new, measured.estimate if estimated else ""))
                    seen.add(subject)
    return broken


def idle_limits(limits: Sequence[Limit], head: Sequence[TimingRecord]) -> list[Limit]:
    """Limits that apply to nothing in `head`: of another call or platform, or not measured."""
    return [limit for limit in limits if not any(True for row in head for _ in _judged(limit, row, None))]


def unchecked_limits(
    limits: Sequence[Limit], head: Sequence[TimingRecord], base: Sequence[TimingRecord] = ()
) -> list[Limit]:
    """Growth limits that apply to records in `head` which have no counterpart in `base`."""
    before = _Bases(base)
    return [
        limit
        for limit in limits
        if limit.kind != "most"
        and any(old is None for row in head for _, old, _ in _judged(limit, row, before.of(limit, row)))
    ]


class _Bases:
    """The values of `base` that a record's limits are compared with."""

    def __init__(self, base: Sequence[TimingRecord]) -> None:
        self._calls = newest(base, lambda record: record.key)
        self._firmwares = newest_firmwares(base)

    def of(self, limit: Limit, record: TimingRecord) -> TimingRecord | None:
        if limit.function:
            return self._calls.get(record.key)
        firmware = self._firmwares.get(record.platform)
        return replace(record, firmware=firmware) if firmware else None


def _judged(
    limit: Limit, record: TimingRecord, base: TimingRecord | None
) -> Iterator[tuple[str, float | None, float]]:
    if limit.platform not in ("", record.platform):
        return
    name = record.measurement.name
    if limit.function and limit.function not in (name, name.partition(" [")[0]):  # "scale [test_x[-O2]]"
        return
    new = _value(limit, record)
    if new is None:
        return
    old = None
    if base is not None:
        old, comparable = _comparable_values(limit, base, record)
        new = new if limit.kind == "most" else comparable
    yield (f"{record.call} on {record.platform}" if limit.function else record.platform), old, new


def _value(limit: Limit, record: TimingRecord) -> float | None:
    """The limited value of a record; None if it was not measured."""
    item, firmware = record.measurement, record.firmware
    if not limit.function:
        return None if firmware is None else float(getattr(firmware, limit.what))
    match limit.what:
        case "time":
            return item.clock.seconds(item.typical_ticks)
        case "ticks":
            return item.typical_ticks
        case "code":
            return float(sum(record.code.symbols.values())) if record.code.symbols else None
    if limit.what in item.counters:
        return item.counter_per_call(limit.what)
    return _instructions_from_time(item) if limit.what == "instructions" else None


def _instructions_from_time(measurement: Measurement) -> float | None:
    """Instructions of a call, computed from its time without the timer's own: right within a tick."""
    each = measurement.clock.ticks_per_instruction
    shares = [
        (sample.ticks - measurement.overhead.timer) / (sample.number or 1) for sample in measurement.samples
    ]
    return None if each is None else max(0.0, min(shares)) / float(each)


def _comparable_values(limit: Limit, base: TimingRecord, head: TimingRecord) -> tuple[float | None, float]:
    """The limited values of both, from the same source, without the effect of different batch sizes."""
    before, after = base.measurement, head.measurement
    old, new = _value(limit, base), _value(limit, head)
    assert new is not None
    if old is None or not limit.function or limit.what == "code":
        return old, new
    counted = [limit.what in value.counters for value in (before, after)]
    if limit.what == "cycles" and (counted[0] != counted[1] or before.estimate != after.estimate):
        return None, new  # Cycles of two cores, or of a core and of the device's clock, do not compare.
    if before.subtracted != after.subtracted or (limit.what in _TIMES and before.clock != after.clock):
        return None, new  # `compare` calls these "not comparable".
    if limit.what == "instructions" and counted[0] != counted[1]:
        old, new = _instructions_from_time(before), _instructions_from_time(after) or 0.0
    if limit.what in _TIMES and not counted[1]:
        share = timer_share(before, after)
        share = after.clock.seconds(share) if limit.what == "time" else share
    else:
        share = counter_tolerance(limit.what, before, after)
    if old is not None and new > old:
        new = max(old, new - share)
    return old, new


def _shown(what: str, value: float) -> str:
    return quantity(value, "s") if what == "time" else count(value, 1)
