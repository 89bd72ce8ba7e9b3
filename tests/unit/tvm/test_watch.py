# SPDX-License-Identifier: Apache-2.0
"""Causes outside that end a client's session."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator

import pytest
from minrpc.tvm.watch import Watch

LIMIT_S = 60.0


class Side:
    """The server's end of a client's connection, the client's end, and whether the running call was
    interrupted."""

    def __init__(self) -> None:
        self.ours, self.its = socket.socketpair()
        self.ours.settimeout(LIMIT_S)
        self.interrupted = threading.Event()

    def watch(self, stop_fd: int | None = None, limit_s: float | None = None) -> Watch:
        return Watch(self.ours, stop_fd, limit_s, self.interrupted.set)


@pytest.fixture
def side() -> Iterator[Side]:
    made = Side()
    with made.ours, made.its:
        yield made


def test_no_request_begins_once_the_client_has_gone(side: Side) -> None:
    with side.watch() as watch:
        side.its.close()
        watch._thread.join(LIMIT_S)
        with pytest.raises(ConnectionResetError, match="the client left without a word"):
            watch.begin()
    assert not side.interrupted.is_set()


def test_a_session_whose_time_is_up_waits_for_nothing_more(side: Side) -> None:
    with side.watch(limit_s=0.01) as watch:
        assert side.ours.recv(1) == b""
        assert watch.reason == "the session's 0.01 s are over, as its client wanted"
    assert not side.interrupted.is_set()


def test_a_server_that_stops_ends_a_session_in_which_nothing_runs(side: Side) -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb"), os.fdopen(writer, "wb", buffering=0) as stop, side.watch(reader) as watch:
        stop.write(b"x")
        assert side.ours.recv(1) == b""
        assert watch.reason == "the server stops"


def test_what_runs_is_interrupted(side: Side) -> None:
    with side.watch() as watch:
        watch.begin()
        side.its.close()
        assert side.interrupted.wait(LIMIT_S)
        assert watch.reason == "the client left while its request ran"
