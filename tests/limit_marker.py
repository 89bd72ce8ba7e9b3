# SPDX-License-Identifier: Apache-2.0
"""A limit for each test, so that a test that hangs fails and is named.

The limit is of time that the test could use: where more processes want to run than there are processors, the
limit grows in proportion. It interrupts the test by an exception, so that the report has the device's console
and the wire's last bytes as for each failure, and the stacks of all threads.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Generator
from types import FrameType
from typing import Final

import pytest

# Ten times the time of the longest test, in seconds: of the default run, and of tests marked slow.
LIMIT_S: Final = 120.0
SLOW_LIMIT_S: Final = 1200.0
# The limit does not grow further than this.
_MOST_TIMES: Final = 4.0


def limit_s(item: pytest.Item) -> float:
    """The test's limit in seconds: its marker's, or that of all tests of its kind."""
    given = item.get_closest_marker("limit")
    if given is not None:
        return float(given.args[0])
    return SLOW_LIMIT_S if item.get_closest_marker("slow") else LIMIT_S


def crowd() -> float:
    """Processes that want to run, for each processor: 1 or more."""
    return min(_MOST_TIMES, max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0))))


def stacks() -> str:
    """The stacks of all other threads of this process."""
    frames = sys._current_frames()
    shown = [
        f"{thread.name}:\n{''.join(traceback.format_stack(frames[thread.ident]))}"
        for thread in threading.enumerate()
        if thread.ident in frames and thread is not threading.current_thread()
    ]
    return "\n".join(shown)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    if threading.current_thread() is not threading.main_thread():
        return (yield)
    begin, limit = time.monotonic(), limit_s(item)

    def expired(signum: int, frame: FrameType | None) -> None:
        __tracebackhide__ = True
        ran = time.monotonic() - begin
        left = limit * crowd() - ran
        if left > 0:
            signal.setitimer(signal.ITIMER_REAL, left)
            return
        pytest.fail(f"the test ran for {ran:.0f} s, and its limit is {limit:g} s\n{stacks()}".rstrip())

    former = signal.signal(signal.SIGALRM, expired)
    former_left, _ = signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
        signal.setitimer(signal.ITIMER_REAL, former_left)  # A test that runs pytest in its process has one.
