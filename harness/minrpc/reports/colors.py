# SPDX-License-Identifier: Apache-2.0
"""Colours of boxes with black letters in them."""

from __future__ import annotations


def warm(name: str) -> str:
    """The same for a name each time, in CSS: yellow to red, light."""
    mixed = _mixed(name)
    return f"hsl({20 + mixed % 35}, {65 + mixed % 25}%, {68 + mixed % 14}%)"


def any_hue(name: str) -> str:
    """The same for a name each time, in CSS, light."""
    mixed = _mixed(name)
    return f"hsl({mixed * 47 % 360}, {45 + mixed % 20}%, {70 + mixed % 10}%)"


def _mixed(name: str) -> int:
    return sum(ord(letter) * (index + 7) for index, letter in enumerate(name))
