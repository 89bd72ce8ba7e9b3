# SPDX-License-Identifier: Apache-2.0
"""Boards of a hardware map shared by workers and by runs: eight simulated boards behind terminals."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from minrpc import BoardBusyError, HarnessError, Target, build, open_device, start
from minrpc.host import Deadline
from minrpc.host.owned_lock import DIRECTORY_VARIABLE
from minrpc.running.lease import end_quarantine, lease, put_into_quarantine, quarantine_of
from minrpc.targets import load_hardware_map

BOARD = Path(__file__).with_name("board.py")
RUN_S = 400
START_S = 30.0
TESTS = """
import os, re, signal, time
from pathlib import Path
import pytest

RUN = os.environ["RUN"]

@pytest.fixture(autouse=True)
def noted(request, device, running_device):
    log = os.open("log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    about = f"{os.getpid()} {RUN} {request.node.name} {running_device.name}\\n"
    os.write(log, f"begin {about}".encode())
    yield
    os.write(log, f"end {about}".encode())
    os.close(log)

@pytest.mark.parametrize("number", range(20))
def test_of_many(device, number):
    assert device.system_lib()["inc"](number) == number + 1

def test_that_kills_its_board(device, running_device):
    if RUN == "second":  # Its end, and so its report, is behind the death of the first's board.
        end = time.monotonic() + 300
        while not list(Path(os.environ["MINRPC_LOCKS"]).glob("*.quarantine")) and time.monotonic() < end:
            time.sleep(0.1)
    if RUN == "first":
        os.kill(int(Path(re.sub(r"\\W", "-", running_device.name) + ".pid").read_text()), signal.SIGKILL)
    assert device.system_lib()["inc"](1) == 2

@pytest.mark.parametrize("number", range(20, 40))
def test_of_many_more(device, number):
    assert device.system_lib()["inc"](number) == number + 1
"""


@pytest.fixture
def rack(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory with minrpc.toml and map.yml of boards that run; the parameter is their number.

    It may be with the kind of link that ser2net makes of their terminals, "telnet(rfc2217)" or "tcp".
    """
    number_of_boards, served = request.param if isinstance(request.param, tuple) else (request.param, "")
    if served and shutil.which("ser2net") is None:
        pytest.skip("ser2net is not installed: sudo apt-get install ser2net")
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path / "locks"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    elf = str(build(Target.named("posix")).elf)
    (tmp_path / "by-id").mkdir()
    (tmp_path / "minrpc.toml").write_text('[platforms.desk]\nzephyr_board = "desk"\n')
    entries, connections = [], []
    with ExitStack() as stack:
        for number in range(number_of_boards):
            port = tmp_path / "by-id" / f"usb-ACME_{number:04}-if00"
            link = str(port)
            if served:
                tcp_port = free_port()
                scheme = "rfc2217" if "rfc2217" in served else "socket"
                accepter = served if served == "tcp" else f"{served},tcp"
                link = f"{scheme}://127.0.0.1:{tcp_port}"
                connections.append(
                    f"connection: &board{number}\n"
                    f"  accepter: {accepter},127.0.0.1,{tcp_port}\n"
                    f"  connector: serialdev,{port},115200n81,local\n"
                    "  options: {kickolduser: false}\n"
                )
            argv = [sys.executable, str(BOARD), elf, str(port)]
            board = stack.enter_context(
                subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            assert board.stdout is not None
            (tmp_path / (re.sub(r"\W", "-", link) + ".pid")).write_text(board.stdout.readline())
            # After the board's death no other terminal of this machine gets the number of its terminal, to
            # which the runs still write.
            stack.callback(os.close, os.open(port, os.O_RDWR | os.O_NOCTTY))
            entries.append(
                f"- connected: true\n  id: '{number:04}'\n  platform: desk\n  product: ACME\n"
                f"  runner: unknown\n  serial: {link}\n"
            )
            stack.callback(board.communicate)
        if served:
            (tmp_path / "ser2net.yaml").write_text("".join(connections))
            stack.enter_context(ser2net(tmp_path / "ser2net.yaml", number_of_boards))
        (tmp_path / "map.yml").write_text("".join(entries))
        monkeypatch.chdir(tmp_path)
        yield tmp_path


def pytest_run(rack: Path, name: str, workers: str) -> subprocess.Popen[str]:
    words = ["-n", workers, "-p", "no:cacheprovider", "-rfE", f"--junitxml={name}.xml", "test_rack.py"]
    words += [
        "--minrpc-hardware-map",
        "map.yml",
        "--minrpc-platform",
        "desk",
        "--minrpc-session-timeout",
        "3",
    ]
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", *words],
        env={**os.environ, "RUN": name},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@contextmanager
def ser2net(config: Path, ports: int) -> Iterator[None]:
    """ser2net, after it listens on these ports."""
    argv = ["ser2net", "-n", "-d", "-c", str(config), "-u"]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        wanted = set(re.findall(r"127\.0\.0\.1,(\d+)", config.read_text()))
        waited = Deadline("ser2net", START_S)
        while not wanted <= listening():
            assert not waited.expired()
            assert server.poll() is None
        assert len(wanted) == ports
        yield
        server.kill()


def listening() -> set[str]:
    """The ports at which the kernel has a listening socket: a connection would open the serial port."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {str(int(row[1].rpartition(":")[2], 16)) for row in rows if row[3] == "0A"}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.slow
@pytest.mark.parametrize(
    "rack", [8, (8, "telnet(rfc2217)"), (8, "tcp")], indirect=True, ids=["pty", "rfc2217", "tcp"]
)
def test_two_runs_share_eight_boards_and_lose_a_board(rack: Path) -> None:
    """All tests run once, no board is used by both runs, and both report the board that died."""
    (rack / "test_rack.py").write_text(TESTS)
    runs = {name: pytest_run(rack, name, "4") for name in ("first", "second")}
    output = {name: run.communicate(timeout=RUN_S)[0] for name, run in runs.items()}
    assert runs["first"].returncode == 1, output["first"]
    assert runs["second"].returncode == 0, output["second"]
    assert re.search(r"1 failed, 40 passed", output["first"]), output["first"]
    assert "41 passed" in output["second"]
    lines = [line.split() for line in (rack / "log").read_text().splitlines()]
    users: dict[str, str] = {}
    for what, process, _, _, board in lines:
        assert users.get(board, process) == process
        if what == "begin":
            users[board] = process
        else:
            del users[board]
    begun = [line[2:] for line in lines if line[0] == "begin"]
    for name in runs:
        tests = [test for run, test, _ in begun if run == name]
        assert sorted(tests) == sorted(set(tests))
        assert len(tests) == 41
    (killed,) = {board for run, test, board in begun if run == "first" and "kills" in test}
    reason = "session: " if "://" in killed else f"{killed} is not there: "
    for name in runs:
        assert f"at {killed} is in quarantine: {reason}" in output[name]
        assert "minrpc.quarantine." in (rack / f"{name}.xml").read_text()


@pytest.mark.parametrize("rack", [2], indirect=True)
def test_a_free_board_is_taken_and_a_board_in_quarantine_is_not(rack: Path) -> None:
    target = Target.named("desk", hardware_map=rack / "map.yml")
    first, second = load_hardware_map(rack / "map.yml")
    with open_device(target) as leased, open_device(serial_port=second.link) as named:
        assert leased.system_lib()["inc"](1) == named.system_lib()["inc"](1) == 2
    held = lease(target)
    assert held.board == first
    put_into_quarantine(first, "session: not a byte")
    assert "session: not a byte (pid" in quarantine_of(first)
    with start(target) as running:
        assert running.target.board == second
    put_into_quarantine(second, "burnt")
    with pytest.raises(HarnessError, match="every desk of the hardware map is in quarantine") as caught:
        lease(target)
    assert "burnt" in str(caught.value)
    assert end_quarantine(first)
    assert not end_quarantine(first)
    held.release()


HOLD = """
import sys
from minrpc.running.lease import lease
from minrpc import Target
held = [lease(Target.named(serial_port=port)) for port in sys.argv[1:]]
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("rack", [2], indirect=True)
def test_boards_of_another_process_are_waited_for(rack: Path) -> None:
    """A board's lock names its process, and ends with it; a board that gets into quarantine is not taken."""
    target = Target.named("desk", hardware_map=rack / "map.yml")
    boards = load_hardware_map(rack / "map.yml")
    ports = [board.link for board in boards]
    said: list[str] = []
    argv = [sys.executable, "-c", HOLD, *ports]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(BoardBusyError, match="all 2 boards of the kind desk are in use") as caught:
            lease(target)
        assert len(caught.value.holders) == 2
        assert all(f": pid {other.pid} of " in holder for holder in caught.value.holders)
        with pytest.raises(BoardBusyError, match="is in use"):
            start(Target.named(serial_port=ports[0]))

        def say(text: str) -> None:
            said.append(text)
            put_into_quarantine(boards[0], "tried")
            other.kill()

        held = lease(target.changed(wait_board_s=RUN_S), say)
        held.release()
        assert held.board == boards[1]
    assert f"waits up to {RUN_S} s: " in said[0]
    assert f"pid {other.pid} of " in said[0]
