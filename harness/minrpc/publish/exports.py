# SPDX-License-Identifier: Apache-2.0
"""A run for other programs: github-action-benchmark, Bencher, and TVM's profiling reports.

Formats: https://github.com/benchmark-action/github-action-benchmark (customSmallerIsBetter),
https://bencher.dev/docs/reference/bencher-metric-format (BMF), and TVM's `runtime.profiling.Report` up to
v0.18, as `Report.from_json` reads it (include/tvm/runtime/profiling.h).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from minrpc.publish.run import Run
from minrpc.timing.record import Record

_KEPT: Final = ("instructions", "loads", "stores", "cache_misses", "stack_bytes")


class Figure(NamedTuple):
    """A number of a run, of which less is better. low, high: how far it may be wrong, where that is known."""

    call: str
    name: str
    unit: str
    value: float
    low: float | None = None
    high: float | None = None
    extra: str = ""


def figures(run: Run) -> Iterator[Figure]:
    """Of each record: its time, its counters; of each firmware: its sizes, once."""
    seen = set()
    for record in run.records:
        yield from _of(record)
        firmware = record.firmware
        if firmware is not None and record.platform not in seen:
            seen.add(record.platform)
            yield Figure(record.platform, "flash", "bytes", firmware.flash)
            yield Figure(record.platform, "ram", "bytes", firmware.ram)


def _of(record: Record) -> Iterator[Figure]:
    one = record.measurement
    call = f"{record.call} on {record.platform}"
    interval = one.summary.interval
    low, high = (
        (one.clock.seconds(interval.low) * 1e9, one.clock.seconds(interval.high) * 1e9)
        if interval and not one.clock.exact
        else (None, None)
    )
    yield Figure(
        call, "latency", "ns", one.clock.seconds(one.typical_cycles) * 1e9, low, high, str(one.clock)
    )
    for name in _KEPT:
        if name in one.counters:
            unit = "bytes" if name.endswith("_bytes") else "a call"
            yield Figure(call, name, unit, one.counter_per_call(name))


def action_benchmark(run: Run) -> str:
    """For github-action-benchmark, tool "customSmallerIsBetter"."""
    return _text([_entry(one) for one in figures(run)])


def _entry(one: Figure) -> dict[str, Any]:
    found: dict[str, Any] = {"name": f"{one.call}: {one.name}", "unit": one.unit, "value": one.value}
    if one.low is not None and one.high is not None:
        found["range"] = f"± {(one.high - one.low) / 2:.4g}"
    return {**found, "extra": one.extra} if one.extra else found


def bencher(run: Run) -> str:
    """For `bencher run --adapter json`: latency in nanoseconds, as its built-in measure is."""
    found: dict[str, dict[str, Any]] = {}
    for one in figures(run):
        bounds = {"lower_value": one.low, "upper_value": one.high}
        known = {name: value for name, value in bounds.items() if value is not None}
        found.setdefault(one.call, {})[one.name.replace("_", "-")] = {"value": one.value, **known}
    return _text(found)


def tvm_report(run: Run) -> str:
    """For TVM's `profiling.Report.from_json`: a call is a row, a platform a device."""
    totals: dict[str, float] = {}
    for record in run.records:
        totals[record.platform] = totals.get(record.platform, 0.0) + _microseconds(record)
    devices = {
        name: {"Duration (us)": {"microseconds": total}, "Count": {"count": _calls(run, name)}}
        for name, total in totals.items()
    }
    return _text(
        {
            "calls": [_call(record, totals[record.platform]) for record in run.records],
            "device_metrics": devices,
            "configuration": {name: {"string": text} for name, text in run.about.items()},
        }
    )


def _calls(run: Run, platform: str) -> int:
    return sum(record.platform == platform for record in run.records)


def _call(record: Record, total: float) -> dict[str, Any]:
    one = record.measurement
    microseconds = _microseconds(record)
    counters = {name: {"count": round(one.counter_per_call(name))} for name in one.counters}
    return {
        "Name": {"string": one.name},
        "Argument Shapes": {"string": ", ".join(record.arguments)},
        "Device": {"string": record.platform},
        "Count": {"count": 1},
        "Duration (us)": {"microseconds": microseconds},
        "Percent": {"percent": 100.0 * microseconds / total if total else 0.0},
        **counters,
    }


def _microseconds(record: Record) -> float:
    one = record.measurement
    return one.clock.seconds(one.typical_cycles) * 1e6


def _text(found: object) -> str:
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"
