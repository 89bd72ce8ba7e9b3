# SPDX-License-Identifier: Apache-2.0
"""Processes of this machine, and their ends."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from minrpc.errors import MissingError
from minrpc.host import describe_status, process
from minrpc.host.process import output_tail, spawn, spawn_logged, stop_group, stop_session

WAIT_S = 60.0

PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
print(child.pid, flush=True)
child.wait()
"""


def test_the_whole_group_ends() -> None:
    """All processes of the group end: children of its leader would keep their memory and ports."""
    process = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    child = os.pidfd_open(int(process.stdout.readline()))
    try:
        assert stop_group(process) == -signal.SIGKILL
        assert select.select([child], [], [], WAIT_S)[0], "the child goes on"
    finally:
        os.close(child)
        process.stdout.close()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.mark.parametrize("status", [0, 3, 127, -signal.SIGKILL, -signal.SIGSEGV])
def test_a_command_in_a_session_ends_as_it_does(log: Path, status: int) -> None:
    code = f"import os; os.kill(os.getpid(), {-status})" if status < 0 else f"raise SystemExit({status})"
    process = spawn_logged([sys.executable, "-c", code], log, cwd=log.parent, env=dict(os.environ))
    assert process.wait(WAIT_S) == status
    assert stop_session(process) == status
    assert describe_status(status)


def test_a_command_that_is_not_there_is_refused(log: Path) -> None:
    with pytest.raises(FileNotFoundError):
        spawn_logged(["no-such-tool"], log, cwd=log.parent, env=dict(os.environ))


def test_what_a_command_prints_is_in_the_log(log: Path) -> None:
    process = spawn_logged(["sh", "-c", "echo $WORD; echo two >&2"], log, cwd=log.parent, env={"WORD": "one"})
    assert process.wait(WAIT_S) == 0
    assert log.read_text().splitlines()[1:] == ["one", "two"]


# The child has a process group of its own, as with ninja.
BUILD = """
import subprocess, sys
children = [subprocess.Popen(["sleep", "1000"], process_group=0) for _ in range(2)]
print(*(child.pid for child in children), flush=True)
children[0].wait()
"""
HARNESS = f"""
import os, signal, sys
from pathlib import Path
from minrpc.host.process import spawn_logged
process = spawn_logged([sys.executable, "-c", {BUILD!r}], Path("log"), cwd=Path.cwd(), env=dict(os.environ))
print(process.pid, flush=True)
signal.pause()
"""


def test_a_killed_harness_takes_all_of_its_build_along(log: Path) -> None:
    """This includes children of the build in their own groups, whose parent's end the kernel does not
    report."""
    with contextlib.ExitStack() as undo:
        harness = undo.enter_context(
            subprocess.Popen([sys.executable, "-c", HARNESS], cwd=log.parent, stdout=subprocess.PIPE)
        )
        undo.callback(harness.kill)
        assert harness.stdout is not None
        leader = int(harness.stdout.readline())
        while (printed := re.search(r"^(\d+) (\d+)$", log.read_text(), re.MULTILINE)) is None:
            assert harness.poll() is None
        ends = [os.pidfd_open(pid) for pid in (leader, *map(int, printed.groups()))]
        for end in ends:
            undo.callback(os.close, end)
        harness.kill()
        for end in ends:
            assert select.select([end], [], [], WAIT_S)[0], "a process of the build goes on"


# PR_SET_NAME: any text of 15 characters, which /proc/PID/stat has in front of the fields that are read.
NAMED = """
import ctypes, os, signal
os.setpgid(0, 0)
ctypes.CDLL(None).prctl(15, b"(a) Z 1 (b) X 2")
print(os.getpid(), flush=True)
signal.pause()
"""


def test_a_processs_name_may_be_anything(log: Path) -> None:
    process = spawn_logged([sys.executable, "-c", NAMED], log, cwd=log.parent, env=dict(os.environ))
    while (printed := re.search(r"^(\d+)$", log.read_text(), re.MULTILINE)) is None:
        assert process.poll() is None
    end = os.pidfd_open(int(printed[1]))
    try:
        stop_session(process)
        assert select.select([end], [], [], WAIT_S)[0], "the process goes on"
    finally:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(end, signal.SIGKILL)
        os.close(end)


def test_a_program_that_ends_itself_is_told_who_its_parent_is() -> None:
    process = spawn(["sh", "-c", "echo $PPID"], ends_itself=True)
    output = output_tail(process, "test")
    assert process.wait(WAIT_S) == 0
    output.close(WAIT_S)
    assert output.text() == f"{os.getpid()}\n"


def test_a_tool_that_can_t_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = process.ask_tool(["sh", "-c", r"cat; printf '\377' >&2; exit 3"], text="asked")
    assert (ran.stdout, ran.stderr, ran.returncode) == ("asked", "\N{REPLACEMENT CHARACTER}", 3)
    assert process.ask_tool(["cat"]).stdout == ""
    with pytest.raises(MissingError, match="minrpc-nothing can't be run: No such file or directory"):
        process.ask_tool(["minrpc-nothing"])
    monkeypatch.setattr(process, "_ANSWER_S", 0.1)
    with pytest.raises(MissingError, match=r"`sleep 600` did not end within 0\.1 s"):
        process.ask_tool(["sleep", "600"])
