# SPDX-License-Identifier: Apache-2.0
"""Links by URL: TCP, Unix sockets, commands, RFC 2217 by ser2net; each leads to firmware for this machine."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from minrpc import (
    AmbiguousBoardError,
    ConfigurationError,
    HarnessError,
    LinkClosedError,
    PortBusyError,
    PortGoneError,
    Target,
    build,
    open_device,
    start,
)
from minrpc.errors import PortDeniedError
from minrpc.host import Deadline
from minrpc.transport import FdTransport, RemotePort, open_url, ports, set_raw
from serial.rfc2217 import PortManager
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo
from serial.urlhandler import protocol_loop

START_S = 30.0


@pytest.fixture(scope="module")
def firmware() -> str:
    """The program of a device whose link is its standard input."""
    return f"{build(Target.named('posix')).elf} --fd 0"


def increments(url: str) -> bool:
    with open_device(serial_port=url) as device:
        return bool(device.system_lib()["inc"](1) == 2)


def test_a_command(firmware: str) -> None:
    assert increments(f"exec:{firmware}")


class Served:
    """A server of streams: the firmware behind a connection, after some that are turned away."""

    def __init__(self, listener: socket.socket, firmware: str, turned_away: int = 0) -> None:
        self._listener = listener
        self._turned_away = turned_away
        self._argv = shlex.split(firmware)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        for _ in range(self._turned_away):
            self._listener.accept()[0].close()
        connection, _ = self._listener.accept()
        with connection:
            self.process = subprocess.Popen(self._argv, stdin=connection.fileno(), stdout=subprocess.DEVNULL)

    def stop(self) -> None:
        self._thread.join()
        self.process.kill()
        self.process.wait()
        self._listener.close()


def test_tcp(firmware: str) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    served = Served(listener, firmware)
    assert increments(f"socket://127.0.0.1:{listener.getsockname()[1]}")
    served.stop()


def test_tcp_whose_server_turns_clients_away_at_first(firmware: str) -> None:
    """A device acts in this way while it does not know yet that its last client has gone."""
    listener = socket.create_server(("127.0.0.1", 0))
    served = Served(listener, firmware, turned_away=1)
    assert increments(f"socket://127.0.0.1:{listener.getsockname()[1]}")
    served.stop()


def test_tcp_whose_server_has_another_client(firmware: str) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"socket://127.0.0.1:{listener.getsockname()[1]}"
    served = Served(listener, firmware, turned_away=2)
    with pytest.raises(LinkClosedError, match=f"{url}: the far end") as caught:
        open_device(serial_port=url, session_timeout_s=1.0)
    assert caught.value.next_step.startswith("another client may have the device, which serves one at a time")
    assert increments(url)
    served.stop()


@pytest.mark.parametrize("scheme", ["unix://", ""])
def test_a_unix_socket(firmware: str, tmp_path: Path, scheme: str) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "link"))
    listener.listen()
    served = Served(listener, firmware)
    assert increments(f"{scheme}{tmp_path / 'link'}")
    served.stop()


def test_tcp_does_not_hold_short_messages_back() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        link = open_url(f"socket://127.0.0.1:{server.getsockname()[1]}", 115200)
        assert isinstance(link, FdTransport)
        with socket.socket(fileno=os.dup(link.fileno())) as same:
            assert same.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        link.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture
def ser2net(firmware: str, tmp_path: Path) -> Iterator[str]:
    """The URL of a device on a terminal, which ser2net serves by RFC 2217."""
    if shutil.which("ser2net") is None:
        pytest.skip("ser2net is not installed: sudo apt-get install ser2net")
    master, slave = os.openpty()
    set_raw(slave)
    board = subprocess.Popen(shlex.split(firmware), stdin=master, stdout=subprocess.DEVNULL)
    port = free_port()
    config = tmp_path / "ser2net.yaml"
    config.write_text(
        "connection: &board\n"
        f"  accepter: telnet(rfc2217),tcp,127.0.0.1,{port}\n"
        f"  connector: serialdev,{os.ttyname(slave)},115200n81,local\n"
        "  options: {kickolduser: false}\n"
    )
    argv = ["ser2net", "-n", "-d", "-c", str(config), "-u"]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        waited = Deadline("ser2net", START_S)
        while not _listens(port):
            assert not waited.expired()
            assert server.poll() is None
        yield f"rfc2217://127.0.0.1:{port}"
        server.kill()
    board.kill()
    board.wait()
    os.close(master)
    os.close(slave)


def _listens(port: int) -> bool:
    """True if the kernel has a listening socket there: a connection would open the serial port."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(row[1].endswith(f":{port:04X}") and row[3] == "0A" for row in rows)


class Uart(protocol_loop.Serial):  # type: ignore[misc]
    """pyserial's own stand-in of a serial port, whose BREAKs are noted."""

    def __init__(self) -> None:
        self.breaks: list[bool] = []
        super().__init__("loop://")

    def _update_break_state(self) -> None:
        self.breaks.append(self._break_state)


def serve_rfc2217(listener: socket.socket, uart: Uart) -> None:
    connection, _ = listener.accept()

    class Written:
        write = staticmethod(connection.sendall)

    manager = PortManager(uart, Written())
    with connection:
        while data := connection.recv(1024):
            b"".join(manager.filter(data))


def test_a_break_by_rfc2217() -> None:
    """Against pyserial's server."""
    uart = Uart()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve_rfc2217, args=(listener, uart))
        thread.start()
        port = RemotePort(f"rfc2217://127.0.0.1:{listener.getsockname()[1]}", 115200)
        before = len(uart.breaks)
        port.send_break()
        port.close()
        thread.join()
    assert uart.breaks[before:] == [True, False]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_serial_port_of_another_machine(ser2net: str) -> None:
    assert increments(ser2net)
    # pyserial waits 3 s for an answer about modem lines, which a terminal has not.
    without_lines = f"{ser2net}?ign_set_control"
    with start(Target.named(serial_port=without_lines)):
        with pytest.raises((PortBusyError, PortGoneError)) as caught:
            open_url(without_lines, 115200)
        assert ser2net in str(caught.value)
    assert increments(without_lines)


WRONG: list[tuple[str, type[HarnessError], str]] = [
    ("socket://127.0.0.1:1", LinkClosedError, "can't be reached: Connection refused"),
    ("socket://no-such-host.invalid:1", LinkClosedError, "can't be reached"),
    ("socket://host", ConfigurationError, "no host and port"),
    ("rfc2217://127.0.0.1:1", PortGoneError, "refused"),
    ("unix:///no/such/socket", LinkClosedError, "No such file"),
    ("exec:", ConfigurationError, "names no command"),
    ("exec:sh -c 'exit", ConfigurationError, "sh -c 'exit: no closing quotation"),
    ("exec:no-such-program --x", HarnessError, "no-such-program can't be run: No such file"),
    ("usb://1", ConfigurationError, "no kind of link is called 'usb'"),
    ("/dev/no-such-port", PortGoneError, "is not there"),
]


@pytest.mark.parametrize(("url", "error", "message"), WRONG)
def test_a_link_that_can_not_be_opened(url: str, error: type[HarnessError], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        open_url(url, 115200)
    assert caught.value.next_step


def test_a_command_that_ignores_the_end_of_its_input_is_ended() -> None:
    link = open_url("exec:sh -c 'echo $$; exec sleep 600'", 115200)
    pid = int(link.read(START_S))
    link.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_command_that_ends_says_why() -> None:
    code = "import sys; sys.exit('no probe found')"
    with pytest.raises(LinkClosedError, match="has ended: exit status 1") as caught:
        open_device(serial_port=f"exec:{sys.executable} -c {shlex.quote(code)}")
    assert "no probe found" in str(caught.value)


def test_a_port_without_permission_names_the_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = tmp_path / "ttyACM0"
    port.touch()

    def refused(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("serial.serialposix.os.open", refused)
    with pytest.raises(PortDeniedError, match="no permission to open it") as caught:
        open_url(str(port), 115200)
    assert f"usermod -a -G {port.group()} $USER" in caught.value.next_step


def listed(device: str, location: str) -> ListPortInfo:
    info = ListPortInfo(device)
    info.vid, info.pid, info.serial_number, info.product = 0x0483, 0x374E, "066A", "ST-Link V3"
    info.description, info.hwid, info.location = "ST-Link V3", "USB VID:PID=0483:374E SER=066A", location
    return info


def test_ports_of_a_board_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("tty0", "tty2"):
        (tmp_path / name).touch()
    by_id = tmp_path / "by-id"
    by_id.mkdir()
    (by_id / "usb-STLINK_066A-if00").symlink_to(tmp_path / "tty0")
    (by_id / "usb-STLINK_066A-if02").symlink_to(tmp_path / "tty2")
    both = [listed(str(tmp_path / "tty0"), "1-1:1.0"), listed(str(tmp_path / "tty2"), "1-1:1.2")]
    monkeypatch.setattr(list_ports, "comports", lambda: both)
    monkeypatch.setattr(ports, "BY_ID", by_id)
    for wanted in ("066A", "0483:374e", "hwgrep://st-link"):
        with pytest.raises(AmbiguousBoardError) as caught:
            ports.find_port(wanted)
        assert "usb-STLINK_066A-if00" in str(caught.value)
        assert "usb-STLINK_066A-if02" in str(caught.value)
    assert ports.find_port("066A:if02") == str(tmp_path / "tty2")
    assert ports.find_port("hwgrep://066A&n=1") == str(tmp_path / "tty0")
    with pytest.raises(PortGoneError):
        ports.find_port("hwgrep://j-link")
    with pytest.raises(ConfigurationError, match="no regular expression"):
        ports.find_port("hwgrep://(")
