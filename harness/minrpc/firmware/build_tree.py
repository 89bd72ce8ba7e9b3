# SPDX-License-Identifier: Apache-2.0
"""A build tree: kept for incremental builds, and deleted if an incremental build could be wrong.

Remains of an earlier build must not decide the result. The tree's note records how the last build ended and
which files it read; an interrupted build leaves no note, and the next build starts from an empty tree.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from minrpc.errors import BuildError
from minrpc.firmware.build_errors import first_errors, unread_option
from minrpc.firmware.identity import Content, Look, changed_since, content_of
from minrpc.firmware.inputs import ask_for_inputs, files_below, inputs_of, was_asked
from minrpc.firmware.recipes import BUILD_DIR, Recipe, Scope
from minrpc.host import progress
from minrpc.host.process import exited_within, spawn_logged, stop_session
from minrpc.names import did_you_mean
from minrpc.targets import Platform

_BUILD_S: Final = 30 * 60.0
_STEP_S: Final = 0.25
_NOTE: Final = ".minrpc-note"


@dataclass(frozen=True, slots=True)
class BuildAttempt:
    """The result of a run.

    content: the inputs that it read. look: the quick look at them. Both are None where configuring failed.
    changed: files that changed during the run, so that the result belongs to neither state.
    """

    failure: BuildError | None
    content: Content | None = None
    look: Look | None = None
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Note:
    """A note on the last run: its result, its inputs, and its time in nanoseconds of the file system's
    clock."""

    built: bool
    content: Content
    written_ns: int


class BuildTree:
    """The tree for `recipe`. lock: descriptor of its lock file, which the build's tools inherit."""

    def __init__(self, recipe: Recipe, scope: Scope, directory: Path, lock: int) -> None:
        self._recipe = recipe
        self._scope = scope
        self._lock = lock
        self.directory = directory
        # All output of the last build.
        self.log = directory.with_suffix(".log")

    def run(self, platform: Platform) -> BuildAttempt:
        """Configure if needed, then compile; the log has the output of both."""
        name = platform.name
        begin_ns = time.time_ns()
        note = self._taken_note()
        self.log.unlink(missing_ok=True)
        if note is None:
            shutil.rmtree(self.directory, ignore_errors=True)
            self.directory.mkdir(parents=True)
            ask_for_inputs(self.directory)
        if note is None or not note.built:
            # CMake would not look again for files that it has not found before.
            (self.directory / "CMakeCache.txt").unlink(missing_ok=True)
            try:
                self._execute(name, "configuring", self._recipe.configure)
                self._check_options(platform)
            except BuildError as error:
                return BuildAttempt(error, changed=tuple(changed_since(self._own_files(), begin_ns)))
        try:
            self._execute(name, "compiling", self._recipe.compile)
        except BuildError as error:
            return self._ended(error, begin_ns)
        return self._ended(None, begin_ns)

    def _ended(self, failure: BuildError | None, begin_ns: int) -> BuildAttempt:
        scope = self._scope
        inputs = inputs_of(
            self.directory, listings=scope.listings, whole=scope.whole, optional=scope.optional
        )
        look = Look.at("", inputs)
        content = content_of(inputs, self._recipe.places)
        changed = tuple(changed_since(inputs.files | inputs.tools, begin_ns))
        if not changed:
            note = {"built": failure is None, "content": content.to_json()}
            (self.directory / _NOTE).write_text(json.dumps(note))
        return BuildAttempt(failure, content, look, changed)

    def _own_files(self) -> set[str]:
        return {str(path) for directory in self._scope.listings for path in files_below(directory)}

    def _taken_note(self) -> _Note | None:
        """Takes the note and deletes it; None if the tree can't be reused."""
        file = self.directory / _NOTE
        try:
            document = json.loads(file.read_bytes())
            note = _Note(document["built"], Content.from_json(document["content"]), file.stat().st_mtime_ns)
        except (OSError, ValueError, KeyError):
            return None
        finally:
            file.unlink(missing_ok=True)
        return note if was_asked(self.directory) and self._goes_on(note) else None

    def _goes_on(self, note: _Note) -> bool:
        """True if ninja can see all changes: changed sources are newer than their outputs."""
        places, content = self._recipe.places, note.content
        if content.unsure or not (content.still_found(places) and content.same_tools(places)):
            return False
        return all(_modified_ns(path) > note.written_ns for path in content.changed_files(places))

    def _check_options(self, platform: Platform) -> None:
        """Raise BuildError for a given option without effect."""
        unread = unread_option(_text(self.log), platform.cmake_options)
        if unread is None:
            return
        option, name = unread
        files = [Path(path) for path in self._own_files() if path.endswith((".cmake", "CMakeLists.txt"))]
        known = {word for file in files for word in re.findall(r"MINRPC_\w+", _text(file))}
        correct = "correct the name, or give the option only to the platforms that read it"
        raise BuildError(
            f"{option} has no effect on {platform.name}: its CMake files don't read {name}",
            log_path=self.log,
            next_step=did_you_mean(name, known) or correct,
        )

    def _execute(self, name: str, doing: str, command: Sequence[str]) -> None:
        recipe = self._recipe
        argv = [str(self.directory) if word == BUILD_DIR else word for word in command]
        environment = recipe.environment_in(self.directory)
        process = spawn_logged(argv, self.log, cwd=recipe.cwd, env=environment, pass_fds=(self._lock,))
        try:
            status = self._exit_status(f"{name}: {doing} the firmware", process)
        finally:
            stop_session(process)
        if status is None:
            message = f"the build of {name} did not end within {_BUILD_S / 60:.0f} minutes"
            raise BuildError(message, log_path=self.log)
        if status != 0:
            raise BuildError(
                f"the firmware of {name} did not build",
                log_path=self.log,
                details=first_errors(
                    self.log.read_text(errors="backslashreplace"),
                    "".join(map(_text, sorted(self.directory.glob("zephyr/*.map")))),
                    _text(self.directory / "zephyr" / ".config"),
                ),
            )

    def _exit_status(self, task: str, process: subprocess.Popen[bytes]) -> int | None:
        """The exit status; None at the deadline. Shows the log's last line as the step."""
        with progress.task(task) as step:
            if step is None:
                return exited_within(process, _BUILD_S)
            end = time.monotonic() + _BUILD_S
            while time.monotonic() < end:
                status = exited_within(process, _STEP_S)
                if status is not None:
                    return status
                step(last_step(self.log))
        return None


def last_step(log: Path) -> str:
    """The last line of a build's log, without the directories of its files."""
    with suppress(OSError):
        lines = log.read_text(errors="replace").splitlines()
        return re.sub(r"\S*/", "", lines[-1]) if lines else ""
    return ""


def _text(file: Path) -> str:
    """Content of a file; "" for a missing file."""
    return file.read_text(errors="replace") if file.is_file() else ""


def _modified_ns(path: str) -> int:
    """Time of modification; 0 for a missing file, so that it is older than any other."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0
