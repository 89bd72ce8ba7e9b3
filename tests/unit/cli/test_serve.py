# SPDX-License-Identifier: Apache-2.0
"""`minrpc serve`, as a process of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from minrpc import PLATFORMS, PortBusyError, Target, build, open_device
from minrpc.transport import open_terminal
from minrpc.wire.framing import Deframer, Frame, encode_frame
from minrpc.wire.replies import Return, decode_reply
from minrpc.wire.requests import CallFunc, Request, encode_request, get_global_func
from minrpc.wire.session_layer import HEADER, MessageType, encode_message
from minrpc.wire.values import Dialect, Handle

from tests.native import need_platform
from tests.unit.transport.test_relay import fill

WAIT_S = 60


@pytest.fixture
def link(tmp_path: Path) -> Path:
    return tmp_path / "device"


@pytest.fixture(params=["posix", pytest.param("bare_mps2_an385", marks=pytest.mark.slow)])
def platform(request: pytest.FixtureRequest) -> str:
    need_platform(PLATFORMS[request.param])
    return str(request.param)


@pytest.fixture
def server(platform: str, link: Path) -> Iterator[subprocess.Popen[str]]:
    """A device, served at `link`, which exists when the test starts."""
    build(Target.named(platform))  # A build shows its progress on standard error.
    argv = [sys.executable, "-m", "minrpc.cli", "serve", "--platform", platform, "--pty", str(link)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            while "-> " not in process.stdout.readline():
                assert process.poll() is None, process.communicate()[1]
            yield process
        finally:
            process.kill()


@pytest.fixture
def booted(server: subprocess.Popen[str], link: Path) -> subprocess.Popen[str]:
    """The served device, after it has answered."""
    with open_device(serial_port=str(link)) as device:
        device.connect()
    return server


def children_of(pid: int) -> list[int]:
    """The processes that any thread of `pid` has started."""
    lists = (path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children"))
    return [int(child) for text in lists for child in text.split()]


# Memory that a session with numbered requests keeps for its replies (minrpc_resend_reserve); no other memory
# is left in use.
RESERVE = 544


def made(terminal: str) -> tuple[str, int | None]:
    """A pseudo-terminal and the time of its creation, None if it is gone: its number may be used again."""
    try:
        return terminal, os.stat(terminal).st_ctime_ns
    except FileNotFoundError:
        return terminal, None


@pytest.mark.usefixtures("server")
def test_clients_come_one_after_another(link: Path) -> None:
    for number in range(3):
        with open_device(serial_port=str(link)) as device:
            assert device.info().arena_used == RESERVE
            device.empty((100,), "int8")
            assert device.system_lib()["inc"](number) == number + 1


@pytest.mark.usefixtures("server")
def test_device_outlives_a_reset_and_a_client_that_just_goes(link: Path) -> None:
    with open_device(serial_port=str(link)) as device:
        device.reset()
    code = f"import os; from minrpc import open_device; open_device(serial_port={str(link)!r}); os._exit(9)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=WAIT_S).returncode == 9
    with open_device(serial_port=str(link)) as device:
        assert device.system_lib()["inc"](1) == 2


@pytest.mark.usefixtures("server", "one_case")
def test_a_check_over_a_port(link: Path, platform: str, minrpc: Callable[..., tuple[int, str, str]]) -> None:
    status, out, err = minrpc("check", "--platform", platform, "--serial-port", str(link))
    assert (status, "FAILED" in out) == (0, False), err
    assert "  clock " in out


class RawClient:
    """A client that sees each message, of any session, and need not wait for an answer. The device has
    booted, so a start is sent once.
    """

    def __init__(self, link: Path, nonce: int) -> None:
        self.transport = open_terminal(link)
        self._deframer = Deframer()
        self._write(encode_message(nonce, MessageType.START_INIT, b"\x01"))
        self.session_id, kind, _ = self.next_message()
        assert (self.session_id & 0xFF, kind) == (nonce, MessageType.START_REPLY)

    def next_message(self) -> tuple[int, int, bytes]:
        """Session id, type and body of the next message."""
        while True:
            came = self.transport.read(WAIT_S)
            assert came
            for event in self._deframer.feed(came):
                assert isinstance(event, Frame), event
                session_id, kind = HEADER.unpack_from(event.payload)
                return session_id, kind, event.payload[HEADER.size :]

    def look_up(self, name: str) -> int:
        """The handle of a function of the system library."""
        self._request(get_global_func(f":{name}"))
        session_id, kind, body = self.next_message()
        assert (session_id, kind) == (self.session_id, MessageType.NORMAL)
        reply = decode_reply(body, Dialect.V0_8_0)
        assert isinstance(reply, Return)
        assert isinstance(reply.values[0], Handle)
        return reply.values[0].value

    def call(self, handle: int, *args: int) -> None:
        """Call the function without waiting for its answer."""
        self._request(CallFunc(handle, args))

    def _request(self, request: Request) -> None:
        packet = encode_request(request, Dialect.V0_8_0)
        self._write(encode_message(self.session_id, MessageType.NORMAL, packet))

    def _write(self, message: bytes) -> None:
        self.transport.write(encode_frame(message), WAIT_S)


@pytest.mark.usefixtures("booted")
def test_a_client_hears_nothing_of_the_call_that_another_has_left(link: Path) -> None:
    """The first client leaves while its function runs; the device answers when the second client is
    connected."""
    first = RawClient(link, 7)
    first.call(first.look_up("spin"), 50_000_000)
    first.transport.close()
    second = RawClient(link, 9)
    assert second.look_up("inc")
    second.transport.close()


def test_a_signal_ends_it_while_the_device_takes_nothing(
    booted: subprocess.Popen[str], platform: str, link: Path
) -> None:
    client = RawClient(link, 7)
    client.call(client.look_up("testing.hang"))
    with closing(client.transport):
        assert fill(client.transport)
        booted.send_signal(signal.SIGTERM)
        out, err = booted.communicate(timeout=WAIT_S)
    assert (booted.returncode, err) == (0, "")
    assert out.endswith(f"{platform}: stopped\n")


COPIES = """
import sys
import numpy as np
from minrpc import open_device
device = open_device(serial_port=sys.argv[1])
data = np.zeros(200_000, np.int8)
array = device.empty(data.shape, data.dtype)
print("copying", flush=True)
while True:
    array.copy_from(data)
"""


@pytest.fixture
def copying(server: subprocess.Popen[str], link: Path) -> Iterator[subprocess.Popen[str]]:
    """Another harness process, in the middle of a copy."""
    argv = [sys.executable, "-c", COPIES, str(link)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "copying\n"
        yield process
        process.kill()


def test_a_second_harness_is_told_who_has_the_board(copying: subprocess.Popen[str], link: Path) -> None:
    with pytest.raises(PortBusyError, match="is in use") as caught:
        open_device(serial_port=str(link))
    assert any(f"pid {copying.pid} of " in holder for holder in caught.value.holders)
    assert copying.poll() is None


def test_a_client_that_is_killed_in_mid_copy_leaves_board_and_port_free(
    copying: subprocess.Popen[str], link: Path
) -> None:
    copying.kill()
    copying.wait()
    with open_device(serial_port=str(link)) as device:
        assert device.info().arena_used == RESERVE
        assert device.system_lib()["inc"](1) == 2


@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, *(pytest.param(one, marks=pytest.mark.slow) for one in (signal.SIGINT, signal.SIGHUP))],
)
def test_a_signal_ends_it_and_leaves_nothing(
    server: subprocess.Popen[str], platform: str, link: Path, number: signal.Signals
) -> None:
    terminal = made(os.readlink(link))
    server.send_signal(number)
    out, err = server.communicate(timeout=WAIT_S)
    assert (server.returncode, err) == (0, "")
    assert out.endswith(f"{platform}: stopped\n")
    assert not link.is_symlink()
    assert made(terminal[0]) != terminal


def test_the_end_of_the_device_ends_it_with_a_report(
    server: subprocess.Popen[str], platform: str, link: Path
) -> None:
    (device,) = children_of(server.pid)
    os.kill(device, signal.SIGKILL)
    _, err = server.communicate(timeout=WAIT_S)
    assert server.returncode == 1
    assert f"{platform} ended by itself: killed by SIGKILL" in err
    assert not link.is_symlink()


def test_a_path_that_is_taken(link: Path) -> None:
    link.write_text("precious")
    argv = [sys.executable, "-m", "minrpc.cli", "serve", "--pty", str(link)]
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert ran.returncode == 2
    assert "no link can be made" in ran.stderr
    assert link.read_text() == "precious"


@pytest.mark.parametrize(
    ("option", "value", "kind"),
    [
        ("--waiting", "5s", "whole number"),
        ("--idle-timeout", "inf", "number"),
        ("--waiting", "0", "whole number"),
    ],
)
def test_a_limit_that_is_no_number_above_zero_is_told(
    minrpc: Callable[..., tuple[int, str, str]], option: str, value: str, kind: str
) -> None:
    status, _, err = minrpc("serve", option, value, "--tvm-port", "0")
    assert (status, err.splitlines()[-1]) == (
        2,
        f"minrpc serve: error: argument {option}: {value!r} is no {kind} above 0",
    )
