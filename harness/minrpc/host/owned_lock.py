# SPDX-License-Identifier: Apache-2.0
"""Locks across processes and users of this machine. A lock names its holder and ends with the holder's
process.

A lock is flock(2) on a file of a directory that all users share; the file holds the owner's process id, user,
command and time. A process can take a lock again that it holds.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import re
import shlex
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

from minrpc.errors import ConfigurationError

if sys.platform != "win32":
    import fcntl

DIRECTORY_VARIABLE: Final = "MINRPC_LOCKS"
_ALL_USERS: Final = 0o1777
_ANYBODY: Final = 0o666
_COMMAND_CHARACTERS: Final = 200
_held: dict[Path, tuple[int, int]] = {}
_guard = threading.Lock()


def _in_fork() -> None:
    """Close the copies of the descriptors: the locks stay the parent's, and end with it.

    Another thread of the parent may hold `_guard`.
    """
    global _guard
    _guard = threading.Lock()
    for descriptor, _ in _held.values():
        os.close(descriptor)
    _held.clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_in_fork)


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of a lock. since: Unix time in seconds."""

    pid: int
    user: str
    command: str
    since: float

    @classmethod
    def this_process(cls) -> Self:
        """This process, from now."""
        command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])[:_COMMAND_CHARACTERS]
        return cls(os.getpid(), _user(), command, time.time())

    def __str__(self) -> str:
        return f"pid {self.pid} of {self.user} ({self.command}) for {_duration(time.time() - self.since)}"


def lock_directory() -> Path:
    """The directory of the locks: MINRPC_LOCKS, else a directory that all users of this machine share."""
    named = os.environ.get(DIRECTORY_VARIABLE)
    shared = Path("/run/lock")
    base = shared if os.access(shared, os.W_OK) else Path(tempfile.gettempdir())
    directory = Path(named) if named else base / "minrpc"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if directory.stat().st_uid == os.getuid():
            directory.chmod(_ALL_USERS)
    except OSError as error:
        step = f"name a directory that you may write to by {DIRECTORY_VARIABLE}"
        message = f"locks can't be kept in {directory}: {error.strerror}"
        raise ConfigurationError(message, next_step=step) from error
    return directory


def file_of(name: str, kind: str = "lock") -> Path:
    """The file for `name`, such as a port's path."""
    readable = re.sub(r"[^\w.-]+", "-", name).strip("-")[-60:]
    return lock_directory() / f"{readable}-{hashlib.sha256(name.encode()).hexdigest()[:8]}.{kind}"


class OwnedLock:
    """A lock that this process holds until `release`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._released = False

    def release(self) -> None:
        """Release the lock, unless this process has taken it more than once. A second call does nothing."""
        with _guard:
            if self._released or self._path not in _held:
                return
            self._released = True
            descriptor, times = _held.pop(self._path)
            if times > 1:
                _held[self._path] = (descriptor, times - 1)
            else:
                os.ftruncate(descriptor, 0)
                os.close(descriptor)


def take(name: str) -> OwnedLock | None:
    """The lock `name`; None while another process holds it. Raises ConfigurationError."""
    path = file_of(name)
    if sys.platform == "win32":
        return OwnedLock(path)  # On that system, only one process can open a port.
    with _guard:
        if path in _held:
            descriptor, times = _held[path]
            _held[path] = (descriptor, times + 1)
            return OwnedLock(path)
        descriptor = _opened(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(asdict(Holder.this_process())).encode(), 0)
        _held[path] = (descriptor, 1)
        return OwnedLock(path)


def holder_of(name: str) -> Holder | None:
    """The present holder of the lock `name`; None without a holder."""
    path = file_of(name)
    if sys.platform == "win32":
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        with _guard:
            if path not in _held:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return None
    except BlockingIOError:
        pass
    finally:
        text = os.pread(descriptor, 4096, 0)
        os.close(descriptor)
    try:
        return Holder(**json.loads(text))
    except (ValueError, TypeError):
        return Holder(0, "unknown", "it is just starting", time.time())


def _opened(path: Path) -> int:
    """The file, made if missing; also another user's, in a directory that all may write to."""
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise ConfigurationError(f"{path} can't be opened: {error.strerror}") from error
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _ANYBODY)
        os.fchmod(descriptor, _ANYBODY)
    except FileExistsError:
        return _opened(path)
    return descriptor


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _duration(seconds: float) -> str:
    minutes, rest = divmod(max(0, int(seconds)), 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min {rest} s"
