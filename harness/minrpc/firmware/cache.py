# SPDX-License-Identifier: Apache-2.0
"""The user's cache of firmware: $XDG_CACHE_HOME/minrpc (~/.cache/minrpc without it).

    work/NAME/       a build tree, kept so that the next build is incremental; .lock, .log beside
    plugin/NAME/     a plugin for QEMU
    rtl/NAME/        a core's RTL as a program
    firmware/NAME/   a finished firmware, complete as soon as it exists, and never changed
    plans/PLAN/      the firmware built by a plan, see `minrpc.firmware.store`
    objects/NAME/    a compiled source of a library that is loaded, beside it the list of its inputs and the
                     quick look's facts; or a generated source
    hashes/NAME      the hash of a large file, such as a compiler
    scratch/NAME/    files being compiled or linked; remains of a killed process are deleted after a day
    symbols/NAME/    a firmware's symbols, for the linker
    toolchain/       links that a compiler needs

Builds bound the cache, at most every ten minutes: entries unused for 30 days are deleted, then the least
recently used until the rest is within 4 GiB (or MINRPC_CACHE_SIZE: "500M", "10G"). Entries used within an
hour stay. `minrpc cache` shows and cleans it; all of it can be deleted at any time when no build runs.

A read-only cache serves its firmware; new objects, symbols and plugins are in a directory of the process.
"""

from __future__ import annotations

import atexit
import errno
import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from minrpc.errors import ConfigurationError
from minrpc.host.files import utf8
from minrpc.host.system import user_directory

if sys.platform != "win32":
    import fcntl

SIZE_VARIABLE: Final = "MINRPC_CACHE_SIZE"
_LIMIT: Final = 4 * 1024**3
_KINDS: Final = ("firmware", "work", "plugin", "rtl", "objects", "symbols")
_KEEP_S: Final = 30 * 24 * 3600.0
_YOUNG_S: Final = 3600.0
_SCRATCH_S: Final = 24 * 3600.0
# Looking at every file of a full cache takes seconds.
_BOUND_S: Final = 600.0
_BOUNDED: Final = ".bounded"
# Noting every use would write to the disk at each lookup.
_NEWS_S: Final = 600.0
_own_objects: Final[ContextVar[Path | None]] = ContextVar("_own_objects", default=None)


def cache_home() -> Path:
    """The directory of the cache, created if missing. Raises ConfigurationError."""
    home = utf8(user_directory("XDG_CACHE_HOME", ".cache")) / "minrpc"
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"the cache directory {home} can't be made: {error.strerror}",
            next_step="set XDG_CACHE_HOME to a directory that you may write to",
        ) from error
    return home


def objects_home() -> Path:
    """The directory of compiled sources, or the one of `own_objects`."""
    return _own_objects.get() or cache_home() / "objects"


def writable(path: Path) -> Path:
    """The path in the cache, or its counterpart in a directory of this process if the cache is read-only."""
    home = cache_home()
    there = next(parent for parent in (path, *path.parents) if parent.is_dir())
    if os.access(there, os.W_OK) or not there.is_relative_to(home):
        return path
    return _own_home() / path.relative_to(home)


@cache
def _own_home() -> Path:
    """A directory that the end of the process removes."""
    directory = Path(tempfile.mkdtemp(prefix="minrpc-cache-"))
    atexit.register(_remove_own, directory, os.getpid())
    return directory


def _remove_own(directory: Path, process: int) -> None:
    if os.getpid() == process:  # A fork ends by itself.
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def own_objects() -> Iterator[None]:
    """In the block, and its thread, compiled sources go to a directory that the block's end removes."""
    with scratch() as directory:
        before = _own_objects.set(directory)
        try:
            yield
        finally:
            _own_objects.reset(before)


@contextmanager
def locked(path: Path) -> Iterator[int]:
    """Hold the lock file `path`, after waiting for its holder; yields its descriptor.

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
    """A directory to fill, which becomes `directory` on success; on failure it is deleted."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
    try:
        yield partial
        for path in partial.rglob("*"):  # A loss of power may not leave a name without its content.
            if path.is_file():
                with path.open("rb") as stream:
                    os.fsync(stream.fileno())
        if directory.exists():
            shutil.rmtree(directory)
        partial.rename(directory)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def is_whole(directory: Path) -> bool:
    """True if the directory is there, and no object or source in it is empty, as after a loss of power."""
    return directory.is_dir() and all(path.stat().st_size for path in directory.glob("*.[cos]"))


@contextmanager
def scratch() -> Iterator[Path]:
    """An empty directory for the block; `bound` removes the remains of killed processes.

    Raises ConfigurationError where the cache can't be written, also within the block.
    """
    parent = writable(cache_home() / "scratch")
    with in_the_cache():
        parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=parent) as name:
            yield Path(name)


def kept(directory: Path, fill: Callable[[Path], None]) -> Path:
    """`directory`, filled by `fill` unless it exists or another process fills it first; it never changes.

    Raises ConfigurationError where the cache can't be written, and the errors of `fill`.
    """
    if is_whole(directory):
        mark_used(directory)
        return directory
    directory = writable(directory)
    if is_whole(directory):
        return directory
    with in_the_cache():
        directory.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
        try:
            fill(partial)
            if not is_whole(directory):
                shutil.rmtree(directory, ignore_errors=True)
            partial.rename(directory)
        except OSError:
            if not is_whole(directory):
                raise
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return directory


def kept_file(name: str, content: bytes) -> Path:
    """The path of a file with this name and content in the cache. Raises ConfigurationError."""
    key = hashlib.sha256(name.encode() + b"\0" + content).hexdigest()[:32]

    def fill(directory: Path) -> None:
        (directory / name).write_bytes(content)

    return kept(objects_home() / key, fill) / name


@contextmanager
def in_the_cache() -> Iterator[None]:
    """Wraps writes to the cache. Raises ConfigurationError where the cache can't be written."""
    try:
        yield
    except OSError as error:
        home = cache_home()
        named = str(error.filename or "").startswith(f"{home}/")
        # The error of a full disk has no file name.
        full = error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT)
        if not (named or full):
            raise
        raise ConfigurationError(
            f"the cache can't be written: {error.filename if named else home}: {error.strerror}",
            next_step=f"make room in {home}, or set XDG_CACHE_HOME to a directory that you may write to",
        ) from error


def mark_used(directory: Path) -> None:
    """Note that `directory` was used now, where the cache can be written; see `bound`."""
    if time.time() - directory.stat().st_mtime > _NEWS_S:
        with suppress(OSError):
            os.utime(directory)


@dataclass(frozen=True, slots=True)
class Entry:
    """A directory of the cache.

    kind: "firmware", "work", "plugin", "rtl", "objects" or "symbols": the directory that it is in.
    bytes: size of its files on the disk.
    used: time of its last use, seconds since 1970.
    """

    path: Path
    kind: str
    bytes: int
    used: float


def entries() -> list[Entry]:
    """All entries, the most recently used first."""
    unsorted = [
        Entry(path, kind, _bytes(path), _used(path))
        for kind in _KINDS
        for path in _directories(cache_home() / kind)
    ]
    return sorted(unsorted, key=lambda item: item.used, reverse=True)


def limit() -> int:
    """The limit of the cache in bytes. Raises ConfigurationError for an invalid size."""
    text = os.environ.get(SIZE_VARIABLE, "")
    if not text:
        return _LIMIT
    size = re.fullmatch(r"(\d+)([KMGT]?)(?:i?B)?", text.strip())
    if size is None:
        raise ConfigurationError(
            f"{SIZE_VARIABLE}={text} is no size", next_step="write it as 500M or 10G, or leave it out"
        )
    return int(size[1]) << 10 * " KMGT".index(size[2] or " ")


def size_text(size: int) -> str:
    """A size for people: "1.2 GiB"."""
    number = float(size)
    for unit in ("bytes", "KiB", "MiB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1024
    return f"{number:.3g} GiB"


def bound_at_times(keep: Sequence[Path]) -> None:
    """Bound the cache after a build, as `bound` does, unless another build of the last ten minutes did."""
    bounded = cache_home() / _BOUNDED
    if os.access(cache_home(), os.W_OK) and not 0 <= time.time() - _used(bounded) < _BOUND_S:
        bounded.touch()
        bound(keep)


def bound(keep: Sequence[Path] = ()) -> list[Entry]:
    """Remove entries unused for long, then the least recently used until the rest is within the limit.

    keep: entries that stay in any case, as do those used within the last hour. Returns the removed entries.
    """
    now, total, most = time.time(), 0, limit()
    removed: list[Entry] = []
    if not os.access(cache_home(), os.W_OK):
        return removed
    for entry in entries():
        total += entry.bytes
        young = entry.path in keep or now - entry.used < _YOUNG_S
        if not young and (now - entry.used > _KEEP_S or total > most) and remove(entry):
            total -= entry.bytes
            removed.append(entry)
    _remove_litter()
    return removed


def remove(entry: Entry) -> bool:
    """Remove an entry unless a build uses it; returns True if it is gone."""
    lock = entry.path.with_suffix(".lock")
    if not lock.exists():
        shutil.rmtree(entry.path, ignore_errors=True)
        return True
    descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(entry.path, ignore_errors=True)
        entry.path.with_suffix(".log").unlink(missing_ok=True)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def _remove_litter() -> None:
    """Deletes entries left unfinished by a killed build, and logs or lists whose entry is gone."""
    now = time.time()
    home = cache_home()
    patterns = (
        *(f"{kind}/.*" for kind in _KINDS),
        "plans/*/.*",
        "work/*.log",
        "objects/*.json",
        "objects/*.look",
        "hashes/*",
    )
    for keep_s, pattern in (*((_KEEP_S, pattern) for pattern in patterns), (_SCRATCH_S, "scratch/*")):
        for path in home.glob(pattern):
            if now - _used(path) > keep_s:
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def _directories(parent: Path) -> list[Path]:
    try:
        return [path for path in parent.iterdir() if path.is_dir() and not path.name.startswith(".")]
    except FileNotFoundError:
        return []


def _bytes(directory: Path) -> int:
    total = 0
    for parent, _, files in os.walk(directory):
        for name in files:
            try:
                total += os.lstat(os.path.join(parent, name)).st_blocks * 512
            except FileNotFoundError:
                continue
    return total


def _used(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
