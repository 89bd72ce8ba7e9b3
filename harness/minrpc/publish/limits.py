# SPDX-License-Identifier: Apache-2.0
"""Which limits of a project a run breaks, or a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from minrpc.targets.limits import Limit
from minrpc.timing.record import Record
from minrpc.timing.units import count, percent, quantity


@dataclass(frozen=True, slots=True)
class Broken:
    """A limit, and what is over it. subject: "add(int8[2]) on posix"; base: None where there is none."""

    limit: Limit
    subject: str
    base: float | None
    head: float

    def __str__(self) -> str:
        shown = _shown(self.limit.what, self.head)
        grown = ""
        if self.base is not None:
            change = percent((self.head - self.base) / self.base) if self.base else "from none"
            grown = f", {change} of {_shown(self.limit.what, self.base)}"
        return f"{self.subject}: {self.limit.what} {shown}{grown}; {self.limit.key} allows {self.limit.text}"


def broken_limits(
    limits: Sequence[Limit], head: Sequence[Record], base: Sequence[Record] = ()
) -> list[Broken]:
    """Those that `head` breaks, by itself or against `base`, each subject once."""
    before = _Bases(base)
    found = []
    for limit in limits:
        seen = set()
        for record in head:
            for subject, old, new in _judged(limit, record, before.of(limit, record)):
                if subject not in seen and not limit.allows(old, new):
                    found.append(Broken(limit, subject, old, new))
                seen.add(subject)
    return found


def idle_limits(limits: Sequence[Limit], head: Sequence[Record]) -> list[Limit]:
    """Those that nothing in `head` was held against: of another call or platform, or not measured."""
    return [limit for limit in limits if not any(True for one in head for _ in _judged(limit, one, None))]


def unchecked_limits(
    limits: Sequence[Limit], head: Sequence[Record], base: Sequence[Record] = ()
) -> list[Limit]:
    """Those of growth that something in `head` is subject to, and nothing in `base` to compare it with."""
    before = _Bases(base)
    return [
        limit
        for limit in limits
        if limit.kind != "most"
        and any(old is None for one in head for _, old, _ in _judged(limit, one, before.of(limit, one)))
    ]


class _Bases:
    """What each limit of a record is held against."""

    def __init__(self, base: Sequence[Record]) -> None:
        self._calls = {record.key: record for record in base}
        self._sizes = {record.platform: record for record in base if record.firmware is not None}

    def of(self, limit: Limit, record: Record) -> Record | None:
        return self._calls.get(record.key) if limit.function else self._sizes.get(record.platform)


def _judged(limit: Limit, record: Record, base: Record | None) -> Iterator[tuple[str, float | None, float]]:
    if limit.platform not in ("", record.platform):
        return
    if limit.function and limit.function != record.measurement.name:
        return
    new = _value(limit, record)
    if new is None:
        return
    old = _value(limit, base) if base is not None else None
    yield (f"{record.call} on {record.platform}" if limit.function else record.platform), old, new


def _value(limit: Limit, record: Record) -> float | None:
    """What the limit is of; None where it was not measured."""
    one, firmware = record.measurement, record.firmware
    if not limit.function:
        return None if firmware is None else float(getattr(firmware, limit.what))
    match limit.what:
        case "time":
            return one.clock.seconds(one.typical_cycles)
        case "cycles":
            return one.typical_cycles
        case "code":
            return float(sum(record.code.values())) if record.code else None
    if limit.what in one.counters:
        return one.counter_per_call(limit.what)
    return one.instructions if limit.what == "instructions" else None


def _shown(what: str, value: float) -> str:
    return quantity(value, "s") if what == "time" else count(value, 1)
