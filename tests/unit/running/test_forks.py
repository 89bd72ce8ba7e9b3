# SPDX-License-Identifier: Apache-2.0
"""A fork of the process that opened a device."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import gc, os, sys
import numpy as np
from minrpc import LinkClosedError, open_device

with open_device(sys.argv[1]) as device:
    add = device.system_lib()["add"]
    x = device.array(np.ones(2, np.float32))
    zero = np.zeros(2, np.float32)
    for use in (None, lambda: add(x, x, x), lambda: x.copy_from(zero), device.connect, "collect"):
        child = os.fork()
        if child == 0:
            if callable(use):
                try:
                    use()
                except LinkClosedError as error:
                    told = error.message.replace(f" {os.getppid()},", " of its parent,")
                    print(told, error.next_step, flush=True)
                    sys.exit(5)
            elif use:
                del x
                gc.collect()
            sys.exit(5)
        assert os.waitpid(child, 0)[1] >> 8 == 5
        assert x.numpy().tolist() == [1, 1]
    add(x, x, x)
    assert x.numpy().tolist() == [2, 2]
    print("right")
"""


def test_a_fork_leaves_the_device_to_its_process() -> None:
    """It ends by sys.exit, through the `with` of the device; each use there is an error."""
    argv = [sys.executable, "-c", PROGRAM, "posix"]
    text = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True).stdout
    *errors, last = text.splitlines()
    assert last == "right"
    assert len(errors) == 3
    for error in errors:
        assert "process of its parent, and this one is its fork open a device in this process" in error


IN_A_FAKE = """
import os, sys
from minrpc import open_device

def ask(x):
    child = os.fork()
    if child == 0:
        sys.exit(5) if x else os._exit(6)
    return os.waitpid(child, 0)[1] >> 8

with open_device("posix") as device:
    lib = device.load("ask.c", fakes={"ask": ask})
    print(lib.run(1), lib.run(0), lib.run(1))
"""

# Python 3.12 warns of each fork of a process with threads.
QUIET = ["-W", "ignore::DeprecationWarning"]


def test_a_fork_in_a_fake_ends_in_silence(tmp_path: Path) -> None:
    """By sys.exit, through the call and the `with` of the device, or by os._exit; the call goes on."""
    (tmp_path / "ask.c").write_text("int ask(int x);\nint run(int x)\n{\n\treturn 10 * ask(x);\n}\n")
    ran = subprocess.run(
        [sys.executable, *QUIET, "-c", IN_A_FAKE],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (ran.stdout, ran.stderr) == ("50 60 50\n", "")
