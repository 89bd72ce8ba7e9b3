# SPDX-License-Identifier: Apache-2.0
"""A measurement as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from minrpc.timing.measurement import MOST, Measurement, MemoryUse
from minrpc.timing.record import Record
from minrpc.timing.summary import least_samples
from minrpc.timing.units import count, percent, quantity


def record_text(record: Record) -> str:
    """The measurement, its clock and its statistics; one fact per line."""
    lines = [f"{record.call} on {record.platform}"]
    width = max(13, *(len(name) for name in record.measurement.counters or [""]))
    lines += [f"  {name:<{width}} {value}" for name, value in _facts(record.measurement)]
    return "\n".join(lines)


def _facts(one: Measurement) -> Iterator[tuple[str, str]]:
    summary = one.summary
    step = one.overhead.step
    steps = f"; advances by {quantity(one.clock.seconds(step), 's')} at once" if step > 1 else ""
    yield "clock", f"{one.clock}{steps}"
    yield "median", f"{_both(one, summary.median)}, MAD {_both(one, summary.mad)}"
    yield "mean", f"{_both(one, summary.mean)}, std {_both(one, summary.std)}"
    yield "min, max", f"{_both(one, summary.min)}, {_both(one, summary.max)}"
    yield "95 % interval", _interval(one)
    if one.instructions is not None and "instructions" not in one.counters:
        yield "instructions", f"{count(one.instructions)} a call"
    for name in one.counters:
        if name == "cycles":
            yield "core cycles", f"{_estimated(one)}; {one.estimate}"
        elif name != MOST:
            yield name.replace("_", " "), _counter(one, name)
    if one.groups:
        yield "measured in", " then ".join(", ".join(group) for group in one.groups)
    if one.memory is not None:
        yield from _memory(one.memory)
    yield "repeats", _repeats(one)
    yield "outliers", _outliers(one)
    yield "drift", _drift(one)
    yield "overhead", _overhead(one)


def _both(one: Measurement, cycles: float) -> str:
    return f"{count(cycles, 3)} cycles ({quantity(one.clock.seconds(cycles), 's')})"


def _counter(one: Measurement, name: str) -> str:
    """Per call; where repeats differ, by how much: an interrupt's share, or a cache's."""
    values = [one.per_call(name, sample) for sample in one.samples]
    low, high = min(values), max(values)
    spread = f", up to {count(high, 3)} in a repeat" if high != low else ""
    doubt = "; so narrow a counter may have gone round" if name in one.doubtful else ""
    return f"{count(one.counter_per_call(name), 3)} a call{spread}{doubt}"


def _estimated(one: Measurement) -> str:
    """Both ends, where they differ."""
    least, most = one.counter_per_call("cycles"), one.counter_per_call(MOST)
    return _counter(one, "cycles") if least == most else f"{count(least, 3)} to {count(most, 3)} a call"


def _interval(one: Measurement) -> str:
    interval = one.summary.interval
    if interval is None:
        return f"of the median: not known, it takes {least_samples()} repeats"
    span = f"{count(interval.low, 3)} to {count(interval.high, 3)} cycles"
    return f"of the median: {span}, known to {one.summary.precision * 100:.2g} %"


def _memory(memory: MemoryUse) -> Iterator[tuple[str, str]]:
    named = (("arena", memory.arena), ("heap", memory.heap))
    if memory.stack is not None:
        bound = "" if memory.bound is None else f"; the compiler's bound is {memory.bound:,}"
        if memory.beyond_bound:
            bound += ", which can't be: an error of ours or of the bound"
        elif memory.within_bound:
            bound += ": what is never written of a frame does not show"
        yield "stack", f"{memory.stack:,} bytes{bound}"
    for name, value in named:
        if value is not None:
            yield name, f"{value:,} bytes at the most"


def _repeats(one: Measurement) -> str:
    numbers = sorted({sample.number for sample in one.samples})
    calls = f"{numbers[0]:,}" if len(numbers) == 1 else f"{numbers[0]:,} to {numbers[-1]:,}"
    coarse = sum(sample.coarse for sample in one.samples)
    by_coarse = (
        f"; {coarse} by the device's slower clock, as the counter was not to be trusted" if coarse else ""
    )
    return f"{len(one.samples)} of {calls} calls{by_coarse}"


def _outliers(one: Measurement) -> str:
    found = one.summary.outliers
    if not found:
        return "none"
    named = [f"repeat {index + 1}: {count(one.cycles_per_call[index], 3)} cycles" for index in found[:4]]
    more = f" and {len(found) - 4} more" if len(found) > 4 else ""
    return f"{len(found)}, kept ({'; '.join(named)}{more})"


def _drift(one: Measurement) -> str:
    drift = one.summary.drift
    if drift is None:
        return "not known, it takes 4 repeats"
    if not drift.significant:
        return "none"
    share = drift.slope * len(one.samples) / one.summary.median if one.summary.median else 0.0
    return f"{percent(share)} from the first repeat to the last (p = {drift.p_value:.1g})"


def _overhead(one: Measurement) -> str:
    timer, call = count(one.overhead.timer), count(one.overhead.call)
    cost = f"timer {timer} cycles a repeat, loop and empty call {call} cycles a call"
    return f"{cost}; {'subtracted' if one.subtracted else 'not subtracted'}"
