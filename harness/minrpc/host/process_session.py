# SPDX-License-Identifier: Apache-2.0
"""Sessions of processes: all processes of a build stay in its session, in any process group.

As a program, `python process_session.py PARENT COMMAND...`, this is a session's leader. It runs the command
to its end and ends with the command's status. When its parent, the process PARENT, has ended in any way, the
whole session is killed: the kernel would signal the command itself, but not its children. It imports nothing
of the package, so that it starts at once.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterator

_PR_SET_PDEATHSIG = 1
_NOT_RUN = 127  # a shell's status for a command that can't be run


def kill_session(session: int) -> None:
    """Kill all processes of `session` except its leader and this process, until none runs."""
    spared = {session, os.getpid()}
    while True:
        left = [pid for pid in _of_session(session) if pid not in spared]
        for pid in left:
            kill(pid)
        if not left:
            return


def kill(pid: int) -> None:
    """Kill a process that may have ended already."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _of_session(session: int) -> Iterator[int]:
    """The processes in a session that still run, without zombies."""
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as stream:
                    # After the name in parentheses: state, parent, process group, session; proc(5).
                    state, _, _, sid = stream.read().rpartition(b")")[2].split()[:4]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(sid) == session and state not in (b"Z", b"X"):
                yield int(entry)


def _lead(parent: int, command: list[str]) -> None:
    """Run `command`, and end as it does; does not return."""

    def end_all(number: int, _: object) -> None:
        kill_session(os.getpid())
        os._exit(128 + number)

    signal.signal(signal.SIGTERM, end_all)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(128 + signal.SIGTERM)
    try:
        child = os.posix_spawnp(command[0], command, os.environ)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(_NOT_RUN)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status < 0:
        if -status not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


if __name__ == "__main__":
    _lead(int(sys.argv[1]), sys.argv[2:])
