# SPDX-License-Identifier: Apache-2.0
"""After a failure: the device's own report of its link and its memory, if it still answers."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from minrpc.client import DeviceInfo, Session
from minrpc.errors import HarnessError
from minrpc.host.deadline import Deadline
from minrpc.pipeline.connecting import session_on
from minrpc.running import RunningDevice

# Limits in seconds: a device that works answers at once. The second limit is wall time, for a busy host.
_ANSWER_S: Final = 1.0
_TOTAL_S: Final = 10.0


def state_lines(running: RunningDevice, session: Session | None) -> list[str]:
    """Lines of text: counts of both sides, and the device's memory.

    session: the client that failed; it is used only if its session still runs.

    Sends one or two requests with short limits; raises nothing.
    """
    lines = [] if session is None else [_counted("the host's reader", asdict(session.link_counters))]
    if not running.alive() or running.hangs:
        return lines
    try:
        info = _ask(running, session)
    except HarnessError as error:
        return [*lines, f"the device does not answer any more: {error.message}"]
    return [
        *lines,
        _counted("the device, since it started", info.link_counts()),
        f"arrays: {info.arena_used} of {info.arena_size} bytes in use, {info.arena_peak} at the most, "
        f"{info.arena_largest_free} free in one piece",
        f"stack: {info.stack_peak} of {info.stack_size} bytes at the most (0: not known)",
    ]


def _counted(who: str, counts: dict[str, int]) -> str:
    shown = ", ".join(f"{name} {count}" for name, count in counts.items())
    return f"{who}: {shown}"


def _ask(running: RunningDevice, session: Session | None) -> DeviceInfo:
    """The device's info. A running session must not be replaced: its client would wait for answers."""
    if session is not None and session.in_session:
        try:
            return session.info(_ANSWER_S)
        except HarnessError:
            if session.in_session:
                raise
    total = Deadline("post mortem", _TOTAL_S)
    fresh = session_on(
        Session, running, total=total, session_timeout_s=_ANSWER_S, call_timeout_s=_ANSWER_S, resend=False
    )
    return fresh.info()
