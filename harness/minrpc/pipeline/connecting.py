# SPDX-License-Identifier: Apache-2.0
"""A session on a running device, with the limits of its target."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, Unpack

from minrpc.client import Session
from minrpc.host.deadline import Deadline
from minrpc.running import RunningDevice
from minrpc.targets import SessionFields
from minrpc.transport import Transport

SessionKind = TypeVar("SessionKind", bound=Session)


def session_on(
    kind: type[SessionKind],
    running: RunningDevice,
    *,
    total: Deadline | None = None,
    transport: Transport | None = None,
    from_boot: bool = False,
    on_close: Callable[[], None] | None = None,
    **given: Unpack[SessionFields],
) -> SessionKind:
    """A `kind` on `running`, which runs on after the session's end; see `connect` for the arguments."""
    target = running.target.changed(**given)
    return kind(
        transport or running.transport,
        running,
        total=total,
        session_timeout_s=target.session_timeout_s,
        call_timeout_s=target.call_timeout_s,
        resend=running.process is None if target.resend is None else target.resend,
        direct=target.direct,
        keep_link=transport is None,
        from_boot=from_boot,
        on_close=on_close,
    )
