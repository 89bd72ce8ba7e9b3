# SPDX-License-Identifier: Apache-2.0
"""Either side resets, faults, hangs or is killed: each has its error and text, and leaves nothing behind."""

from __future__ import annotations

import os
import pickle
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from minrpc import (
    DeadlineError,
    Device,
    EmulatorExitedError,
    Firmware,
    LinkClosedError,
    PortGoneError,
    RunningDevice,
    SessionTerminatedError,
    connect,
    start,
)
from minrpc.host import Deadline

from tests.device.test_session import add_works

CALL_S = 0.3
RESET_S = 60.0


@pytest.fixture
def doomed(firmware: Firmware | None) -> Iterator[RunningDevice]:
    """A device for this test alone, since the shared device must live on. Nothing of it is left
    afterwards."""
    if firmware is None:
        pytest.skip("a board can't be killed")
    before = our_files()
    with start(firmware) as running:
        yield running
        process = running.process
    assert process is not None
    assert process.returncode is not None, "the process was not waited for"
    assert not members_of(process.pid), "of its process group something lives on"
    assert our_files() <= before, "it left descriptors open"


def our_files() -> set[tuple[str, str]]:
    """Open descriptors of this process and their files."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add((name, os.readlink(f"/proc/self/fd/{name}")))
        except FileNotFoundError:  # The descriptor that lists them.
            continue
    return found


def members_of(group: int) -> list[int]:
    """The running processes of a process group, without zombies."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = Path(f"/proc/{name}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        state, _, its_group, *_ = stat.rpartition(")")[2].split()
        if int(its_group) == group and state not in "ZX":
            found.append(int(name))
    return found


class KillsInMidWrite:
    """`inner`, which kills the device after a part of the first long write."""

    def __init__(self, running: RunningDevice) -> None:
        self.name = running.transport.name
        self._running = running

    def write(self, data: bytes, timeout_s: float) -> None:
        """Does the same as `Transport.write`."""
        link = self._running.transport
        if len(data) > 4000:
            link.write(data[:2000], timeout_s)
            os.kill(process_of(self._running), signal.SIGKILL)
            data = data[2000:]
        link.write(data, timeout_s)

    def read(self, timeout_s: float) -> bytes:
        """Does the same as `Transport.read`."""
        return self._running.transport.read(timeout_s)

    def close(self) -> None:
        """Does the same as `Transport.close`."""
        self._running.transport.close()


def client(running: RunningDevice) -> Device:
    return connect(running, call_timeout_s=CALL_S, session_timeout_s=60.0, resend=False, direct=False)


def process_of(running: RunningDevice) -> int:
    assert running.process is not None
    return running.process.pid


def test_a_function_that_faults_says_what_and_where(doomed: RunningDevice) -> None:
    device = connect(doomed, call_timeout_s=60.0, session_timeout_s=60.0, direct=False)
    crash = device.system_lib()["testing.crash"]
    with pytest.raises((SessionTerminatedError, EmulatorExitedError)) as caught:
        crash()
    error = caught.value
    assert error.stage == "call testing.crash"
    if "fatal: " in (error.console_tail or ""):
        assert "crash, at " in error.message
        assert "zephyr-app/operators/testing.c:" in error.message
    if isinstance(error, EmulatorExitedError):
        assert error.status in (-signal.SIGSEGV, -signal.SIGILL)
        assert "killed by SIG" in error.message
    else:
        assert "at pc 0x" in (error.console_tail or "")
    assert add_works(device), "it has not restarted"


def test_a_function_that_never_returns_is_given_up(doomed: RunningDevice) -> None:
    device = client(doomed)
    hang = device.system_lib()["testing.hang"]
    with pytest.raises(DeadlineError) as caught:
        hang()
    assert caught.value.stage == "call testing.hang"
    assert caught.value.waited_for == "the answer"
    assert caught.value.wall_s is not None
    assert caught.value.cpu_s is not None
    device.call_timeout_s = 60.0
    assert add_works(device)
    doomed.reset(Deadline("reset", RESET_S, doomed.clock))
    assert add_works(connect(doomed, call_timeout_s=60.0))


def test_a_killed_device_is_named(doomed: RunningDevice) -> None:
    """The last words of an earlier crash are not the reason."""
    device = connect(doomed, call_timeout_s=60.0, session_timeout_s=60.0, direct=False)
    with pytest.raises((SessionTerminatedError, EmulatorExitedError)):
        device.system_lib()["testing.crash"]()
    assert add_works(device)
    os.kill(process_of(doomed), signal.SIGKILL)
    with pytest.raises(
        EmulatorExitedError, match=f"^{doomed.name} ended by itself: killed by SIGKILL"
    ) as caught:
        device.system_lib()["inc"](1)
    assert caught.value.status == -signal.SIGKILL
    with pytest.raises(EmulatorExitedError):
        device.connect()


def test_a_device_that_ended_between_two_sessions_is_started_again(doomed: RunningDevice) -> None:
    device = connect(doomed, call_timeout_s=60.0, session_timeout_s=60.0, direct=False)
    assert add_works(device)
    os.kill(process_of(doomed), signal.SIGABRT)
    with pytest.raises(EmulatorExitedError, match="ended by itself") as caught:
        device.connect()
    assert "it was started again: arrays, functions and libraries are gone" in caught.value.details
    assert add_works(device)


def test_killed_in_mid_copy(doomed: RunningDevice) -> None:
    device = connect(doomed, transport=KillsInMidWrite(doomed), resend=False, direct=False)
    size = min(60_000, device.info().arena_largest_free // 2)
    array = device.empty((size,), np.int8)
    with pytest.raises(EmulatorExitedError, match="killed by SIGKILL") as caught:
        array.copy_from(np.ones(size, np.int8))
    assert caught.value.stage == "copy to the device"
    with pytest.raises(EmulatorExitedError):
        device.connect()


def test_a_link_that_is_closed(doomed: RunningDevice) -> None:
    device = client(doomed)
    inc = device.system_lib()["inc"]
    doomed.transport.close()
    # The posix device ends when its link closes; the error then reports its end, not the closed link.
    with pytest.raises(
        (LinkClosedError, EmulatorExitedError), match=r"link is closed|exit status 0"
    ) as caught:
        inc(1)
    assert caught.value.stage == "call inc"


def test_a_reset_by_its_button_ends_the_session(doomed: RunningDevice) -> None:
    if doomed.qemu is None:
        pytest.skip("it has no reset line")
    device = connect(doomed, call_timeout_s=60.0, session_timeout_s=60.0, direct=False)
    inc, count = device.system_lib()["inc"], device.system_lib()["testing.count"]
    assert (count(), count()) == (1, 2)
    doomed.reset(Deadline("reset", RESET_S, doomed.clock))
    with pytest.raises(SessionTerminatedError, match="it restarted") as caught:
        inc(1)
    assert not isinstance(caught.value, PortGoneError)
    assert device.system_lib()["testing.count"]() == 1


HARNESS = """
import pickle, sys
import numpy as np
from minrpc.pipeline import connect
from minrpc.running import start
running = start(pickle.loads(bytes.fromhex(sys.argv[1])))
device = connect(running, direct=False)
data = np.zeros(min(20_000, device.info().arena_size // 2), np.int8)
array = device.array(data)
print(running.process.pid, flush=True)
while True:
    array.copy_from(data)
"""


def test_a_harness_that_is_killed_in_mid_copy_leaves_nothing(
    firmware: Firmware | None, tmp_path: Path
) -> None:
    if firmware is None:
        pytest.skip("a board lives on; its port's lock ends with the process that held it")
    command = [sys.executable, "-c", HARNESS, pickle.dumps(firmware).hex()]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=environment
    ) as harness:
        assert harness.stdout is not None
        device = int(harness.stdout.readline())
        ended = os.pidfd_open(device)
        harness.kill()
        ready, _, _ = select.select([ended], [], [], 60.0)
        os.close(ended)
    assert ready, "the device lives on"
    assert not members_of(device)
    assert list(tmp_path.iterdir()) == []
