# SPDX-License-Identifier: Apache-2.0
"""Text that fits a terminal of 80 columns."""

from __future__ import annotations

import textwrap
from typing import Final

WIDTH: Final = 80


def fact(name: str, text: str, *, column: int = 12) -> str:
    """A name, and beside it the text, from `column` on and wrapped."""
    lines = textwrap.wrap(text, WIDTH - column, break_long_words=False, break_on_hyphens=False) or [""]
    head = f"  {name}".ljust(column - 1) + " "
    return ("\n" + " " * column).join([head + lines[0], *lines[1:]])
