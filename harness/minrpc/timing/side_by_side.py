# SPDX-License-Identifier: Apache-2.0
"""One call on several platforms, side by side."""

from __future__ import annotations

from collections.abc import Sequence

from minrpc.reports.markdown import table
from minrpc.timing.record import Record
from minrpc.timing.units import count, quantity

NOTE = "Instructions are counted by QEMU, which knows no pipelines: they are not a core's cycles."


def side_by_side(records: Sequence[Record]) -> str:
    """A table of the same call on each platform: instructions of the call, their ratio to the first that has
    them, time, flash and RAM of the firmware. What a platform can't tell is left blank.
    """
    known = [one.measurement.instructions for one in records]
    first = next((one for one in known if one), None)
    head = ["platform", "instructions a call", "ratio", "time a call", "flash", "RAM"]
    lines = [_line(record, own, first) for record, own in zip(records, known, strict=True)]
    note = f"\n\n{NOTE}" if first else ""
    return f"### {records[0].call}\n\n{table(head, lines, right=range(1, 6))}{note}"


def _line(record: Record, instructions: float | None, first: float | None) -> list[str]:
    measurement, firmware = record.measurement, record.firmware
    counted = "" if instructions is None else f"{instructions:,.2f}"
    ratio = f"{instructions / first:.3f}" if instructions and first else ""
    seconds = quantity(measurement.clock.seconds(measurement.summary.median), "s")
    sizes = [count(firmware.flash), count(firmware.ram)] if firmware else ["", ""]
    return [record.platform, counted, ratio, seconds, *sizes]
