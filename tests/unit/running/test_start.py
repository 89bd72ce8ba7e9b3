# SPDX-License-Identifier: Apache-2.0
"""Starting, losing and stopping devices: real processes, real QEMU, the project's own firmware."""

from __future__ import annotations

import os
import pickle
import select
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args
from unittest.mock import Mock

import pytest
from minrpc import (
    BuildError,
    ConfigurationError,
    DeadlineError,
    EmulatorExitedError,
    Firmware,
    HarnessError,
    LinkClosedError,
    MonitorError,
    Platform,
    QemuMissingError,
    RunningDevice,
    Target,
    counters_for,
    start,
)
from minrpc.firmware import firmware_root, workspaces
from minrpc.host import Deadline, describe_status, read_before
from minrpc.host.deadline import WallClock
from minrpc.running.qemu import machine
from minrpc.targets import Link, StartFields
from minrpc.transport import memory_pair

from tests.native import built

# The message of every port at its boot: no session runs (without the lone fe before it).
TERMINATE = bytes.fromhex("ff fd 03 00 00 00 00 00 02 66 77")
PATIENCE_S = 120.0


@pytest.fixture(scope="module", params=["posix", "bare_mps2_an385"])
def firmware(request: pytest.FixtureRequest) -> Firmware:
    return built(request.param)


@pytest.fixture(scope="module")
def posix() -> Firmware:
    return built("posix")


@pytest.fixture(scope="module")
def bare() -> Firmware:
    return built("bare_mps2_an385")


def of_platform(firmware: Firmware, platform: Platform) -> Firmware:
    """The firmware as if it had been built for `platform`."""
    return replace(firmware, target=replace(firmware.target, platform=platform))


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Asserts that a test leaves no process, thread or descriptor."""
    before = held()
    yield
    assert held() == before


def held() -> tuple[set[str], set[str], int]:
    children = Path(f"/proc/self/task/{threading.main_thread().native_id}/children").read_text().split()
    threads = {item.name for item in threading.enumerate() if item.name.startswith("minrpc-")}
    return set(children), threads - {"minrpc-launcher_0"}, len(os.listdir("/proc/self/fd"))


def hear(device: RunningDevice, expected: bytes = TERMINATE) -> None:
    """Wait for a device's message at its boot."""
    heard, deadline = b"", Deadline("boot", PATIENCE_S, device.clock)
    while expected not in heard:
        heard += read_before(device.transport, deadline, "the boot message")


def lost(device: RunningDevice) -> HarnessError:
    """The error of a client when the link closes."""
    deadline = Deadline("call", PATIENCE_S, device.clock)
    try:
        while True:
            read_before(device.transport, deadline, "a reply")
    except LinkClosedError as error:
        return device.diagnose(error)


@pytest.mark.parametrize("link", get_args(Link))
def test_the_first_byte_is_heard_over_each_kind_of_link(firmware: Firmware, link: Link) -> None:
    with start(firmware.changed(link=link)) as device:
        hear(device)
        device.check()
        assert device.alive()
        assert device.timing == ("exact" if firmware.platform.starts == "qemu" else "wall")


def test_an_emulator_of_one_processor_has_one_of_the_hosts(bare: Firmware) -> None:
    with start(bare) as device:
        assert device.process is not None
        assert len(os.sched_getaffinity(device.process.pid)) == 1


def test_the_console_is_text_of_its_own(bare: Firmware) -> None:
    with start(bare) as device:
        hear(device)
        assert "ready" in device.console_text


@pytest.mark.parametrize("link", get_args(Link))
def test_a_killed_device_is_noticed(firmware: Firmware, link: Link) -> None:
    with start(firmware.changed(link=link)) as device:
        hear(device)
        assert device.process is not None
        device.process.kill()
        error = lost(device)
        assert isinstance(error, EmulatorExitedError)
        assert error.status == -signal.SIGKILL
        assert "killed by SIGKILL" in error.message
        assert error.console_tail is not None
        device.check()  # The error has been reported.


def test_other_failures_get_the_console(bare: Firmware) -> None:
    with start(bare) as device:
        hear(device)
        error = DeadlineError("nothing came")
        assert device.diagnose(error) is error
        assert "ready" in (error.console_tail or "")


def test_stop_leaves_nothing_and_may_be_said_twice(firmware: Firmware) -> None:
    device = start(firmware)
    hear(device)
    assert device.process is not None
    device.stop()
    device.stop()
    assert not Path(f"/proc/{device.process.pid}").exists()
    device.check()
    with pytest.raises(LinkClosedError):
        device.transport.read(0.0)


def test_an_end_that_we_made_is_not_laid_on_the_device(
    posix: Firmware, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After `stop` the process has ended, and the error only reports a closed link."""
    with start(posix) as running:
        pass
    closed = LinkClosedError("the far end is gone")
    assert not running.alive()
    assert running.diagnose(closed) is closed
    with start(posix) as running:
        closed.by_us = True
        # The end of the process is not waited for.
        monkeypatch.delattr("minrpc.running.running_device.exited_within")
        assert running.diagnose(closed) is closed
        assert running.alive()
        monkeypatch.undo()


def test_eight_at_once(firmware: Firmware) -> None:
    devices = [start(firmware) for _ in range(8)]
    for device in devices:
        hear(device)
    for device in devices:
        device.stop()


def test_a_device_outlives_the_thread_that_started_it(firmware: Firmware) -> None:
    started: list[RunningDevice] = []
    thread = threading.Thread(target=lambda: started.append(start(firmware)))
    thread.start()
    thread.join()
    with started[0] as device:
        hear(device)
        device.check()


def test_a_forked_harness_starts_its_own(posix: Firmware) -> None:
    with start(posix) as device:
        hear(device)
        pid = os.fork()
        if pid == 0:
            try:
                with start(posix) as other:
                    hear(other)
                os._exit(7)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        device.check()


HARNESS = """
import pickle, sys
from minrpc.running import start
device = start(pickle.loads(bytes.fromhex(sys.argv[1])))
print(device.process.pid, flush=True)
{then}
"""


@pytest.mark.parametrize(
    ("then", "signals"),
    [("sys.stdin.read()", [signal.SIGKILL]), ("pass", []), ("raise SystemExit(3)", [])],
    ids=["killed", "ended without stop", "exited"],
)
def test_a_harness_that_ends_takes_its_device_along(
    firmware: Firmware, then: str, signals: list[int]
) -> None:
    command = [sys.executable, "-c", HARNESS.format(then=then), pickle.dumps(firmware).hex()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as harness:
        assert harness.stdout is not None
        wait_for_end = end_of(int(harness.stdout.readline()))
        for number in signals:
            harness.send_signal(number)
        wait_for_end()


def end_of(pid: int) -> Callable[[], None]:
    """Waits for the end of a process that is not a child of this process; it may have ended already."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return lambda: None

    def wait() -> None:
        ready, _, _ = select.select([descriptor], [], [], PATIENCE_S)
        os.close(descriptor)
        assert ready, f"process {pid} lives on"

    return wait


@pytest.mark.parametrize(("parent", "says"), [("1", "No such process"), ("x1", "Invalid argument")])
def test_a_program_whose_parent_is_gone_already_ends(posix: Firmware, parent: str, says: str) -> None:
    """The parent may be killed between the program's start and its request to the kernel, which then sends no
    signal."""
    master, slave = os.openpty()
    argv = [str(posix.elf), "--fd", str(slave), "--parent", parent]
    ran = subprocess.run(
        argv, pass_fds=[slave], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    os.close(slave)
    os.close(master)
    assert ran.returncode == 1
    assert f"--parent {parent}: {says}" in ran.stderr


def test_arguments_that_are_none_are_shown_what_is(posix: Firmware) -> None:
    for words in ([], ["--fd"], ["--parent", str(os.getpid())], ["--frobnicate", "1"]):
        argv = [str(posix.elf), *words]
        ran = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert (ran.returncode, ran.stderr.split()[0]) == (2, "usage:")


def test_a_reset_is_a_new_boot_of_the_same_emulator(bare: Firmware) -> None:
    with start(bare) as device:
        hear(device)
        for _ in range(3):
            device.reset(Deadline("reset", PATIENCE_S, device.clock))
            hear(device)
        device.check()


def test_what_qemu_refuses_is_an_error_and_its_monitor_goes_on(bare: Firmware) -> None:
    with start(bare) as device:
        deadline = Deadline("monitor", PATIENCE_S, device.clock)
        assert device.qemu is not None
        with pytest.raises(MonitorError, match="QEMU refused make-coffee: unknown command"):
            device.qemu.order("make-coffee", deadline)
        assert "running" in device.qemu.ask("info status", deadline)


@pytest.mark.parametrize("link", get_args(Link))
def test_a_process_is_reset_by_another(posix: Firmware, link: Link) -> None:
    """Its link, its memory and its console's text stay; nothing of the first process is left."""
    with start(posix.changed(link=link)) as device:
        hear(device)
        first, (_, threads, descriptors) = device.process, held()
        assert first is not None
        for _ in range(2):
            device.reset(Deadline("reset", PATIENCE_S))
            hear(device)
        assert first.returncode == -signal.SIGKILL
        assert held()[1:] == (threads, descriptors)
        device.check()


def test_a_process_that_was_killed_is_not_started_again(posix: Firmware) -> None:
    with start(posix) as device:
        assert device.process is not None
        device.process.kill()
        assert device.process.wait() == -signal.SIGKILL
        assert device.start_again() == ""
        assert not device.alive()


@pytest.mark.parametrize("link", get_args(Link))
def test_an_emulator_that_ended_is_started_again(bare: Firmware, link: Link) -> None:
    """Its link and its console's text stay, and its counters count on; nothing of the first QEMU is left, and
    its output is not the next one's."""
    with counters_for(bare.elf) as counters, start(bare.changed(link=link), counters=counters) as device:
        hear(device)
        (_, threads, descriptors), executed = held(), 0
        for _ in range(2):
            assert counters.executed().total > executed
            executed = counters.executed().total
            ended = device.process
            assert ended is not None
            ended.send_signal(signal.SIGABRT)
            assert isinstance(lost(device), EmulatorExitedError)
            assert device.start_again() == "it was started again: arrays, functions and libraries are gone"
            hear(device)
            assert ended.returncode == -signal.SIGABRT
            assert device.output.count("lan9118") < 2  # QEMU's warning.
        assert held()[1:] == (threads, descriptors)
        assert device.console_text.count("ready") == 3
        device.check()
        device.stop()
        assert counters.descriptors == (-1,)


def test_what_is_told_of_a_process_is_the_last_ones(posix: Firmware) -> None:
    """Its memory, its processor time, its end."""
    with start(posix) as device:
        for _ in range(2):
            hear(device)
            assert device.process is not None
            first = int(Path(f"/proc/{device.process.pid}/maps").read_text().partition("-")[0], 16)
            assert device.peek(first, 4) == b"\x7fELF"
            assert device.clock.sample().cpu_s > 0
            device.process.send_signal(signal.SIGABRT)
            ended = device.diagnose(LinkClosedError("it closed", stage="call f"))
            assert not any("earlier request" in line for line in ended.details)
            assert device.start_again()


def test_a_qemu_that_does_not_start_again_is_told(bare: Firmware, monkeypatch: pytest.MonkeyPatch) -> None:
    with start(bare) as device:
        assert device.process is not None
        device.process.send_signal(signal.SIGABRT)
        device.process.wait()
        monkeypatch.setattr("minrpc.running.qemu.wire", lambda *_: ["false"])
        assert device.start_again() == ""
        assert not device.alive()
        with pytest.raises(LinkClosedError):
            device.reset(Deadline("reset", PATIENCE_S))


def test_a_board_that_hangs_is_reset_once_and_may_have_a_new_link(monkeypatch: pytest.MonkeyPatch) -> None:
    (before, _), (after, _) = memory_pair(), memory_pair()
    target = Target.named(serial_port="/dev/null", reset_command="true")
    monkeypatch.setattr("minrpc.running.running_device.reset_board", Mock(side_effect=[after]))
    with RunningDevice("desk", target, before, WallClock(), "board") as device:
        deadline = Deadline("session", PATIENCE_S)
        assert device.link_for_session(deadline) is None
        assert device.start_again() == "the board is reset before the next session"
        assert device.link_for_session(deadline) is after
        assert device.link_for_session(deadline) is None


def test_a_fork_frees_no_board() -> None:
    """The lock of a board is one of the process and its forks."""
    lease, target = Mock(), Target.named(serial_port="/dev/null")
    device = RunningDevice("desk", target, memory_pair()[0], WallClock(), "board", lease=lease)
    device.leave_to(os.getppid())
    device.stop()
    lease.release.assert_not_called()


def command_line(device: RunningDevice) -> list[str]:
    assert device.process is not None
    return Path(f"/proc/{device.process.pid}/cmdline").read_text().split("\0")


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ({}, "shift=7,align=off,sleep=on"),
        (
            {"timing": "exact", "icount_shift": 3, "icount_sleep": False},
            "shift=3,align=off,sleep=off",
        ),
        ({"timing": "wall"}, None),
    ],
)
def test_the_clock_is_as_asked_for(bare: Firmware, given: StartFields, argument: str | None) -> None:
    with start(bare.changed(**given)) as device:
        hear(device)
        words = command_line(device)
        assert ("-icount" in words) == (argument is not None) == (device.timing == "exact")
        assert argument is None or argument in words


def test_clocks_that_a_platform_has_not(bare: Firmware, posix: Firmware) -> None:
    with pytest.raises(ConfigurationError, match="can't be exact"):
        start(posix.changed(timing="exact"))
    with pytest.raises(ConfigurationError, match="exact or wall"):
        start(bare.changed(timing="board"))
    unknown = of_platform(bare, replace(bare.platform, icount_shift=None))
    with pytest.raises(ConfigurationError, match="nothing defines how fast"):
        start(unknown.changed(timing="exact"))


def test_qemu_that_does_not_start_shows_its_own_words(bare: Firmware) -> None:
    broken = of_platform(bare, replace(bare.platform, qemu_args=("-machine", "toaster")))
    with pytest.raises(EmulatorExitedError, match="unsupported machine type") as caught:
        start(broken)
    assert caught.value.status == 1
    assert caught.value.stage == "start QEMU"


def test_no_qemu(bare: Firmware) -> None:
    other = of_platform(bare, replace(bare.platform, qemu="qemu-system-none"))
    with pytest.raises(QemuMissingError, match="qemu-system-none is not installed"):
        start(other)


def test_a_named_qemu_takes_the_place_of_zephyrs(bare: Firmware, tmp_path: Path) -> None:
    """A program that is not there is an error, not another one on PATH."""
    named = tmp_path / "qemu-system-arm"
    zephyrs = replace(bare, qemu_argv=("/moved/qemu-system-arm", "-machine", "mps2-an385"))
    assert machine(zephyrs) == [shutil.which("qemu-system-arm"), "-machine", "mps2-an385"]
    zephyrs = of_platform(zephyrs, replace(bare.platform, qemu=str(named)))
    with pytest.raises(QemuMissingError, match=f"{named} is not installed"):
        machine(zephyrs)
    named.touch(mode=0o700)
    assert machine(zephyrs) == [str(named), "-machine", "mps2-an385"]


def test_a_total_deadline_ends_the_start(bare: Firmware) -> None:
    with pytest.raises(DeadlineError, match="total time limit"):
        start(bare, total=Deadline("total", 0.0))


def test_a_program_that_can_not_run(posix: Firmware, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program")
    with pytest.raises(EmulatorExitedError, match=r"plain: Permission denied"):
        start(replace(posix, elf=plain))


def test_a_qemu_that_can_not_run_leaves_nothing_open(bare: Firmware, tmp_path: Path) -> None:
    plain = tmp_path / "qemu"
    plain.write_text("no program")
    plain.chmod(0o755)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(EmulatorExitedError, match="Exec format error"):
        start(of_platform(bare, replace(bare.platform, qemu=str(plain))))
    assert os.listdir("/proc/self/fd") == before


def test_a_program_is_named_together_with_its_port(posix: Firmware) -> None:
    with pytest.raises(ConfigurationError, match="which is not started") as caught:
        start(posix.target.changed(elf=posix.elf))
    assert "name the port" in caught.value.next_step


def test_a_board_is_not_started_from_here(posix: Firmware) -> None:
    board = replace(posix.platform, name="my_board", starts="board")
    with pytest.raises(ConfigurationError, match="my_board is a board") as caught:
        start(of_platform(posix, board))
    assert "--serial-port" in caught.value.next_step


@pytest.mark.parametrize(
    ("name", "changes", "text"),
    [
        ("bare_mps2_an385", {"firmware_link": "rtt"}, "QEMU has no debug probe"),
        ("bare_mps2_an385", {"firmware_link": "semihosting"}, "goes over a pseudo-terminal"),
        ("bare_mps2_an385", {"core": "m33a"}, "m33a"),
        ("posix", {"starts": "board"}, "is a board"),
    ],
)
def test_what_can_not_start_is_refused_before_it_is_built(
    name: str, changes: dict[str, Any], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(sys.modules[start.__module__], "build")
    target = Target.named(name, link="socket")
    with pytest.raises(ConfigurationError, match=text):
        start(replace(target, platform=replace(target.platform, **changes)))


def test_a_zephyr_board_by_its_name_starts_as_its_files_say(monkeypatch: pytest.MonkeyPatch) -> None:
    if not workspaces(firmware_root()):
        pytest.skip("no Zephyr")
    asked = Mock(side_effect=BuildError("asked"))
    monkeypatch.setattr(sys.modules[start.__module__], "build", asked)
    with pytest.raises(BuildError, match="asked"):
        start(Target.named("qemu_riscv32"))
    assert asked.call_args.args[0].platform.starts == "qemu"


def test_a_finished_build_starts_as_it_says(posix: Firmware, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name need not be a platform's: nothing is built of it."""
    monkeypatch.setattr(sys.modules[start.__module__], "build", Mock(return_value=posix))
    with start(Target.named("a_build", build_dir="build")) as device:
        hear(device)


def test_the_program_at_a_port_is_the_named_build(
    posix: Firmware, monkeypatch: pytest.MonkeyPatch, terminal: str
) -> None:
    """Nothing is flashed for it."""
    flash = Mock()
    monkeypatch.setattr(sys.modules[start.__module__], "build", Mock(return_value=posix))
    monkeypatch.setattr(sys.modules[start.__module__], "put_firmware", flash)
    with start(Target.named(serial_port=terminal, build_dir="build")) as device:
        assert device.firmware is posix
        flash.assert_not_called()
    with start(Target.named(serial_port=terminal, build_dir="build", flash="auto")):
        flash.assert_called_once()


def test_a_link_by_path_can_not_be_a_socket(posix: Firmware) -> None:
    by_path = replace(posix.platform, arguments=("--link", "{path}"))
    with start(of_platform(posix, by_path)) as device:
        hear(device)
    with pytest.raises(ConfigurationError, match="can't be a socket"):
        start(of_platform(posix, by_path).changed(link="socket"))


def test_attach_to_a_port() -> None:
    board, port = os.openpty()
    with start(Target.named(serial_port=os.ttyname(port), baud=9600)) as device:
        os.write(board, TERMINATE)
        hear(device)
        device.check()
        assert (device.timing, device.console_text) == ("board", "")
        error = DeadlineError("x")
        assert device.diagnose(error).console_tail is None
    os.close(port)
    os.close(board)


def test_who_else_reads_a_boards_port_is_said(terminal: str) -> None:
    command = ["sh", "-c", 'exec 3<"$0"; echo open; exec cat', terminal]
    with (
        start(Target.named(serial_port=terminal)) as device,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other,
    ):
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        assert f"(pid {other.pid})" in str(device.diagnose(DeadlineError("nothing came")))
        other.communicate()


@pytest.mark.parametrize(
    ("status", "words"),
    [(0, "exit status 0"), (3, "exit status 3"), (-11, "killed by SIGSEGV"), (-99, "killed by signal 99")],
)
def test_an_exit_status_in_words(status: int, words: str) -> None:
    assert describe_status(status) == words
