# SPDX-License-Identifier: Apache-2.0
"""Text that fits a terminal of 80 columns."""

from __future__ import annotations

import textwrap
from typing import Final

WIDTH: Final = 80


def fact(name: str, text: str, *, column: int = 12) -> str:
    """A name, and beside it the text, from `column` on and wrapped."""
    return beside(f"  {name}", text, column=column)


def beside(head: str, text: str, *, column: int) -> str:
    """The text from `column` on and wrapped, beside `head`, which is not; below it where that is too long."""
    lines = wrapped(text, WIDTH - column)
    first = [head.ljust(column) + lines[0]] if len(head) < column else [head, " " * column + lines[0]]
    return "\n".join([*first, *(" " * column + line for line in lines[1:])]).rstrip()


def wrapped(text: str, width: int = WIDTH) -> list[str]:
    """Lines of at most so many columns; a word is never cut. One empty line for no text."""
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]
