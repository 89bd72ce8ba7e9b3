# SPDX-License-Identifier: Apache-2.0
"""A device's messages to TVM's tracker, and their times."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from minrpc import ConfigurationError
from minrpc.tvm import tracker as module
from minrpc.tvm.tracker import Tracker, tracker_at

LIMIT_S = 60.0


class TrackerModel:
    """A tracker that serves one device. questions: all received questions. pending: the match keys that no
    client has taken."""

    def __init__(self) -> None:
        self.questions: list[list[object]] = []
        self.pending: list[object] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]

    def serve(self) -> None:
        connection, _ = self.listener.accept()
        with connection, connection.makefile("rwb") as stream:
            stream.write(stream.read(4))
            stream.flush()
            while head := stream.read(4):
                question = json.loads(stream.read(struct.unpack("<i", head)[0]))
                self.questions.append(question)
                answer = json.dumps(self.pending if question == [7] else 0).encode()
                stream.write(struct.pack("<i", len(answer)) + answer)
                stream.flush()


@contextmanager
def registered() -> Iterator[tuple[Tracker, TrackerModel]]:
    model = TrackerModel()
    thread = threading.Thread(target=model.serve)
    thread.start()
    try:
        with model.listener, Tracker("127.0.0.1", model.port, "mine", 1234) as tracker:
            yield tracker, model
    finally:
        thread.join(LIMIT_S)


def test_what_a_device_tells_of_itself() -> None:
    """The device sends no address: the tracker takes the address that it sees."""
    with registered() as (tracker, model):
        assert model.questions == [
            [5, {"key": "server:mine", "addr": [None, 1234]}],
            [3, "mine", [1234, tracker.match_key], None],
        ]


def test_a_key_that_nobody_has_taken_stays() -> None:
    with registered() as (tracker, model):
        model.pending = ["another", tracker.match_key]
        for _ in range(10):
            tracker.look()
        assert model.questions[2:] == [[7]] * 10


def test_a_key_that_was_taken_and_not_used_is_replaced() -> None:
    with registered() as (tracker, model):
        first = tracker.match_key
        for _ in range(3):
            tracker.look()
        assert tracker.match_key == first
        tracker.look()
        assert tracker.match_key != first
        assert model.questions[-1] == [3, "mine", [1234, tracker.match_key], None]
        assert not tracker.accepts(f"client:{first}")
        assert tracker.accepts(f"client:{tracker.match_key} -timeout=5")


def test_a_tracker_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device gives the tracker up. Otherwise the test's tracker would end the connection, which is
    another error."""
    monkeypatch.setattr(module, "_ANSWER_S", 0.05)
    told = threading.Event()

    def silent(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            told.wait(LIMIT_S)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=silent, args=(listener,))
        thread.start()
        port = listener.getsockname()[1]
        try:
            with pytest.raises(ConfigurationError, match=rf"no tracker at 127\.0\.0\.1:{port}: timed out"):
                Tracker("127.0.0.1", port, "mine", 1234).connect()
        finally:
            told.set()
            thread.join(LIMIT_S)


@pytest.mark.parametrize(
    ("where", "host", "port"),
    [("host:1", "host", 1), ("[::1]:9190", "::1", 9190), ("10.0.0.1:2", "10.0.0.1", 2)],
)
def test_where_a_tracker_is(where: str, host: str, port: int) -> None:
    found = tracker_at(where, "mine", 5)
    assert (found.host, found.port, found.key, found.served_port) == (host, port, "mine", 5)
