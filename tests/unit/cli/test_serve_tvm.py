# SPDX-License-Identifier: Apache-2.0
"""`minrpc serve --tvm-port`: by itself, in a tracker, and its refusals."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from minrpc import ConfigurationError, Device
from minrpc.cli import main
from minrpc.host import sandbox
from minrpc.tvm.served import serving as serving_here
from minrpc.wire.dtypes import DataType
from minrpc.wire.requests import InitServer
from minrpc.wire.values import Dialect, DLTensor

from tests.device.tvm_client import RefusedError, TvmClient

INT8 = DataType(0, 8)


@contextmanager
def serving(*options: str, address: str = "127.0.0.1") -> Iterator[tuple[subprocess.Popen[str], int]]:
    argv = [sys.executable, "-m", "minrpc.cli", "serve", "--tvm-port", "0", *options]
    if sandbox.why_not():
        argv.append("--unsafe")
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if match := re.search(rf'tvm\.rpc\.connect\("{address}", (\d+)\)', line):
                break
        else:
            raise AssertionError("it ended")
        try:
            yield process, int(match[1])
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0


def add(client: TvmClient) -> bytes:
    arrays = [client.array(DLTensor(0, INT8, (1,)), bytes([value])) for value in (2, 3, 0)]
    client.call(client.library_function("add"), *arrays)
    return client.read(arrays[2])


@pytest.mark.parametrize("today", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_it_serves(today: bool) -> None:
    with serving() as (_, port):
        for _ in range(2):
            with TvmClient(port, today) as client:
                assert add(client) == b"\x05"


def test_a_client_that_left_while_its_request_ran_does_not_hold_up_the_next() -> None:
    with serving() as (_, port):
        with TvmClient(port, True) as leaving:
            from minrpc.wire.requests import CallFunc

            leaving.send(CallFunc(leaving.library_function("testing.hang"), []))
        with TvmClient(port, True) as client:
            assert add(client) == b"\x05"


def test_a_device_that_crashed_is_replaced() -> None:
    with serving() as (_, port):
        with TvmClient(port, True) as client, pytest.raises(RefusedError, match="killed by SIGSEGV"):
            client.call(client.library_function("testing.crash"))
        with TvmClient(port, True) as client:
            assert add(client) == b"\x05"


class NoDevice:
    """A `DeviceSource` without a device."""

    discarded = 0

    def open(self) -> Device:
        raise ConfigurationError("qemu-system-arm is gone", next_step="install it again")

    def interrupt(self) -> None:
        raise AssertionError("nothing runs")

    def discard(self) -> None:
        self.discarded += 1


@pytest.mark.parametrize("today", [True, False])
def test_a_device_that_does_not_start_is_told_in_the_clients_own_packing(today: bool) -> None:
    """TVM's client sends no request before its handshake; a message that it can't decode would end its
    process."""
    source = NoDevice()
    with serving_here(source) as port, TvmClient(port, today) as client:
        client.send(InitServer(Dialect.V0_8_0.value, ()))
        assert client.begun()
        with pytest.raises(RefusedError, match="qemu-system-arm is gone"):
            client.function("runtime.SystemLib")
    assert source.discarded == 1


def test_only_who_has_the_token_is_served(tmp_path: Path) -> None:
    token = "0123456789abcdef"
    (tmp_path / "token").write_text(f"{token}\n")
    tracker = TrackerModel()
    given = ("--token-file", str(tmp_path / "token"), "--bind", "0.0.0.0")
    with serving(*given, address="0.0.0.0") as (_, port):
        for key in ("client:", f"client:{token}0", f"client:x{token}"):
            with pytest.raises(RefusedError, match="0xff273"), TvmClient(port, True, key=key):
                pass
        with TvmClient(port, True, key=f"client:{token} -timeout=60") as client:
            assert add(client) == b"\x05"
    with serving(*given, "--tracker", f"127.0.0.1:{tracker.port}", "--key", "m3", address="0.0.0.0"):
        tracker.wait_for(1)
        assert tracker.put[0][0] == f"m3:{token}"
    tracker.thread.join(60)
    tracker.listener.close()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        *[
            (["--bind", a], "other machines may reach it")
            for a in ("0.0.0.0", "192.168.0.1", "localhost.lan")
        ],
        (["--token-file", "/dev/null"], "has no word of 16 or more letters"),
        (["--token-file", "/none"], "/none can't be read"),
    ],
)
def test_who_may_connect_is_said(options: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--tvm-port", "0", *options]) == 2
    assert text in capsys.readouterr().err


def test_where_the_kernel_forbids_the_sandbox_unsafe_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """For the loopback, and for clients with a token, too; the first line then says the consequence. Nothing
    is served."""
    monkeypatch.setattr(sandbox, "why_not", lambda: "bwrap: No permissions to create new namespace")
    command = ["serve", "--tvm-port", "70000"]
    (tmp_path / "token").write_text("0123456789abcdef")
    for token in ([], ["--token-file", str(tmp_path / "token")]):
        assert main([*command, *token]) == 2
        message = capsys.readouterr().err
        assert "can't be kept in a sandbox here: bwrap: No permissions to create new namespace" in message
        assert "or say --unsafe: clients run code as you do" in message
    assert main([*command, "--unsafe"]) == 2
    said = capsys.readouterr()
    assert said.out.startswith("UNSAFE: a client can read and change all that ")
    assert "can't listen" in said.err


def test_over_ipv6() -> None:
    with (
        serving("--bind", "::1", address="::1") as (_, port),
        socket.create_connection(("::1", port), timeout=60) as client,
    ):
        client.sendall(struct.pack("<ii", 0xFF271, 7) + b"client:")
        assert client.recv(4) == struct.pack("<i", 0xFF271)


class TrackerModel:
    """The tracker's side: remembers each put, and assigns no device."""

    def __init__(self, port: int = 0) -> None:
        self.put: list[tuple[str, list[object]]] = []
        self.told = threading.Condition()
        self.listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self) -> None:
        connection, _ = self.listener.accept()
        self.connection = connection
        with connection, connection.makefile("rwb") as stream:
            assert struct.unpack("<i", stream.read(4)) == (0x2F271,)
            stream.write(struct.pack("<i", 0x2F271))
            stream.flush()
            while head := stream.read(4):
                question = json.loads(stream.read(struct.unpack("<i", head)[0]))
                answer = json.dumps([key[1] for _, key in self.put] if question[0] == 7 else 0).encode()
                if question[0] == 3:
                    with self.told:
                        self.put.append((question[1], question[2]))
                        self.told.notify_all()
                stream.write(struct.pack("<i", len(answer)) + answer)
                stream.flush()

    def die(self) -> None:
        """Close both the listener and the connection."""
        self.listener.close()
        self.connection.shutdown(socket.SHUT_RDWR)
        self.thread.join(60)

    def wait_for(self, count: int) -> list[object]:
        with self.told:
            assert self.told.wait_for(lambda: len(self.put) >= count, timeout=60)
            return self.put[count - 1][1]


def test_in_a_tracker() -> None:
    tracker = TrackerModel()
    with serving("--tracker", f"127.0.0.1:{tracker.port}", "--key", "cortex-m3") as (_, port):
        for count in (1, 2):
            told_port, match_key = tracker.wait_for(count)
            assert told_port == port
            assert str(match_key).startswith("cortex-m3:")
            with TvmClient(port, True, key=f"client:{match_key} -timeout=10") as client:
                assert add(client) == b"\x05"
        tracker.wait_for(3)
        assert [name for name, _ in tracker.put] == ["cortex-m3"] * len(tracker.put)
        with pytest.raises(RefusedError, match="0xff273"), TvmClient(port, True, key="client:cortex-m3"):
            pass
        socket.create_connection(("127.0.0.1", port)).close()
        # Neither has used the key that the tracker still assigns.
        _, match_key = tracker.wait_for(3)
        with TvmClient(port, True, key=f"client:{match_key}") as client:
            assert add(client) == b"\x05"
    tracker.thread.join(60)
    tracker.listener.close()


def test_a_tracker_that_dies_and_comes_back() -> None:
    tracker = TrackerModel()
    with serving("--tracker", f"127.0.0.1:{tracker.port}", "--key", "cortex-m3") as (process, port):
        tracker.wait_for(1)
        tracker.die()
        assert process.stdout is not None
        assert "; the device is listed again when the tracker is back" in process.stdout.readline()
        again = TrackerModel(tracker.port)
        _, match_key = again.wait_for(1)
        with TvmClient(port, True, key=f"client:{match_key}") as client:
            assert add(client) == b"\x05"
    again.thread.join(60)
    again.listener.close()


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--unsafe", "--tvm-port", str(port)]) == 2
    output = capsys.readouterr().err
    assert f"can't listen at 127.0.0.1:{port}: Address already in use" in output
    assert "name another port, or 0 for a free port" in output


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ([], "serve takes one of --pty, --tvm-port and --pipe"),
        (["--pty", "/tmp/x", "--tvm-port", "0"], "serve takes one of --pty"),
        (["--pty", "/tmp/x", "--tracker", "a:1"], "--tracker: of no use without --tvm-port"),
        (["--pty", "/tmp/x", "--unsafe"], "--unsafe: of no use without --tvm-port"),
        (["--pipe", "/tmp/x", "--token-file", "/tmp/y"], "--token-file: of no use without --tvm-port"),
        (
            ["--unsafe", "--tvm-port", "0", "--tracker", "nowhere"],
            "--tracker nowhere: HOST:PORT was expected",
        ),
        (
            ["--unsafe", "--tvm-port", "0", "--tracker", "127.0.0.1:1", "--key", "a b"],
            "--key 'a b': a key is one word",
        ),
        (["--unsafe", "--tvm-port", "70000"], "can't listen at 127.0.0.1:70000"),
        (
            ["--unsafe", "--tvm-port", "0", "--tracker", "127.0.0.1:1"],
            "no tracker at 127.0.0.1:1: Connection refused",
        ),
    ],
)
def test_what_does_not_fit(options: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", *options]) != 0
    output = capsys.readouterr()
    assert text in output.out + output.err


@contextmanager
def socat(listens: str, to: str) -> Iterator[int]:
    """The port at which a socat listens."""
    command = ["socat", "-d", "-d", listens, to]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        found = (re.search(r"listening on .*:(\d+)", line) for line in process.stderr)
        try:
            yield next(int(match[1]) for match in found if match)
        finally:
            process.kill()


@pytest.mark.skipif(not (shutil.which("socat") and shutil.which("openssl")), reason="no socat, or no openssl")
def test_the_documented_lines_add_tls(tmp_path: Path) -> None:
    """A client whose certificate the server does not know reaches nothing."""
    for name in ("server", "client", "stranger"):
        paths = [str(tmp_path / f"{name}.{suffix}") for suffix in ("key", "crt", "pem")]
        words = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-subj",
            "/CN=localhost",
            "-keyout",
        ]
        subprocess.run([*words, paths[0], "-out", paths[1]], check=True, capture_output=True)
        Path(paths[2]).write_text(Path(paths[0]).read_text() + Path(paths[1]).read_text())
    listens = f"OPENSSL-LISTEN:0,reuseaddr,fork,cert={tmp_path}/server.pem,cafile={tmp_path}/client.crt"
    with serving() as (_, port), socat(listens, f"TCP:127.0.0.1:{port}") as secured:
        for name in ("stranger", "client"):
            to = f"OPENSSL:localhost:{secured},cert={tmp_path}/{name}.pem,cafile={tmp_path}/server.crt"
            with socat("TCP-LISTEN:0,bind=127.0.0.1,reuseaddr,fork", to) as own:
                if name == "client":
                    with TvmClient(own, True) as client:
                        assert add(client) == b"\x05"
                else:
                    with pytest.raises(OSError), TvmClient(own, True):  # noqa: PT011
                        pass
