# SPDX-License-Identifier: Apache-2.0
"""The server of TVM's TCP door, for clients that send nothing, are slow, or find a failing device."""

from __future__ import annotations

import ctypes
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from minrpc import EmulatorExitedError
from minrpc.host.process import run_compiler
from minrpc.tvm.client_limits import Limits
from minrpc.tvm.served import serving
from minrpc.tvm.server import session_limit
from minrpc.wire.requests import CallFunc, InitServer
from minrpc.wire.values import Argument, Dialect

from tests.device.tvm_client import LIMIT_S, LentDevice, RefusedError, TvmClient
from tests.unit.client.conftest import Bench

_SO_ATTACH_FILTER = 26


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


def trickle(port: int, data: bytes, gone: threading.Event) -> None:
    """Send a byte each 20 ms until the server disconnects."""
    with socket.create_connection(("127.0.0.1", port)) as slow, suppress(OSError):
        for byte in data:
            slow.sendall(bytes([byte]))
            if gone.wait(0.02):
                return


def test_a_slow_hello_keeps_nobody_out(source: LentDevice) -> None:
    """The time limit is of the whole handshake, and another client is served meanwhile."""
    said, hello = Said(), struct.pack("<ii", 0xFF271, 1000) + bytes(1000)
    with serving(source, said, limits=Limits(hello_s=0.5)) as port:
        gone = threading.Event()
        slow = threading.Thread(target=trickle, args=(port, hello, gone))
        slow.start()
        with TvmClient(port, True) as client:
            assert client.call(client.library_function("inc"), 1) == 2
        assert said.wait_for("no whole handshake came for 0.5 s")
        gone.set()
        slow.join()


def test_a_client_without_a_whole_request_is_told_and_gives_way(source: LentDevice) -> None:
    with serving(source, limits=Limits(idle_s=0.3)) as port, TvmClient(port, True) as silent:
        inc = silent.library_function("inc")
        with TvmClient(port, True) as client:
            assert client.call(client.library_function("inc"), 1) == 2
        with pytest.raises(RefusedError, match=r"no whole request came for 0\.3 s, the server's limit"):
            silent.call(inc, 1)


def test_a_client_that_never_asked_gets_no_answer(source: LentDevice) -> None:
    """Its packing is not known, and an answer that it can't read would end its process."""
    with serving(source, limits=Limits(idle_s=0.1)) as port, TvmClient(port, True) as silent:
        silent.send(InitServer(Dialect.V0_8_0.value, ()))
        assert silent.begun()
        with pytest.raises(ConnectionResetError, match="0 of"):
            silent.answer()


def test_a_client_whose_machine_is_gone_gives_way(source: LentDevice) -> None:
    """A socket filter drops all that comes to the client, so that it acknowledges nothing any more."""
    said = Said()
    nothing = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0))  # BPF: accept 0 bytes
    program = struct.pack("HP", 1, ctypes.addressof(nothing))
    with serving(source, said, limits=Limits(keep_alive_s=1)) as port, TvmClient(port, True) as gone:
        assert gone.library_function("inc")
        gone.connection.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
        with TvmClient(port, True) as client:
            assert client.call(client.library_function("inc"), 1) == 2
        assert said.wait_for("is gone: its machine does not answer any more")


def test_a_compiler_ends_when_its_client_leaves(source: LentDevice, tmp_path: Path) -> None:
    begun = threading.Event()

    def compiles(_: Sequence[Argument]) -> None:
        begun.set()
        run_compiler(["sleep", "600"], tmp_path, 600.0)

    functions: dict[str, Callable[[Sequence[Argument]], None]] = {"test.compiles": compiles}
    with serving(source, functions=lambda _: functions) as port:
        with TvmClient(port, True) as leaving:
            leaving.send(CallFunc(leaving.function("test.compiles"), ()))
            assert begun.wait(LIMIT_S)
        with TvmClient(port, True) as client:
            assert client.call(client.library_function("inc"), 1) == 2


def test_too_many_clients_are_told_and_those_before_are_served(source: LentDevice) -> None:
    said = Said()
    with serving(source, said, limits=Limits(waiting=0)) as port, TvmClient(port, True) as first:
        inc = first.library_function("inc")
        for today in (True, False):
            with (
                TvmClient(port, today) as refused,
                pytest.raises(RefusedError, match="0 clients wait already"),
            ):
                refused.function("runtime.SystemLib")
        assert first.call(inc, 1) == 2


def test_a_request_that_is_too_long_is_told_and_the_session_goes_on(source: LentDevice) -> None:
    with serving(source, limits=Limits(session_bytes=3000)) as port, TvmClient(port, True) as client:
        upload = client.function("tvm.rpc.server.upload")
        for size in (8000, 1 << 20):
            with pytest.raises(RefusedError, match=r"a request of \d+ bytes: the limit is 3000"):
                client.call(upload, "m.o", bytes(size))
        client.call(upload, "m.o", bytes(2000))


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


@pytest.mark.parametrize(
    "error", [MemoryError(), RecursionError("too deep"), KeyError("name"), AssertionError()]
)
def test_no_error_of_a_client_ends_the_server(source: LentDevice, error: Exception) -> None:
    """Errors that nobody expects cost the client its session, also before its first request."""

    def fail(_: Sequence[Argument]) -> None:
        raise error

    functions: dict[str, Callable[[Sequence[Argument]], None]] = {"test.fail": fail}
    with serving(source, functions=lambda _: functions) as port:
        with (
            TvmClient(port, True) as client,
            pytest.raises(RefusedError, match=f"failed: {type(error).__name__}"),
        ):
            client.call(client.function("test.fail"))
        with TvmClient(port, True) as client:
            assert client.call(client.library_function("inc"), 1) == 2


def test_uploads_have_limits_and_end_with_the_session(source: LentDevice) -> None:
    said = Said()
    with serving(source, said, limits=Limits(session_bytes=100, files=2)) as port:
        with TvmClient(port, True) as client:
            upload = client.function("tvm.rpc.server.upload")
            client.call(upload, "a", bytes(60))
            client.call(upload, "a", bytes(80))
            with pytest.raises(RefusedError, match="files may have 100 bytes"):
                client.call(upload, "b", bytes(21))
            client.call(upload, "b", bytes(20))
            with pytest.raises(RefusedError, match="may have 2 files"):
                client.call(upload, "c", b"")
        assert said.wait_for("3 uploads; 2 files of 100 bytes removed")
        with TvmClient(port, True) as client, pytest.raises(RefusedError, match="there is no file a"):
            client.call(client.function("tvm.rpc.server.download"), "a")
