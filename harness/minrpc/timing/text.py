# SPDX-License-Identifier: Apache-2.0
"""A measurement as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from minrpc.timing.comparison_text import counter_title, inclusive_text
from minrpc.timing.measurement import MOST, Measurement, MemoryUse
from minrpc.timing.record import TimingRecord
from minrpc.timing.summary import Summary, least_samples
from minrpc.timing.units import count, percent, quantity


def record_text(record: TimingRecord) -> str:
    """The measurement, its clock and its statistics; one fact per line."""
    lines = [f"{record.call} on {record.platform}"]
    width = max(13, *(len(name) for name in record.measurement.counters or [""]))
    lines += [f"  {name:<{width}} {value}" for name, value in _facts(record.measurement)]
    return "\n".join(lines)


def units_text(measurement: Measurement) -> str:
    """The plural of the unit that the summary is of."""
    return "processes" if measurement.summarized_by == "process" else "repeats"


def median_text(summary: Summary) -> str:
    """The precision of the median, as a clause."""
    if summary.interval is None:
        return "the median's interval is not known"
    return f"the median is known to {percent(summary.precision, 2, '')}"


def _facts(measurement: Measurement) -> Iterator[tuple[str, str]]:
    summary = measurement.summary
    step = measurement.overhead.step
    steps = f"; advances by {quantity(measurement.clock.seconds(step), 's')} at once" if step > 1 else ""
    yield "clock", f"{measurement.clock}{steps}"
    yield "median", f"{_both(measurement, summary.median)}, MAD {_both(measurement, summary.mad)}"
    yield "mean", f"{_both(measurement, summary.mean)}, std {_both(measurement, summary.std)}"
    yield "min, max", f"{_both(measurement, summary.min)}, {_both(measurement, summary.max)}"
    yield "95 % interval", _interval(measurement)
    if measurement.inclusive:
        named = [
            f"{inclusive_text(measurement, name)} {counter_title(name)}" for name in measurement.inclusive
        ]
        yield "inclusive", f"{', '.join(named)} a call: the function with its callees"
    for name in measurement.counters:
        if name == "cycles" and MOST in measurement.counters:
            yield "core cycles", f"{_estimated(measurement)}; {measurement.estimate}"
        elif name != MOST:
            yield name.replace("_", " "), _counter(measurement, name)
    if measurement.groups:
        yield "measured in", " then ".join(", ".join(group) for group in measurement.groups)
    if measurement.memory is not None:
        yield from _memory(measurement.memory)
    yield "repeats", _repeats(measurement)
    yield "outliers", _outliers(measurement)
    yield "drift", _drift(measurement)
    yield "overhead", _overhead(measurement)


def _both(measurement: Measurement, ticks: float) -> str:
    return f"{count(ticks, 3)} ticks ({quantity(measurement.clock.seconds(ticks), 's')})"


def _counter(measurement: Measurement, name: str) -> str:
    """The value per call, and the difference between repeats, if any: an effect of interrupts or a cache."""
    values = [measurement.per_call(name, sample) for sample in measurement.samples]
    low, high = min(values), max(values)
    spread = f", up to {count(high, 3)} in a repeat" if high != low else ""
    doubt = "; the counter is narrow and may have wrapped" if name in measurement.doubtful else ""
    return f"{count(measurement.counter_per_call(name), 3)} a call{spread}{doubt}"


def _estimated(measurement: Measurement) -> str:
    """Both ends of the range if they differ."""
    least, most = measurement.counter_per_call("cycles"), measurement.counter_per_call(MOST)
    if least == most:
        return _counter(measurement, "cycles")
    span = f"{count(least, 3)} to {count(most, 3)} a call"
    return f"{span} by operands and conditions, which QEMU shows from version 9 on, and unaligned stores"


def _interval(measurement: Measurement) -> str:
    interval = measurement.summary.interval
    if interval is None:
        return f"of the median: not known, it takes {least_samples()} {units_text(measurement)}"
    span = f"{count(interval.low, 3)} to {count(interval.high, 3)} ticks"
    if interval.low > 0:
        known = f"known to {percent(measurement.summary.precision, 2, '')}"
    else:  # Without the overhead.
        known = "in which these repeats don't tell the call from an empty one"
    alone = ", in this process" if measurement.clock.mode == "wall" and measurement.processes == 1 else ""
    return f"of the median{alone}: {span}, {known}"


def _memory(memory: MemoryUse) -> Iterator[tuple[str, str]]:
    named = (("arena", memory.arena), ("heap", memory.heap))
    if memory.stack is not None:
        bound = "" if memory.bound is None else f"; the compiler's bound is {memory.bound:,}"
        if memory.beyond_bound:
            bound += ", which is impossible: the measurement or the bound is wrong"
        elif memory.within_bound:
            bound += ": bytes of a frame that are never written do not show"
        yield "stack", f"{memory.stack:,} bytes{bound}"
    for name, value in named:
        if value is not None:
            yield name, f"{value:,} bytes at the most"


def _repeats(measurement: Measurement) -> str:
    numbers = sorted({sample.number for sample in measurement.samples})
    calls = f"{numbers[0]:,}" if len(numbers) == 1 else f"{numbers[0]:,} to {numbers[-1]:,}"
    coarse = sum(sample.coarse for sample in measurement.samples)
    by_coarse = (
        f"; {coarse} by the device's slower clock, since the counter was not reliable" if coarse else ""
    )
    starts = f", in {measurement.processes} processes" if measurement.processes > 1 else ""
    return f"{len(measurement.samples)} of {calls} calls{starts}{by_coarse}"


def _outliers(measurement: Measurement) -> str:
    outliers = measurement.summary.outliers
    if not outliers:
        return "none"
    values = [(index + 1, count(measurement.summarized[index], 3)) for index in outliers[:4]]
    named = [f"{measurement.summarized_by} {number}: {ticks} ticks" for number, ticks in values]
    more = f" and {len(outliers) - 4} more" if len(outliers) > 4 else ""
    return f"{len(outliers)}, kept ({'; '.join(named)}{more})"


def _drift(measurement: Measurement) -> str:
    summary, each = measurement.summary, measurement.summarized_by
    drift = summary.drift
    if drift is None:
        return f"not known, it takes 4 {units_text(measurement)}"
    if not drift.significant:
        return "none"
    share = drift.slope * (summary.count - 1) / summary.median if summary.median else 0.0
    return f"{percent(share)} from the first {each} to the last (p = {drift.p_value:.1g})"


def _overhead(measurement: Measurement) -> str:
    timer, call = count(measurement.overhead.timer), count(measurement.overhead.call)
    cost = f"timer {timer} ticks a repeat, loop and empty call {call} ticks a call"
    return f"{cost}; {'subtracted' if measurement.subtracted else 'not subtracted'}"
