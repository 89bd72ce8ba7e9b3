# SPDX-License-Identifier: Apache-2.0
"""Processes of this machine, and their ends."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

from minrpc.host.process import stop_group

WAIT_S = 60.0

PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
print(child.pid, flush=True)
child.wait()
"""


def test_the_whole_group_ends() -> None:
    """Not its leader alone: what that has started would go on, with its memory and ports."""
    process = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    child = os.pidfd_open(int(process.stdout.readline()))
    try:
        assert stop_group(process) == -signal.SIGKILL
        assert select.select([child], [], [], WAIT_S)[0], "the child goes on"
    finally:
        os.close(child)
        process.stdout.close()
