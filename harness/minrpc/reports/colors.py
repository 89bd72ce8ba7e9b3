# SPDX-License-Identifier: Apache-2.0
"""Colours of boxes with black text."""

from __future__ import annotations


def warm(name: str) -> str:
    """A light CSS colour from yellow to red; a name always gets the same colour."""
    mixed = _mixed(name)
    return f"hsl({20 + mixed % 35}, {65 + mixed % 25}%, {68 + mixed % 14}%)"


def any_hue(name: str) -> str:
    """A light CSS colour; a name always gets the same colour."""
    mixed = _mixed(name)
    return f"hsl({mixed * 47 % 360}, {45 + mixed % 20}%, {70 + mixed % 10}%)"


def _mixed(name: str) -> int:
    return sum(ord(letter) * (index + 7) for index, letter in enumerate(name))
