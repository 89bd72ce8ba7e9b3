# SPDX-License-Identifier: Apache-2.0
"""Exports a run to other programs: github-action-benchmark, Bencher, and TVM's profiling reports.

Formats: https://github.com/benchmark-action/github-action-benchmark (customSmallerIsBetter),
https://bencher.dev/docs/reference/bencher-metric-format (BMF), and TVM's `runtime.profiling.Report` up to
v0.18, as `Report.from_json` reads it (include/tvm/runtime/profiling.h).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from minrpc.publish.run_record import RunRecord
from minrpc.timing.record import TimingRecord, newest_firmwares

_KEPT: Final = ("instructions", "loads", "stores", "cache_misses", "stack_bytes")


class Figure(NamedTuple):
    """A figure of a run; less is better. low, high: bounds of its error, if known."""

    call: str
    name: str
    unit: str
    value: float
    low: float | None = None
    high: float | None = None
    extra: str = ""


def figures(run: RunRecord) -> Iterator[Figure]:
    """The figures: time and counters of each record; sizes of each firmware, once."""
    for record in run.records:
        yield from _of(record)
    for platform, firmware in newest_firmwares(run.records).items():
        yield Figure(platform, "flash", "bytes", firmware.flash)
        yield Figure(platform, "ram", "bytes", firmware.ram)


def _of(record: TimingRecord) -> Iterator[Figure]:
    item = record.measurement
    call = f"{record.call} on {record.platform}"
    interval = item.summary.interval
    low, high = (
        (item.clock.seconds(interval.low) * 1e9, item.clock.seconds(interval.high) * 1e9)
        if interval and not item.clock.exact
        else (None, None)
    )
    yield Figure(
        call, "latency", "ns", item.clock.seconds(item.typical_ticks) * 1e9, low, high, str(item.clock)
    )
    for name in _KEPT:
        if name in item.counters:
            unit = "bytes" if name.endswith("_bytes") else "a call"
            yield Figure(call, name, unit, item.counter_per_call(name))


def action_benchmark(run: RunRecord) -> str:
    """JSON for github-action-benchmark, tool "customSmallerIsBetter"."""
    return _text([_entry(figure) for figure in figures(run)])


def _entry(figure: Figure) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": f"{figure.call}: {figure.name}",
        "unit": figure.unit,
        "value": figure.value,
    }
    if figure.low is not None and figure.high is not None:
        entry["range"] = f"± {(figure.high - figure.low) / 2:.4g}"
    return {**entry, "extra": figure.extra} if figure.extra else entry


def bencher(run: RunRecord) -> str:
    """JSON for `bencher run --adapter json`: latency in nanoseconds, as in Bencher's built-in measure."""
    calls: dict[str, dict[str, Any]] = {}
    for figure in figures(run):
        bounds = {"lower_value": figure.low, "upper_value": figure.high}
        known = {name: value for name, value in bounds.items() if value is not None}
        calls.setdefault(figure.call, {})[figure.name.replace("_", "-")] = {"value": figure.value, **known}
    return _text(calls)


def tvm_report(run: RunRecord) -> str:
    """JSON for TVM's `profiling.Report.from_json`: a call is a row, a platform a device."""
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


def _calls(run: RunRecord, platform: str) -> int:
    return sum(record.platform == platform for record in run.records)


def _call(record: TimingRecord, total: float) -> dict[str, Any]:
    item = record.measurement
    microseconds = _microseconds(record)
    counters = {name: {"count": round(item.counter_per_call(name))} for name in item.counters}
    return {
        "Name": {"string": item.name},
        "Argument Shapes": {"string": ", ".join(record.measurement.arguments)},
        "Device": {"string": record.platform},
        "Count": {"count": 1},
        "Duration (us)": {"microseconds": microseconds},
        "Percent": {"percent": 100.0 * microseconds / total if total else 0.0},
        **counters,
    }


def _microseconds(record: TimingRecord) -> float:
    item = record.measurement
    return item.clock.seconds(item.typical_ticks) * 1e6


def _text(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"
