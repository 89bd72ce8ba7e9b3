# SPDX-License-Identifier: Apache-2.0
"""Truth of times on the host's clock: intervals, and verdicts on measurements of the same program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import Any, Final

import numpy as np
from minrpc.publish.recording import CallOptions, record_call
from minrpc.timing import Measurement
from minrpc.timing.compare import judge

from minrpc_bench.peers import Peers
from minrpc_bench.rows import Goal, Row

_MEASUREMENTS: Final = 40
_PROCESSES: Final = 10
_COVERED: Final = Goal("at least", 90.0, "value")
_ALARMS: Final = Goal("at most", 2.0, "value")
_CALLS: Final[dict[str, tuple[Any, ...]]] = {
    "add": (*[np.ones(1024, np.float32)] * 2, np.zeros(1024, np.float32)),
    "spin": (1000,),
}


def measure(peers: Peers) -> list[Row]:
    """The rows of a platform without an emulator: of each call, measurements one after another."""
    if peers.platform.starts != "process":
        return []
    options = CallOptions(processes=_PROCESSES, counters=(), memory=False)
    made = [
        [
            record_call(peers.server, name, *arguments, options=options).record.measurement
            for _ in range(_MEASUREMENTS)
        ]
        for name, arguments in _CALLS.items()
    ]
    return rows(peers.platform.name, made)


def rows(platform: str, calls: Sequence[Sequence[Measurement]]) -> list[Row]:
    """Rows with a goal, by measurements of one program in the order of time; the baseline is one process.

    calls: measurements of each call.
    """
    note = (
        f"{sum(map(len, calls))} measurements, each of {_PROCESSES} starts; baseline: repeats of one "
        "process, which claim to hold in this process only, taken as if they were starts"
    )
    alone = [[_as_starts(item) for item in same] for same in calls]
    return [
        Row("wall", name, platform, "%", percent(calls), percent(alone), goal=goal, note=note)
        for name, percent, goal in (
            ("intervals that hold the common median", covered, _COVERED),
            ("neighbours that compare calls slower or faster", alarms, _ALARMS),
        )
    ]


def _as_starts(measurement: Measurement) -> Measurement:
    """The repeats of the first process only, each as if it were a process."""
    first = [sample for sample in measurement.samples if sample.process == 0]
    return replace(measurement, samples=tuple(replace(item, process=at) for at, item in enumerate(first)))


def covered(calls: Sequence[Sequence[Measurement]]) -> float:
    """The percentage of intervals that hold the median of all measurements of the same call."""
    held = []
    for same in calls:
        common = median(ticks for item in same for ticks in item.summarized)
        for item in same:
            interval = item.summary.interval
            held.append(interval is not None and interval.low <= common <= interval.high)
    return 100 * sum(held) / len(held)


def alarms(calls: Sequence[Sequence[Measurement]]) -> float:
    """The percentage of neighbours, measured one after the other, that `compare` calls slower or faster."""
    verdicts = [judge("", "", before, after).verdict for same in calls for before, after in pairwise(same)]
    return 100 * sum(verdict in ("slower", "faster") for verdict in verdicts) / len(verdicts)
