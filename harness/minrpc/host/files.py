# SPDX-License-Identifier: Apache-2.0
"""Writes files atomically: readers see the old or the new content, also with several writers. Tells whether a
file was written again."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias, TypeVar

from minrpc.errors import ConfigurationError

_Path = TypeVar("_Path", str, Path)

Stamp: TypeAlias = tuple[int, int, int]

if sys.platform != "win32":
    import fcntl


def write_whole(path: Path, text: str) -> None:
    """Replace the file's content by `text`, atomically. Raises OSError.

    For a symbolic link its target is replaced. /dev/null and other files that are not regular are written to.
    """
    if is_special(path):
        with path.open("w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write(text)
        return
    path = path.resolve()
    descriptor, partial = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write(text)
        os.chmod(partial, _mode_of(path))
        os.replace(partial, path)
    except BaseException:
        os.unlink(partial)
        raise


def utf8(path: _Path) -> _Path:
    """The path itself. Raises ConfigurationError if it is not UTF-8, as commands, caches and JSON need it."""
    name = os.fsencode(path)
    try:
        name.decode()
    except UnicodeDecodeError as error:
        step = "rename it, or name a symbolic link to it"
        raise ConfigurationError(f"the path {str(name)[2:-1]} is not UTF-8", next_step=step) from error
    return path


def write_output(path: Path, text: str) -> None:
    """Does the same as `write_whole` for a file that the user named. Raises ConfigurationError, which names
    it."""
    try:
        write_whole(path, text)
    except OSError as error:
        raise unwritable(path, error) from error


def change_whole(path: Path, change: Callable[[str | None], str]) -> None:
    """Replace the file's text by `change(text)`; `text` is None if the file is missing, or not regular.

    Other processes that change the file wait until this change is written, so no change is lost. Raises
    OSError, and the errors of `change`.
    """
    with _directory_locked(path.resolve().parent):
        try:
            # /dev/full would be read for ever.
            text = None if is_special(path) else path.read_text(encoding="utf-8")
        except FileNotFoundError:
            text = None
        write_whole(path, change(text))


def check_writable(path: Path) -> None:
    """Raise ConfigurationError when `path` can't be written, before work is done for it."""
    try:
        if path.is_dir():
            raise IsADirectoryError(None, "it is a directory")
        if is_special(path):
            if not os.access(path, os.W_OK):
                raise PermissionError(None, "it may not be written")
            return
        with tempfile.TemporaryFile(dir=path.resolve().parent):
            pass
    except OSError as error:
        raise unwritable(path, error) from error


def unwritable(path: Path, error: OSError) -> ConfigurationError:
    """The message for an OSError from writing to `path`."""
    return ConfigurationError(f"{path} can't be written: {error.strerror}", next_step="name another file")


@contextmanager
def _directory_locked(directory: Path) -> Iterator[None]:
    """A lock that leaves no file behind."""
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def is_special(path: Path) -> bool:
    """True for a device, a pipe or a socket, which must not be replaced by a file."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _mode_of(path: Path) -> int:
    """The file's mode, or the mode of a new file."""
    try:
        return path.stat().st_mode & 0o777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def stamp_of(path: Path) -> Stamp:
    """Facts that change when the file is written again: time, size, inode. Raises OSError."""
    status = os.stat(path)
    return status.st_mtime_ns, status.st_size, status.st_ino
