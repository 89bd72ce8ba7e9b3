# SPDX-License-Identifier: Apache-2.0
"""Progress of long tasks, on a terminal and elsewhere."""

from __future__ import annotations

import io
import os
import pty
from contextlib import suppress

import pytest
from minrpc.host.progress import shown_on, task


def on_a_terminal() -> str:
    """Output of a task with two steps on a terminal of 40 columns."""
    controller, terminal = pty.openpty()
    with os.fdopen(terminal, "w") as stream, shown_on(stream), task("posix: compiling") as step:
        if step is not None:
            step("[1/2] a.c")
            step("[2/2] " + "long " * 40)
    with os.fdopen(controller, "rb", buffering=0) as reader:
        shown = b""
        with suppress(OSError):  # The terminal was closed, and all of it is read.
            while part := reader.read(65536):
                shown += part
    return shown.decode()


def test_a_line_that_moves_and_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.delenv("NO_COLOR", raising=False)
    lines = on_a_terminal().split("\r\x1b[K")
    assert lines[2] == "posix: compiling, 0 s  [1/2] a.c"
    assert lines[-1] == ""
    assert max(map(len, lines)) < 40
    assert not any("\n" in line for line in lines)


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_without_escape_sequences_the_task_is_a_line(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert on_a_terminal() == "posix: compiling\r\n"


def test_a_file_gets_a_line_and_a_library_shows_nothing() -> None:
    stream = io.StringIO()
    with shown_on(stream), task("posix: compiling") as step:
        assert step is None
    assert stream.getvalue() == "posix: compiling\n"
    with task("posix: compiling") as step:
        assert step is None
    assert stream.getvalue() == "posix: compiling\n"
