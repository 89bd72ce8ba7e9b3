# SPDX-License-Identifier: Apache-2.0
"""A board at a place of labgrid's: labgrid's own coordinator and exporter, a power switch, and this project's
firmware."""

from __future__ import annotations

import http.server
import os
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from minrpc import BoardBusyError, ConfigurationError, HarnessError, MissingError, Target, build, open_device
from minrpc.host import Deadline
from minrpc.host.owned_lock import DIRECTORY_VARIABLE
from minrpc.running.board import power_cycle
from minrpc.running.lease import lease

from tests.native import need_tools

pytestmark = [pytest.mark.slow, pytest.mark.extra("labgrid")]

ROOT = Path(__file__).parents[3]
START_S = 60.0
BIN = Path(sys.executable).parent


def client(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BIN / "labgrid-client"), *words], capture_output=True, text=True, check=False, timeout=START_S
    )


class Switch(http.server.BaseHTTPRequestHandler):
    """A power switch with a REST interface, which notes its requests."""

    asked: list[str]

    def do_GET(self) -> None:
        """Answers labgrid's model "simplerest": /relay/1/ and 0 or 1."""
        self.asked.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"1")

    def log_message(self, *_: object) -> None:
        """No-op: nothing is logged."""


@dataclass
class Desk:
    """A place with the firmware at a socket. asked: the requests to its power switch."""

    name: str
    asked: list[str]
    served: list[subprocess.Popen[bytes]] = field(default_factory=list)


@pytest.fixture
def coordinator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """labgrid's coordinator, named to all of its programs."""
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path / "locks"))
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setenv("LG_COORDINATOR", address)
    with running([str(BIN / "labgrid-coordinator"), "-l", address], tmp_path / "coordinator.log", tmp_path):
        wait_for(lambda: client("places").returncode == 0, tmp_path / "coordinator.log")
        yield address


class running:  # noqa: N801 - a context
    """A program whose output is in a file, and which is ended."""

    def __init__(self, argv: list[str], log: Path, directory: Path) -> None:
        with log.open("wb") as output:
            self._process = subprocess.Popen(argv, cwd=directory, stdout=output, stderr=output)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(START_S)


def wait_for(holds: object, log: Path) -> None:
    deadline = Deadline("labgrid", START_S)
    assert callable(holds)
    while not holds():
        assert not deadline.expired(), log.read_text()


@contextmanager
def exporter(coordinator: str, resources: Path) -> Iterator[None]:
    """labgrid's exporter of a file of resources, and the place "desk" with them."""
    words = [str(BIN / "labgrid-exporter"), "-c", coordinator, "-n", "rack", "--hostname", "127.0.0.1"]
    log = resources.with_suffix(".log")
    with running([*words, str(resources)], log, resources.parent):
        wait_for(lambda: "rack/desk" in client("resources").stdout, log)
        for action in (["create"], ["add-match", "rack/desk/*"]):
            made = client("-p", "desk", *action)
            assert made.returncode == 0, made.stderr
        yield


@pytest.fixture
def desk(coordinator: str, tmp_path: Path) -> Iterator[Desk]:
    """The place "desk" with a serial port and a power switch."""
    asked: list[str] = []
    handler = type("Noting", (Switch,), {"asked": asked})
    switch = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=switch.serve_forever, daemon=True).start()
    listener = socket.create_server(("127.0.0.1", 0))
    desk = Desk("desk", asked)
    threading.Thread(target=serve, args=(listener, desk), daemon=True).start()
    resources = tmp_path / "exporter.yaml"
    resources.write_text(
        "desk:\n"
        f"  NetworkSerialPort: {{host: 127.0.0.1, port: {listener.getsockname()[1]}, protocol: raw}}\n"
        "  NetworkPowerPort:\n"
        "    model: simplerest\n"
        f"    host: http://127.0.0.1:{switch.server_address[1]}/relay/{{index}}/{{value}}\n"
        "    index: 1\n"
    )
    with exporter(coordinator, resources):
        yield desk
    listener.close()
    switch.shutdown()
    switch.server_close()
    for process in desk.served:
        process.kill()
        process.wait()


def serve(listener: socket.socket, desk: Desk) -> None:
    argv = shlex.split(f"{build(Target.named('posix')).elf} --fd 0")
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            process = subprocess.Popen(argv, stdin=connection.fileno(), stdout=subprocess.DEVNULL)
        desk.served.append(process)


def holder() -> str:
    shown = client("-p", "desk", "show").stdout
    return next(line.split(":", 1)[1].strip() for line in shown.splitlines() if "acquired:" in line)


def test_a_place_is_acquired_powered_used_and_released(desk: Desk) -> None:
    with open_device(serial_port="labgrid:desk") as device:
        assert device.system_lib()["inc"](1) == 2
        assert holder() != "None"
        assert desk.asked == ["/relay/1/1"]
    assert holder() == "None"
    with pytest.raises(HarnessError, match="no such serial port"):
        lease(Target.named(serial_port="labgrid:desk/jtag"))
    assert holder() == "None"
    held = lease(Target.named(serial_port="labgrid:desk"))
    power_cycle(held.target, Deadline("power", START_S))
    assert desk.asked[-2:] == ["/relay/1/0", "/relay/1/1"]
    held.release()


def test_a_terminal_that_labgrids_exporter_serves(coordinator: str, tmp_path: Path) -> None:
    """The exporter starts ser2net, whose RFC 2217 is the link; the board's rate is the link's."""
    need_tools("ser2net")
    port = tmp_path / "tty"
    argv = [sys.executable, "-m", "tests.unit.plugin.board", str(build(Target.named("posix")).elf), str(port)]
    with subprocess.Popen([*argv, "57600"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as board:
        assert board.stdout is not None
        board.stdout.readline()
        resources = tmp_path / "exporter.yaml"
        resources.write_text(f"desk: {{RawSerialPort: {{port: {port.readlink()}, speed: 115200}}}}\n")
        with exporter(coordinator, resources):
            for _ in range(2):
                with open_device(serial_port="labgrid:desk", baud=57600) as device:
                    assert device.system_lib()["inc"](1) == 2
            with pytest.raises(HarnessError, match="115200 baud"):
                open_device(serial_port="labgrid:desk", baud=115200, session_timeout_s=2.0).connect()
            assert holder() == "None"
        board.communicate()


def test_a_place_of_somebody_else_and_of_ones_own(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LG_USERNAME", "ann")
    assert client("-p", "desk", "acquire").returncode == 0
    # Acquired by hand before the tests: used, and still acquired afterwards.
    lease(Target.named(serial_port="labgrid:desk")).release()
    assert "ann" in holder()
    monkeypatch.setenv("LG_USERNAME", "bob")
    with pytest.raises(BoardBusyError) as caught:
        lease(Target.named(serial_port="labgrid:desk"))
    assert "/ann" in str(caught.value)


HOLD = """
import sys
from minrpc import Target
from minrpc.running.lease import lease
held = lease(Target.named(serial_port="labgrid:desk"))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("again", [False, True])
def test_a_killed_run_s_place_is_released_unless_the_user_took_it_since(desk: Desk, again: bool) -> None:
    argv = [sys.executable, "-c", HOLD]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == b"held\n"
        killed.kill()
    assert holder() != "None"
    if again:
        assert client("-p", "desk", "release").returncode == 0
        assert client("-p", "desk", "acquire").returncode == 0
    lease(Target.named(serial_port="labgrid:desk")).release()
    assert (holder() == "None") is not again


def test_a_resource_that_is_broken_or_gone(
    coordinator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exporter's ser2net fails, which breaks its resource; then the exporter ends."""
    (tmp_path / "ser2net").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "ser2net").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    resources = tmp_path / "exporter.yaml"
    resources.write_text("desk: {RawSerialPort: {port: /dev/ptmx, speed: 115200}}\n")
    with exporter(coordinator, resources):
        broken = "rack/desk/NetworkSerialPort/RawSerialPort of the place desk is broken"
        with pytest.raises(HarnessError, match=broken):
            lease(Target.named(serial_port="labgrid:desk"))
    wait_for(lambda: "rack/desk" not in client("resources").stdout, tmp_path / "coordinator.log")
    with pytest.raises(HarnessError, match="start labgrid-exporter, which offers the resource"):
        lease(Target.named(serial_port="labgrid:desk"))
    assert holder() == "None"


def test_what_is_wrong_with_a_place(coordinator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HarnessError) as caught:
        lease(Target.named(serial_port="labgrid:nowhere"))
    assert "nowhere" in str(caught.value)
    with pytest.raises(ConfigurationError, match="names no place"):
        lease(Target.named(serial_port="labgrid:"))
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MissingError, match="labgrid-client is not installed"):
        lease(Target.named(serial_port="labgrid:desk"))
