# SPDX-License-Identifier: Apache-2.0
"""The identity of a firmware: the plan of its build, and the content of all files that the build read.

    plan       commands, options, environment and programs: known before the build
    inputs     files read by a build with that plan (`minrpc.firmware.inputs`), each file with its SHA-256
    name       the hash of both; the same in every checkout of the same state (`minrpc.firmware.places`)

A lookup takes two steps. The quick step compares the file system's facts about each input with those from
when its content was read: device and inode, size, time of change of the content and of the inode. It assumes
that a file with the same facts has the same bytes. The kernel sets the inode's time at each write and no
program can set it back, so the assumption fails only if the clock is set back to the same nanosecond, or if a
network's file server keeps other times. A recent time is not trusted, since two writes may fall into one
tick: for 50 ms, and for 2 s on a file system that counts whole seconds. The second step reads all files.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from minrpc.firmware.cache import cache_home
from minrpc.firmware.inputs import Inputs, names_in
from minrpc.firmware.places import Places
from minrpc.host.files import write_whole

FORMAT: Final = 3
"""Changed whenever this program builds different firmware from the same inputs."""
_SECOND_NS: Final = 1_000_000_000
_NUMBERS_OF: Final = attrgetter("st_dev", "st_ino", "st_size", "st_mtime_ns", "st_ctime_ns")
_SIZE: Final = 2
_LARGE: Final = 1 << 20
_DIGITS: Final = 64
_NOTHING: Final = (0, 0, 0, 0, 0)
_YOUNG_NS: Final = 50_000_000
_YOUNG_COARSE_NS: Final = 2 * _SECOND_NS
# A file's time comes from a clock that ticks every 4 to 10 ms.
_TICK_NS: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class Content:
    """Content of inputs: SHA-256 of each file and of the names in each directory; paths as in `Places`.

    unsure: the reason why there may be further inputs, and the time of reading; "" if there are none.
    """

    files: dict[str, str]
    tools: dict[str, str]
    listings: dict[str, str]
    searched: dict[str, str]
    names: tuple[str, ...]
    unsure: str

    def to_json(self) -> dict[str, Any]:
        """The document for a file."""
        return {
            "files": self.files,
            "tools": self.tools,
            "listings": self.listings,
            "searched": self.searched,
            "names": list(self.names),
            "unsure": self.unsure,
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Content:
        """Reads a document of `to_json`. Raises KeyError."""
        return cls(
            document["files"],
            document["tools"],
            document["listings"],
            document["searched"],
            tuple(document["names"]),
            document["unsure"],
        )

    def inputs(self, places: Places) -> Inputs:
        """The inputs with their paths on this machine."""
        return Inputs(
            frozenset(map(places.expand_path, self.files)),
            frozenset(map(places.expand_path, self.tools)),
            frozenset(map(places.expand_path, self.listings)),
            frozenset(map(places.expand_path, self.searched)),
            frozenset(self.names),
            self.unsure,
        )

    def holds(self, places: Places, read: Callable[[str], str]) -> bool:
        """True if all inputs are unchanged; calls `read` for each file, up to the first difference."""
        return (
            not self.unsure
            and all(read(places.expand_path(path)) == was for path, was in self.files.items())
            and self.still_found(places)
            and all(read(places.expand_path(path)) == was for path, was in self.tools.items())
        )

    def still_found(self, places: Places) -> bool:
        """True if configuring and compiling would find the same files."""
        names = frozenset(self.names)
        expand = places.expand_path
        return all(_listing(expand(path), names) == was for path, was in self.searched.items()) and all(
            _listing(expand(path)) == was for path, was in self.listings.items()
        )

    def changed_files(self, places: Places) -> list[str]:
        """The changed files among `files`."""
        paths = {places.expand_path(path): was for path, was in self.files.items()}
        return [path for path, was in paths.items() if file_hash(path) != was]

    def same_tools(self, places: Places) -> bool:
        """True if all of `tools` are unchanged."""
        return all(file_hash(places.expand_path(path)) == was for path, was in self.tools.items())


def content_of(inputs: Inputs, places: Places) -> Content:
    """The current content of `inputs`. A missing file has the hash "", which never matches."""
    shorten = places.shorten_path
    return Content(
        # The user's own files first: they are likely to differ, and the comparison ends at a difference.
        files={shorten(path): file_hash(path) for path in sorted(inputs.files, key=_users_first(places))},
        tools={shorten(path): file_hash(path) for path in sorted(inputs.tools)},
        listings={shorten(path): _listing(path) for path in sorted(inputs.listings)},
        searched={shorten(path): _listing(path, inputs.names) for path in sorted(inputs.searched)},
        names=tuple(sorted(inputs.names)),
        unsure=f"{inputs.unsure} {time.time_ns()}" if inputs.unsure else "",
    )


def _users_first(places: Places) -> Callable[[str], tuple[bool, str]]:
    return lambda path: (not places.shorten_path(path).startswith("{"), path)


def name_of(plan: str, content: Content) -> str:
    """The firmware's name: SHA-256, as hexadecimal digits."""
    return hash_of([plan, json.dumps(content.to_json(), sort_keys=True)])


def hash_of(words: Iterable[str]) -> str:
    """SHA-256 of the words; no word holds a zero byte."""
    return hashlib.sha256("\0".join([str(FORMAT), *words]).encode("utf-8", "surrogateescape")).hexdigest()


def changed_since(paths: Iterable[str], begin_ns: int) -> list[str]:
    """The files that were changed after that time: a build from then on may have read either state."""
    return sorted(path for path in paths if _changed_ns(path) >= begin_ns - _TICK_NS)


@dataclass(frozen=True, slots=True)
class Look:
    """The quick step's note: paths, and the file system's facts about them.

    about: "" if a time was too recent to be trusted, or not all inputs are known.
    """

    name: str
    paths: tuple[str, ...]
    about: str

    @classmethod
    def at(cls, name: str, inputs: Inputs) -> Look:
        """Takes the note; call it before the content is read."""
        directories = inputs.listings | inputs.searched
        looked_at = _looked_at(directories)
        paths = (*sorted(inputs.files | inputs.tools), *looked_at)
        about = "" if inputs.unsure else _about(paths, time.time_ns())
        return cls(name, paths, about if _looked_at(directories) == looked_at else "")

    def holds(self) -> bool:
        """True if the file system's facts are unchanged."""
        return bool(self.about) and self.about == _about(self.paths, None)

    def to_text(self) -> str:
        """The text for a file; a line for each path."""
        return "\n".join([self.name, self.about, *self.paths])

    @classmethod
    def from_text(cls, text: str) -> Look:
        """Reads a text of `to_text`."""
        name, about, *paths = text.split("\n")
        return cls(name, tuple(paths), about)


def _looked_at(directories: Iterable[str]) -> list[str]:
    """Paths whose facts change when one of the directories appears, changes, or vanishes: those that are
    there, and for others the first missing directory above them, unless the one around it is looked at."""
    there = set(filter(os.path.isdir, directories))
    missing = set()
    for path in set(directories) - there:
        while (parent := os.path.dirname(path)) and not os.path.isdir(parent):
            path = parent
        if parent not in there:
            missing.add(path)
    return sorted(there | missing)


def _about(paths: Sequence[str], now_ns: int | None) -> str:
    """Hash of the file system's facts about `paths`; "" if one is too recent at `now_ns`, or is missing."""
    stat, numbers_of = os.stat, _NUMBERS_OF
    numbers: list[int] = []
    try:
        for path in paths:
            try:
                numbers += numbers_of(stat(path))
            except (FileNotFoundError, NotADirectoryError):
                numbers += _NOTHING
        packed = array("Q", numbers).tobytes()
    except (OSError, OverflowError):
        return ""
    if now_ns is not None and any(_is_young(changed, now_ns) for changed in numbers[4::5]):
        return ""
    return hashlib.blake2b(packed, digest_size=16).hexdigest()


def _is_young(changed_ns: int, now_ns: int) -> bool:
    return changed_ns > now_ns - (_YOUNG_NS if changed_ns % _SECOND_NS else _YOUNG_COARSE_NS)


def file_hash(path: str) -> str:
    """SHA-256 of a file's bytes; "" where it can't be read. Kept for a file with the same facts."""
    try:
        state = os.stat(path)
        young = _is_young(state.st_ctime_ns, time.time_ns())
        return _read_hash(path) if young else _hash_of_state(path, _NUMBERS_OF(state))
    except (OSError, ValueError):
        return ""


@lru_cache(maxsize=4096)
def _hash_of_state(path: str, state: tuple[int, ...]) -> str:
    if state[_SIZE] < _LARGE:
        return _read_hash(path)
    # A compiler takes 50 ms: its hash is kept for other processes.
    note = cache_home() / "hashes" / hash_of([path, *map(str, state)])
    with suppress(OSError):
        kept = note.read_text()
        if len(kept) == _DIGITS:  # Not after a loss of power.
            return kept
    digest = _read_hash(path)
    with suppress(OSError):  # The cache may be read-only.
        note.parent.mkdir(exist_ok=True)
        write_whole(note, digest)
    return digest


def _read_hash(path: str) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _listing(directory: str, wanted: frozenset[str] | None = None) -> str:
    return hashlib.sha256(
        "\0".join(names_in(directory, wanted)).encode("utf-8", "surrogateescape")
    ).hexdigest()


def _changed_ns(path: str) -> int:
    try:
        return os.stat(path).st_ctime_ns
    except OSError:
        return time.time_ns()
