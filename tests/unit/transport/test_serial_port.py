# SPDX-License-Identifier: Apache-2.0
"""Serial ports, with a pty's slave as the port: the same terminal layer, and no board needed."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from minrpc import AmbiguousBoardError, ConfigurationError, PortBusyError, PortGoneError, ResetError
from minrpc.transport import SerialTransport, find_port, processes_with_open, serial_port
from minrpc.transport.ports import choose
from serial.tools.list_ports_common import ListPortInfo


@pytest.fixture
def port() -> Iterator[tuple[int, str]]:
    """The board's end as a descriptor, and the port's path."""
    master, slave = os.openpty()
    path = os.ttyname(slave)
    os.close(slave)
    yield master, path
    os.close(master)


def test_bytes_pass_both_ways(port: tuple[int, str]) -> None:
    board, path = port
    link = SerialTransport(path, 115200)
    assert link.name == path
    link.write(bytes(range(256)), 1.0)
    assert os.read(board, 1000) == bytes(range(256))
    os.write(board, bytes(range(256)))
    assert link.read(10.0) == bytes(range(256))
    link.close()
    link.close()


def test_one_harness_at_a_time(port: tuple[int, str]) -> None:
    _, path = port
    link = SerialTransport(path, 115200)
    with pytest.raises(PortBusyError, match="in use"):
        SerialTransport(path, 115200)
    link.close()
    SerialTransport(path, 115200).close()


def test_the_holder_is_named(port: tuple[int, str], tmp_path: Path) -> None:
    _, path = port
    alias = tmp_path / "by-id"
    alias.symlink_to(path)
    script = (
        "import sys; from minrpc.transport import SerialTransport\n"
        "link = SerialTransport(sys.argv[1], 9600); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", script, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert any(f"(pid {holder.pid})" in process for process in processes_with_open(alias))
        with pytest.raises(PortBusyError) as caught:
            SerialTransport(str(alias), 9600)
        holder.communicate("")
    assert f"(pid {holder.pid})" in str(caught.value)
    SerialTransport(path, 9600).close()


def test_no_such_port(tmp_path: Path) -> None:
    with pytest.raises(PortGoneError, match="not there"):
        SerialTransport(str(tmp_path / "ttyACM9"), 115200)


def test_unplugged_in_use(port: tuple[int, str]) -> None:
    master, slave = os.openpty()
    link = SerialTransport(os.ttyname(slave), 115200)
    os.close(slave)
    os.close(master)
    with pytest.raises(PortGoneError):
        link.read(10.0)
    link.close()


def test_a_baud_rate_that_makes_no_sense(port: tuple[int, str]) -> None:
    with pytest.raises(ConfigurationError, match="baud"):
        SerialTransport(port[1], -5)


def board(device: str, serial_number: str, pid: int = 0x374B) -> ListPortInfo:
    info = ListPortInfo(device)
    info.vid, info.pid, info.serial_number, info.product = 0x0483, pid, serial_number, "ST-Link"
    return info


PORTS = [board("/dev/ttyACM0", "066A"), board("/dev/ttyACM1", "066B"), board("/dev/ttyACM2", "77", 0x5740)]


def test_a_board_by_number_or_id() -> None:
    assert choose("066B", PORTS) == "/dev/ttyACM1"
    assert choose("0483:5740", PORTS) == "/dev/ttyACM2"
    assert choose("ttyACM0", PORTS) == "/dev/ttyACM0"
    assert find_port("/dev/serial/by-id/x") == "/dev/serial/by-id/x"


def test_a_link_in_the_current_directory_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("L").symlink_to("/dev/null")
    assert find_port("L") == "L"


def test_several_boards_are_listed() -> None:
    with pytest.raises(AmbiguousBoardError, match="2 serial ports") as caught:
        choose("0483:374b", PORTS)
    assert len(caught.value.candidates) == 2
    assert "066A" in str(caught.value)
    assert "066B" in str(caught.value)


def test_no_board_matches() -> None:
    with pytest.raises(PortGoneError, match="'none'"):
        choose("none", PORTS)


def test_a_break_is_held_and_one_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[float] = []

    class Port:
        def send_break(self, seconds: float) -> None:
            if held:
                raise OSError(errno.EIO, "Input/output error")
            held.append(seconds)

    transport = SerialTransport.__new__(SerialTransport)
    monkeypatch.setattr(transport, "_port", Port(), raising=False)
    monkeypatch.setattr(transport, "name", "/dev/ttyACM0", raising=False)
    transport.send_break()
    assert held == [serial_port.PULSE_S]
    with pytest.raises(ResetError, match=r"/dev/ttyACM0 can't send a BREAK: .*Input/output error"):
        transport.send_break()


def test_a_line_that_was_pulled_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    set_to: list[tuple[str, bool]] = []

    class Port:
        def __setattr__(self, name: str, value: bool) -> None:
            set_to.append((name, value))

    transport = SerialTransport.__new__(SerialTransport)
    monkeypatch.setattr(transport, "_port", Port(), raising=False)
    monkeypatch.setattr(serial_port, "PULSE_S", 0.0)
    transport.pull("rts")
    transport.pull("dtr")
    assert set_to == [("rts", True), ("rts", False), ("dtr", True), ("dtr", False)]


def test_framing_errors_are_counted_from_the_opening_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the driver's TIOCGICOUNT, which terminals do not have."""
    frame = [7]

    def ioctl(fd: int, request: int, counts: bytearray) -> int:
        assert request == termios.TIOCGICOUNT
        counts[24:28] = frame[0].to_bytes(4, sys.byteorder)  # The seventh of serial_icounter_struct.
        return 0

    master, slave = os.openpty()
    with closing(SerialTransport(os.ttyname(slave), 115200)) as link:
        assert link.framing_errors() == 0
    monkeypatch.setattr("minrpc.transport.serial_port.fcntl", SimpleNamespace(ioctl=ioctl))
    with closing(SerialTransport(os.ttyname(slave), 115200)) as link:
        assert link.framing_errors() == 0
        frame[0] = 9
        assert link.framing_errors() == 2
    assert link.framing_errors() == 0
    os.close(master)
    os.close(slave)
