# SPDX-License-Identifier: Apache-2.0
"""The user's cache of firmware: $XDG_CACHE_HOME/minrpc (~/.cache/minrpc without it).

    work/NAME/       a build tree, kept so that the next build is an incremental one; its lock is NAME.lock
    firmware/NAME/   a finished firmware, complete from the moment that it is there, and never changed
    toolchain/       links that a compiler needs

Everything in it can be deleted at any time when no build runs.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from minrpc.errors import ConfigurationError

_KEEP_S: Final = 30 * 24 * 3600


def cache_home() -> Path:
    """The directory of the cache; made when it is not there yet. Raises ConfigurationError."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "minrpc"
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"the cache directory {home} can't be made: {error.strerror}",
            next_step="set XDG_CACHE_HOME to a directory that you may write to",
        ) from error
    return home


@contextmanager
def locked(path: Path) -> Iterator[int]:
    """Hold the lock file `path`, waiting for whoever holds it; gives its descriptor.

    A child process that inherits the descriptor holds the lock too, until it ends.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def filled(directory: Path) -> Iterator[Path]:
    """A directory to fill, which becomes `directory` when all went well; else nothing of it is left."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
    try:
        yield partial
        if directory.exists():
            shutil.rmtree(directory)
        partial.rename(directory)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def mark_used(directory: Path) -> None:
    """Remember that `directory` was of use today; see `remove_unused`."""
    os.utime(directory)


def remove_unused(parent: Path) -> None:
    """Remove the directories in `parent` that were of no use for 30 days."""
    oldest = time.time() - _KEEP_S
    for directory in parent.iterdir():
        if directory.is_dir() and directory.stat().st_mtime < oldest:
            shutil.rmtree(directory, ignore_errors=True)
