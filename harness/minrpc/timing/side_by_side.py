# SPDX-License-Identifier: Apache-2.0
"""One call on several platforms, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from minrpc.reports.markdown import table
from minrpc.timing.record import TimingRecord
from minrpc.timing.units import count, quantity

STACK: Final = "stack_bytes"
NOTE: Final = (
    "Instructions of the function with its callees, counted by QEMU, which knows no pipelines: "
    "they are not a core's cycles."
)


def side_by_side(records: Sequence[TimingRecord]) -> str:
    """A table of the same call on each platform: instructions of the call, their ratio to the first that has
    them, time, bytes of the function itself, flash and RAM of the firmware, and the depth of the stack if it
    was counted. A value that a platform can't give is left blank.
    """
    known = [record.measurement.inclusive.get("instructions") for record in records]
    first = next((item for item in known if item), None)
    stack = any(STACK in record.measurement.counters for record in records)
    head = ["platform", "instructions a call", "ratio", "time a call", "code", "flash", "RAM"]
    lines = [_line(record, own, first) for record, own in zip(records, known, strict=True)]
    if stack:
        head.append("stack")
        lines = [[*line, _stack(record)] for line, record in zip(lines, records, strict=True)]
    note = f"\n\n{NOTE}" if first else ""
    return f"### {records[0].call}\n\n{table(head, lines, right=range(1, len(head)))}{note}"


def _line(record: TimingRecord, instructions: float | None, first: float | None) -> list[str]:
    measurement, firmware = record.measurement, record.firmware
    counted = "" if instructions is None else f"{instructions:,.2f}"
    ratio = f"{instructions / first:.3f}" if instructions and first else ""
    seconds = quantity(measurement.clock.seconds(measurement.summary.median), "s")
    sizes = [count(firmware.flash), count(firmware.ram)] if firmware else ["", ""]
    code = count(record.code.function_bytes) if record.code.function_bytes else ""
    return [record.platform, counted, ratio, seconds, code, *sizes]


def _stack(record: TimingRecord) -> str:
    measurement = record.measurement
    return count(measurement.counter_per_call(STACK)) if STACK in measurement.counters else ""
