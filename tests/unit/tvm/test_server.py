# SPDX-License-Identifier: Apache-2.0
"""The server of TVM's TCP door, for clients that send nothing, are slow, or find a failing device."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from minrpc import EmulatorExitedError
from minrpc.tvm.rpc import server
from minrpc.tvm.rpc.served import serving
from minrpc.tvm.rpc.server import session_limit
from minrpc.wire import Argument

from tests.device.tvm_client import LIMIT_S, LentDevice, RefusedError, TvmClient
from tests.unit.client.conftest import Bench


@pytest.fixture
def source() -> LentDevice:
    return LentDevice(Bench().device)


class Said:
    """The server's messages; each line can be waited for."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._changed = threading.Condition()

    def __call__(self, line: str) -> None:
        with self._changed:
            self.lines.append(line)
            self._changed.notify_all()

    def wait_for(self, text: str) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: any(text in line for line in self.lines), LIMIT_S)


def test_who_says_nothing_gives_way_to_the_next(source: LentDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HELLO_S", 0.05)
    said = Said()
    with serving(source, said) as port, socket.create_connection(("127.0.0.1", port)):
        assert said.wait_for("is gone: timed out")
        monkeypatch.undo()
        with TvmClient(port, True) as client:
            assert client.call(client.library_function("inc"), 1) == 2


def test_a_client_may_be_silent_as_long_as_it_likes(
    source: LentDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client may be silent after its handshake."""
    limits: list[float | None] = []
    waiting = server.events_of

    def events_of(stream: Any, door: Any) -> Iterator[Any]:  # noqa: ANN401
        for event in waiting(stream, door):
            yield event
            limits.append(stream.gettimeout())

    monkeypatch.setattr(server, "events_of", events_of)
    with serving(source) as port, TvmClient(port, True) as client:
        assert client.call(client.library_function("inc"), 1) == 2
    assert set(limits) == {None}


def test_a_device_that_failed_is_not_given_to_the_next_client(source: LentDevice) -> None:
    """The client gets the device's message, and its connection ends."""

    def fail(_: Sequence[Argument]) -> None:
        raise EmulatorExitedError("it has gone")

    functions: dict[str, Callable[[Sequence[Argument]], None]] = {"test.fail": fail}
    with serving(source, functions=lambda _: functions) as port, TvmClient(port, True) as client:
        with pytest.raises(RefusedError, match="it has gone"):
            client.call(client.function("test.fail"))
        assert source.discarded == 1
        with pytest.raises(ConnectionError):
            client.answer()


def test_a_session_in_which_nothing_runs_ends_with_its_time(source: LentDevice) -> None:
    with (
        serving(source) as port,
        TvmClient(port, True, key="client:x -timeout=0.2") as client,
        pytest.raises(ConnectionResetError),
    ):
        client.answer()
    assert not source.interrupted.is_set()


@pytest.mark.parametrize(
    ("key", "limit"),
    [
        ("client:k", None),
        ("client:k -timeout=10", 10.0),
        ("client:k -timeout=0.25 -more", 0.25),
        ("client:k-timeout=10", None),
        ("client:k -timeout=ten", None),
    ],
)
def test_the_limit_that_a_client_names(key: str, limit: float | None) -> None:
    assert session_limit(key) == limit
