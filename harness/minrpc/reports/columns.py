# SPDX-License-Identifier: Apache-2.0
"""Text that fits a terminal of 80 columns."""

from __future__ import annotations

import textwrap
from typing import Final

WIDTH: Final = 80


def fact(name: str, text: str, *, column: int = 12) -> str:
    """A name, and beside it the wrapped text, which starts at `column`."""
    return beside(f"  {name}", text, column=column)


def beside(head: str, text: str, *, column: int) -> str:
    """The wrapped text at `column`, beside `head`, which is not wrapped; below `head` if that is too long."""
    lines = wrapped(text, WIDTH - column)
    first = [head.ljust(column) + lines[0]] if len(head) < column else [head, " " * column + lines[0]]
    return "\n".join([*first, *(" " * column + line for line in lines[1:])]).rstrip()


def wrapped(text: str, width: int = WIDTH) -> list[str]:
    """Lines of at most `width` columns; a word is never cut. An empty text gives one empty line."""
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]
