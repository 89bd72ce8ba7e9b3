# SPDX-License-Identifier: Apache-2.0
"""Results as JSON lines, one for each candidate, written as they come: what is there survives any end."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import IO, Self

from minrpc.errors import ConfigurationError
from minrpc.host.files import unwritable
from minrpc.tuning.candidates import Result, Space

if sys.platform != "win32":
    import fcntl


class ResultsFile:
    """The results of one platform in the file at `path`, to which more are added. It may have others' too.

    earlier: what it holds of the space; the last one of a candidate counts. A line that was cut when its
        writer was killed is dropped.

    Raises ConfigurationError for a file that is not of this space, or can't be written.
    """

    def __init__(self, path: Path, platform: str, space: Space) -> None:
        self._path = path
        self._platform = platform
        self.earlier: list[Result] = []
        try:
            self._file: IO[str] = path.open("a", encoding="utf-8")
        except OSError as error:
            raise unwritable(path, error) from error
        try:
            self._lock()
            text = path.read_bytes()
            whole = text.rfind(b"\n") + 1
            self.earlier = self._parsed(text[:whole].decode(), space)
            if whole < len(text):
                self._file.truncate(whole)
        except BaseException as error:
            self._file.close()
            if isinstance(error, UnicodeDecodeError):
                raise ConfigurationError(f"{path} holds no results: {error}") from error
            raise

    def _lock(self) -> None:
        """Raise ConfigurationError where another run adds to the file; the lock goes with the file."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConfigurationError(
                f"{self._path}: another run is adding to it", next_step="wait for that, or name another file"
            ) from error
        except OSError:  # A file system without locks.
            return

    def _parsed(self, text: str, space: Space) -> list[Result]:
        found: dict[int, Result] = {}
        try:
            for line in map(json.loads, text.splitlines()):
                if line["platform"] == self._platform:
                    result = Result.from_json(line)
                    self._require(result, space)
                    found[result.candidate.number] = result
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigurationError(f"{self._path} holds no results of this space: {error}") from error
        return list(found.values())

    def _require(self, result: Result, space: Space) -> None:
        number = result.candidate.number
        if not 0 <= number < len(space) or result.candidate != space[number]:
            raise ConfigurationError(
                f"{self._path} holds results of another space",
                next_step="give the same --param and --flags as then",
            )

    def add(self, result: Result) -> None:
        """Write one, at once."""
        print(json.dumps({"platform": self._platform, **result.to_json()}), file=self._file, flush=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
