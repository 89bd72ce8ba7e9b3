# SPDX-License-Identifier: Apache-2.0
"""The sandbox of programs that read or run foreign code: bubblewrap's namespaces, and limits of the kernel.

In it there are no network, no other processes, no files but /usr and those that the command names, and no
variables of this process's environment. It is up or down for the whole process. The program is its process
namespace's first process. A root's process is not bound by RLIMIT_NPROC: so a filter of system calls keeps a
device from making processes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from struct import pack
from typing import Any, Final

from minrpc.errors import ConfigurationError

_PATH: Final = "/usr/bin:/bin"
_HIDDEN: Final = ("/", "/etc", "/home", "/root", "/tmp", "/var")
_PRESENT: Final = ("/usr", "/proc", "/dev")
_ETC: Final = ("/etc/alternatives", "/etc/ld.so.cache")
_SCRATCH_BYTES: Final = 256 << 20
# A compiler's limits, and a device's. The address space bounds each process's memory.
_MEMORY: Final = 4 << 30
_COMPILER: Final = ("--cpu=120", "--fsize=134217728", "--nproc=64", "--nofile=256")
_DEVICE: Final = ("--fsize=16777216", "--nproc=64", "--nofile=64")

_FLAG_THREAD: Final = 0x10000
_EPERM, _ENOSYS = 1, 38
# By architecture of system calls: fork and vfork, clone, clone3.
_CALLS: Final = {
    0xC000003E: ((57, 58), 56, 435),
    0x40000003: ((2, 190), 120, 435),
    0xC00000B7: ((), 220, 435),
}

# The number of blocks that need the sandbox, in all threads.
_blocks: int = 0
_lock: Final = threading.Lock()


@contextmanager
def sandboxed(next_step: str = "or leave the sandbox out", *, wanted: bool = True) -> Iterator[None]:
    """Compilers, linkers and devices that start in the block, in any thread, start in the sandbox.

    next_step: the other choice. wanted: False for a block without an effect.

    Raises ConfigurationError where bubblewrap lacks or the kernel forbids it.
    """
    global _blocks
    why = why_not() if wanted else ""
    if why:
        raise ConfigurationError(
            f"foreign code can't be kept in a sandbox here: {why}",
            next_step=f"sudo apt-get install bubblewrap, on a kernel with user namespaces; {next_step}",
        )
    with _lock:
        _blocks += wanted
    try:
        yield
    finally:
        with _lock:
            _blocks -= wanted


def is_up() -> bool:
    """True if programs start in the sandbox."""
    return _blocks > 0


@cache
def why_not() -> str:
    """The reason why there can be no sandbox here; "" if it can be."""
    if shutil.which("bwrap") is None:
        return "bwrap is not installed"
    ran = subprocess.run(_command(["true"], _DEVICE), capture_output=True, text=True, check=False)
    return ran.stderr.strip() if ran.returncode else ""


def compiler_command(command: Sequence[str], directory: Path) -> Sequence[str]:
    """The command of a compiler or linker, which may write to `directory` only if the sandbox is up.

    Raises FileNotFoundError.
    """
    if not is_up():
        return command
    if shutil.which(command[0]) is None:
        raise FileNotFoundError(command[0])
    return _command(command, _COMPILER, directory)


class Confined(subprocess.Popen[bytes]):
    """A device in the sandbox. Its `pid` is bubblewrap's; `program` is the device's own."""

    program: int

    def __init__(self, argv: Sequence[str], *, pass_fds: Sequence[int] = (), **options: Any) -> None:  # noqa: ANN401
        reader, writer = os.pipe()
        with os.fdopen(reader, "rb") as told, os.fdopen(_filter(), "rb") as rules:
            try:
                further = ["--as-pid-1", "--info-fd", str(writer), "--seccomp", str(rules.fileno())]
                command = _command(argv, _DEVICE, further=further)
                super().__init__(command, pass_fds=(*pass_fds, writer, rules.fileno()), **options)
            finally:
                os.close(writer)
            text = told.read()
        self.program = json.loads(text)["child-pid"] if text else self.pid

    @property
    def returncode(self) -> int | None:
        """The status as of a plain child: bubblewrap ends with 128 and the number of a signal."""
        return self._status

    @returncode.setter
    def returncode(self, status: int | None) -> None:
        self._status = 128 - status if status is not None and status > 128 else status

    def send_signal(self, sig: int) -> None:
        """Signal the device itself."""
        if self.poll() is None:
            os.kill(self.program, sig)


def program_of(process: subprocess.Popen[bytes]) -> int:
    """The process id of the program that was started, which may be in the sandbox."""
    return process.program if isinstance(process, Confined) else process.pid


def _command(
    argv: Sequence[str], limits: Sequence[str], writable: Path | None = None, further: Sequence[str] = ()
) -> list[str]:
    words = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += ["--clearenv", "--setenv", "PATH", _PATH, "--ro-bind", "/usr", "/usr", *further]
    for link in map(Path, ("/bin", "/lib", "/lib32", "/lib64")):
        if link.is_symlink():
            words += ["--symlink", os.readlink(link), str(link)]
        elif link.is_dir():
            words += ["--ro-bind", str(link), str(link)]
    for file in _ETC:
        words += ["--ro-bind-try", file, file]
    words += ["--proc", "/proc", "--dev", "/dev", "--size", str(_SCRATCH_BYTES), "--tmpfs", "/tmp"]
    binds: Mapping[Path, str] = dict.fromkeys(_named(argv), "--ro-bind")
    if writable is not None:
        binds = {**binds, writable: "--bind"}
    for path in sorted(binds, key=lambda path: len(path.parts)):
        words += [binds[path], str(path), str(path)]
    words += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", str(writable or "/")]
    return [*words, "--", "prlimit", f"--as={_MEMORY}", "--core=0", *limits, "--", *argv]


def _named(argv: Sequence[str]) -> Iterator[Path]:
    """The files and directories that a command names, and its program's own directory."""
    program = Path(shutil.which(argv[0]) or argv[0]).resolve()
    words = [*argv, str(program.parents[1])] if len(program.parents) > 2 and "-" in program.name else argv
    for word in words:
        for text in re.findall(r"/[^\s,=]+", word)[:1]:
            path = Path(text)
            inside = str(path).startswith(tuple(f"{place}/" for place in _PRESENT))
            if str(path) not in (*_HIDDEN, *_PRESENT) and not inside and path.exists():
                yield path


def _filter() -> int:
    """A descriptor of the filter's program: a device makes threads, but no processes.

    On a processor whose calls are not known, the limit of processes must do.
    """
    rules = pack("=HBBI", 0x20, 0, 0, 4)  # load the architecture
    for architecture, (forks, clone, clone3) in _CALLS.items():
        body = pack("=HBBI", 0x20, 0, 0, 0)  # load the number
        for number in forks:
            body += pack("=HBBIHBBI", 0x15, 0, 1, number, 0x06, 0, 0, 0x50000 | _EPERM)
        body += pack("=HBBIHBBI", 0x15, 0, 1, clone3, 0x06, 0, 0, 0x50000 | _ENOSYS)
        body += pack("=HBBI", 0x15, 0, 3, clone) + pack("=HBBI", 0x20, 0, 0, 16)  # load the flags
        body += pack("=HBBIHBBI", 0x45, 1, 0, _FLAG_THREAD, 0x06, 0, 0, 0x50000 | _EPERM)
        # On x86-64, numbers from 2^30 on are another set of calls.
        if architecture == 0xC000003E:
            body = body[:8] + pack("=HBBIHBBI", 0x35, 0, 1, 1 << 30, 0x06, 0, 0, 0x50000 | _ENOSYS) + body[8:]
        body += pack("=HBBI", 0x06, 0, 0, 0x7FFF0000)
        rules += pack("=HBBI", 0x15, 0, len(body) // 8, architecture) + body
    rules += pack("=HBBI", 0x06, 0, 0, 0x7FFF0000)
    descriptor = os.memfd_create("minrpc-filter")
    os.write(descriptor, rules)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
