# SPDX-License-Identifier: Apache-2.0
"""On Windows and macOS the package and its plugin are imported, and an error names parts that can't run
there.

Simulated: without the modules and functions that Python has on Linux only, in a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# Modules of the real system that other packages use are loaded before.
SCRIPT = """
import concurrent.futures, multiprocessing, os, pathlib, select, shutil, signal, subprocess, sys, tempfile
import capstone, elftools.elf.elffile, numpy, pexpect, pytest, serial, serial.tools.list_ports

system = sys.argv.pop(1)
of_linux = {os: ("sched_getaffinity", "sched_setaffinity", "pidfd_open", "pipe2")}
of_unix = {os: ("register_at_fork", "killpg"), signal: ("SIGHUP", "SIGKILL"), select: ("poll",)}
modules = ("fcntl", "termios", "tty", "pty", "resource", "pwd", "grp") if system == "win32" else ()


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in modules:
            raise ImportError(f"there is no {name} on {system}")


for name in modules:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Absent())
for gone in (of_linux, of_unix) if system == "win32" else (of_linux,):
    for module, names in gone.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
sys.platform = system
"""


USE = """
import minrpc.plugin.hooks
from minrpc import open_device
from minrpc.cli import main
from minrpc.errors import MissingError
try:
    open_device("posix")
except MissingError as error:
    print(error)
print("----")
sys.exit(main(["platforms"]))
"""


@pytest.mark.parametrize(("system", "name"), [("win32", "Windows"), ("darwin", "macOS")])
def test_what_can_not_run_is_said(system: str, name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT + USE, system]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    refused, platforms = (" ".join(part.split()) for part in ran.stdout.split("----"))
    assert "started on Linux only" in refused
    assert f"processes and emulators are started on Linux only, and this is {name}" in platforms
