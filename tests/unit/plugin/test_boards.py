# SPDX-License-Identifier: Apache-2.0
"""A board that hangs: with a way to reset it, only the test that hung it fails."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal

import pytest
import serial
from minrpc import DeadlineError, LoadError, ResetError, RunningDevice, Target, build, open_device, start
from minrpc.host import Deadline
from minrpc.targets.hardware_map import HardwareBoard

from tests.native import of_another_build

BOARD = Path(__file__).with_name("board.py")
RESET_S = 60.0
TESTS = """
    import pytest

    def test_good(device):
        assert device.system_lib()["inc"](1) == 2

    @pytest.mark.call_timeout(0.3)
    def test_hangs(device):
        device.system_lib()["testing.hang"]()

    def test_next(device):
        assert device.system_lib()["inc"](1) == 2

    def test_last(device):
        assert device.system_lib()["inc"](1) == 2
"""


@pytest.fixture
def port(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A board's port, and the process whose SIGUSR1 resets the board."""
    path = tmp_path / "port"
    argv = [sys.executable, str(BOARD), str(build(Target.named("posix")).elf), str(path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as board:
        assert board.stdout is not None
        yield path, int(board.stdout.readline())
        board.communicate()


def test_the_program_of_a_board_is_named(port: tuple[Path, int], tmp_path: Path) -> None:
    """The program's build id must equal the running firmware's; then C can be loaded, and its functions
    have names."""
    program = build(Target.named("posix")).elf
    (tmp_path / "f.c").write_text("int f(int x) { return x + 1; }\n")
    with open_device(serial_port=str(port[0]), elf=program) as device:
        assert device.load(tmp_path / "f.c").f(2) == 3
        assert device.firmware.minrpc_crc32(0, b"123456789", 9) == 0xCBF43926
    other = of_another_build(program, tmp_path / "other")
    with open_device(serial_port=str(port[0]), elf=other) as device:
        with pytest.raises(LoadError, match=r"runs build \w{16}, other is build \w{16}"):
            device.load(tmp_path / "f.c")
        assert device.system_lib()["inc"](1) == 2


def test_the_program_of_a_board_is_found_in_the_cache(
    port: tuple[Path, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`minrpc board flash` has built it: the running firmware's build id finds it."""
    (tmp_path / "f.c").write_text("int f(int x) { return x + 1; }\n")
    with open_device(serial_port=str(port[0])) as device:
        assert device.load(tmp_path / "f.c").f(2) == 3
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with open_device(serial_port=str(port[0])) as device:
        with pytest.raises(LoadError, match=r"no firmware of the cache has its build id \w{16}") as caught:
            device.load(tmp_path / "f.c")
        assert "--elf FILE" in caught.value.next_step


def reset_command(path: Path, pid: int) -> str:
    """A reset command that, like flash tools, returns when the board has restarted."""
    return f"sh -c 'rm -f $0.reset; kill -USR1 {pid}; until [ -e $0.reset ]; do sleep 0.05; done' {path}"


def run(
    pytester: pytest.Pytester, path: Path, entry: str, monkeypatch: pytest.MonkeyPatch
) -> pytest.RunResult:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(pytester.path))
    pytester.makefile(".toml", minrpc=f'[platforms.desk]\nzephyr_board = "x"\n{entry}')
    pytester.makepyfile(TESTS)
    return pytester.runpytest(
        *("-p", "no:cacheprovider", "-p", "no:xdist", "-rs"),
        *("--minrpc-platform", "desk", f"--minrpc-serial-port={path}", "--minrpc-session-timeout", "1"),
    )


def test_a_hang_costs_one_test_where_the_board_can_be_reset(
    pytester: pytest.Pytester, port: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run(pytester, port[0], f'reset_command = "{reset_command(*port)}"\n', monkeypatch)
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        ["minrpc: desk: reset", "*-- desk: wire --*", "*:testing.hang*", "> number 4: call *", "> probe 04*"]
    )


def test_a_hang_where_it_can_not_be_reset_says_what_would_help(
    pytester: pytest.Pytester, port: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run(pytester, port[0], "", monkeypatch)
    result.assert_outcomes(passed=1, failed=1, errors=1, skipped=1)
    result.stdout.fnmatch_lines(
        [
            "*it may still run: reset the board; reset_line or reset_command in minrpc.toml would reset it",
            "the device does not answer any more:*",
            "SKIPPED*; reset_command or reset_line in minrpc.toml would reset it after*",
        ]
    )


def hang_and_go_on(running: RunningDevice) -> None:
    """The board hangs, is reset before the next session, and answers again, with its counts at zero."""
    with open_device(running) as device:
        assert device.system_lib()["testing.count"]() == 1
        with pytest.raises(DeadlineError, match="the board is reset before the next session"):
            device.system_lib()["testing.hang"]()
        device.call_timeout_s = 60.0
        assert device.system_lib()["testing.count"]() == 1


def test_a_running_device_is_reset_and_connected_to_again(port: tuple[Path, int]) -> None:
    target = Target.named(serial_port=str(port[0]), reset_command=reset_command(*port), call_timeout_s=0.3)
    with start(target) as running:
        assert running.can_reset
        hang_and_go_on(running)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("sh -c 'echo no probe; exit 3'", "the reset command failed with status 3: sh -c"),
        ("no-such-tool --port {port}", "no-such-tool can't be run: No such file or directory"),
        ("", "has no reset line, and no reset_command"),
    ],
)
def test_a_reset_that_fails(terminal: str, command: str, message: str) -> None:
    with start(Target.named(serial_port=terminal, reset_command=command)) as running:
        with pytest.raises(ResetError, match=message) as caught:
            running.reset(Deadline("reset", RESET_S))
        assert ("no probe" in str(caught.value)) == ("probe" in command)
        assert isinstance(running, RunningDevice)


def test_the_reset_command_gets_the_id_of_the_board(terminal: str) -> None:
    board = HardwareBoard("066A", ("nucleo_f746zg",))
    target = replace(Target.named(serial_port=terminal, reset_command="false {id} {port}"), board=board)
    with start(target) as running, pytest.raises(ResetError, match=f"status 1: false 066A {terminal}"):
        running.reset(Deadline("reset", RESET_S))


def test_a_terminal_has_no_modem_lines(terminal: str) -> None:
    with (
        start(Target.named(serial_port=terminal, reset_line="dtr")) as running,
        pytest.raises(ResetError, match="has no line DTR"),
    ):
        running.reset(Deadline("reset", RESET_S))


class LinedSerial(serial.Serial):  # type: ignore[misc]  # pyserial has no types
    """A serial port with modem lines, which a pseudo-terminal lacks: the settings of pyserial, in order."""

    lines: ClassVar[list[tuple[str, bool]]] = []
    pressed: ClassVar[list[Callable[[], object]]] = []

    def _update_dtr_state(self) -> None:
        self._set("dtr", self._dtr_state)

    def _update_rts_state(self) -> None:
        self._set("rts", self._rts_state)

    def _set(self, line: str, active: bool) -> None:
        self.lines.append((line, active))
        if self.lines[-2:] == [(line, True), (line, False)]:
            for press in self.pressed:
                press()


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """Notes every change of a modem line."""
    monkeypatch.setattr(serial, "Serial", LinedSerial)
    monkeypatch.setattr(LinedSerial, "lines", [])
    monkeypatch.setattr("minrpc.transport.serial_port.PULSE_S", 0.0)
    return LinedSerial.lines


@pytest.mark.parametrize(("line", "other"), [("dtr", "rts"), ("rts", "dtr")])
def test_a_modem_line_resets_the_board(
    port: tuple[Path, int],
    lines: list[tuple[str, bool]],
    monkeypatch: pytest.MonkeyPatch,
    line: Literal["dtr", "rts"],
    other: str,
) -> None:
    """The line is at rest while the port is open: boards stay in reset while it is active."""
    path, pid = port

    def press() -> None:
        """Press the reset button; returns when the board has restarted."""
        subprocess.run(shlex.split(reset_command(path, pid)), check=True, timeout=RESET_S)

    monkeypatch.setattr(LinedSerial, "pressed", [press])
    target = Target.named(serial_port=str(path), reset_line=line, call_timeout_s=0.3)
    with start(target) as running:
        assert sorted(lines) == sorted([(line, False), (other, True)])
        lines.clear()
        assert running.can_reset
        hang_and_go_on(running)
        assert lines == [(line, True), (line, False)]


def test_a_hang_costs_one_test_where_a_modem_line_resets(
    pytester: pytest.Pytester,
    port: tuple[Path, int],
    lines: list[tuple[str, bool]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path, pid = port
    command = shlex.split(reset_command(path, pid))
    pressed = [lambda: subprocess.run(command, check=True, timeout=RESET_S)]
    monkeypatch.setattr(LinedSerial, "pressed", pressed)
    result = run(pytester, path, 'reset_line = "rts"\n', monkeypatch)
    result.assert_outcomes(passed=3, failed=1)
    assert lines.count(("rts", True)) == 1


def test_without_a_reset_line_both_are_active(terminal: str, lines: list[tuple[str, bool]]) -> None:
    """Terminal programs activate both lines: some USB serial ports send nothing without them."""
    with start(Target.named(serial_port=terminal)):
        assert sorted(lines) == [("dtr", True), ("rts", True)]


def test_a_port_that_goes_with_the_reset_is_waited_for(tmp_path: Path) -> None:
    """Like a USB board's port, its path leads to another terminal after the reset."""
    first, second = os.openpty(), os.openpty()
    path = tmp_path / "port"
    path.symlink_to(os.ttyname(first[1]))
    os.close(first[1])
    new = os.ttyname(second[1])

    def plug_in() -> None:
        """Plug the board in again, a moment after its port has gone."""
        moment = threading.Event()
        while path.is_symlink():
            moment.wait(0.01)
        moment.wait(0.1)
        path.symlink_to(new)

    plugging = threading.Thread(target=plug_in)
    with start(Target.named(serial_port=str(path), reset_command=f"rm {path}")) as running:
        os.close(first[0])
        plugging.start()
        running.reset(Deadline("reset", RESET_S))
        plugging.join()
        os.write(second[0], b"here")
        assert running.transport.read(RESET_S) == b"here"
    for fd in second:
        os.close(fd)
