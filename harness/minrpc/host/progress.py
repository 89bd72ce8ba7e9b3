# SPDX-License-Identifier: Apache-2.0
"""Progress of long tasks: a command shows it, on a terminal as a line that moves; a library shows nothing."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TextIO

Step = Callable[[str], None]

_CLEAR: Final = "\r\x1b[K"

_streams: list[TextIO] = []
"""Progress is shown on the last stream; nowhere while the list is empty."""


@contextmanager
def shown_on(stream: TextIO) -> Iterator[None]:
    """Inside the block, tasks show their progress on `stream`."""
    _streams.append(stream)
    try:
        yield
    finally:
        _streams.pop()


@contextmanager
def task(name: str) -> Iterator[Step | None]:
    """A long task: yields the function that shows a step, or None if steps are not shown.

    Without a terminal the name is one line, when the task begins.
    """
    if not _streams:
        yield None
        return
    stream = _streams[-1]
    if not _moves(stream):
        print(name, file=stream, flush=True)
        yield None
        return
    begin = time.monotonic()

    def step(text: str) -> None:
        line = f"{name}, {time.monotonic() - begin:.0f} s  {text}"
        width = shutil.get_terminal_size().columns - 1
        stream.write(f"{_CLEAR}{line[:width]}")
        stream.flush()

    try:
        step("")
        yield step
    finally:
        stream.write(_CLEAR)
        stream.flush()


def _moves(stream: TextIO) -> bool:
    """True if a line on the stream can be overwritten. NO_COLOR asks for text without escape sequences."""
    return stream.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")
