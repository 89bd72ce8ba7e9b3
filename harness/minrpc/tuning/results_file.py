# SPDX-License-Identifier: Apache-2.0
"""Results as JSON lines, one for each candidate, written at once, so that an abrupt end loses none.

Each line has hashes of its result's inputs, and a hash of itself: results of another kernel, and edited
lines, are refused.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final, Self

from minrpc.errors import ConfigurationError
from minrpc.host.files import unwritable
from minrpc.names import listed
from minrpc.tuning.candidates import CandidateResult, Space

if sys.platform != "win32":
    import fcntl

_IDENTITY: Final = "identity"
_CHECKSUM: Final = "line_sha256"
_ANOTHER_FILE: Final = "begin another file by --results"


class ResultsFile:
    """The results of one platform in the file at `path`, to append to. The file may have results of other
    platforms, too.

    identity: hashes of the results' inputs, from `identity`.
    earlier: the space's results in the file; the last of a candidate counts. A line that was cut off when its
        writer was killed is dropped.

    Raises ConfigurationError, with the line, for a file of another space or identity, or a damaged or edited
    file; and for a file that can't be written.
    """

    def __init__(self, path: Path, platform: str, space: Space, identity: Mapping[str, str]) -> None:
        self._path = path
        self._platform = platform
        self._identity = dict(identity)
        self.earlier: list[CandidateResult] = []
        try:
            self._file: IO[bytes] = path.open("ab", buffering=0)
        except OSError as error:
            raise unwritable(path, error) from error
        try:
            self._lock()
            text = path.read_bytes() if path.is_file() else b""  # /dev/null and pipes hold no results.
            whole = text.rfind(b"\n") + 1
            self.earlier = self._parsed(text[:whole], space)
            if whole < len(text):
                self._file.truncate(whole)
        except BaseException:
            self._file.close()
            raise

    def _lock(self) -> None:
        """Lock the file until it is closed. Raises ConfigurationError if another run has locked it."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConfigurationError(
                f"{self._path}: another run is adding to it",
                next_step="wait for its end, or name another file",
            ) from error
        except OSError:  # The file system has no locks.
            return

    def _parsed(self, text: bytes, space: Space) -> list[CandidateResult]:
        results: dict[int, CandidateResult] = {}
        for number, content in enumerate(text.splitlines(), 1):
            where = f"{self._path}, line {number}"
            line = _line(where, content)
            if line["platform"] != self._platform:
                continue
            try:
                result = CandidateResult.from_json(line)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise ConfigurationError(
                    f"{where} holds no result: {error!r}", next_step=_ANOTHER_FILE
                ) from error
            self._require_identity(where, line[_IDENTITY])
            _require_candidate(where, result, space)
            results[result.candidate.number] = result
        return list(results.values())

    def _require_identity(self, where: str, given: Mapping[str, str]) -> None:
        differing = [name for name, value in self._identity.items() if given.get(name) != value]
        if differing:
            is_ = "is" if len(differing) == 1 else "are"
            raise ConfigurationError(
                f"{where} is a result of other inputs: the {listed(differing, 5)} {is_} different",
                next_step=_ANOTHER_FILE,
            )

    def add(self, result: CandidateResult) -> None:
        """Write a result at once. Raises ConfigurationError if it can't be written."""
        line = {"platform": self._platform, **result.to_json(), _IDENTITY: self._identity}
        left = memoryview(json.dumps(line | {_CHECKSUM: _checksum(line)}).encode() + b"\n")
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            raise unwritable(self._path, error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _line(where: str, content: bytes) -> dict[str, Any]:
    """A parsed, unmodified line. Raises ConfigurationError."""
    try:
        line = json.loads(content)
        checksum = line.pop(_CHECKSUM)
        known = line["platform"], line[_IDENTITY]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            f"{where} holds no result of `minrpc tune`, or a result of an older version",
            next_step=_ANOTHER_FILE,
        ) from error
    if checksum != _checksum(line) or not isinstance(known[1], dict):
        raise ConfigurationError(
            f"{where} was damaged or edited", next_step="delete that line: its candidate is tried again"
        )
    return dict(line)


def _checksum(line: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(line).encode()).hexdigest()[:16]


def _require_candidate(where: str, result: CandidateResult, space: Space) -> None:
    number = result.candidate.number
    if not 0 <= number < len(space) or result.candidate != space[number]:
        raise ConfigurationError(
            f"{where} holds a result of another space",
            next_step="give the same --param and --flags as for these results",
        )
