# SPDX-License-Identifier: Apache-2.0
"""Walks over the entries of debug information, which end also in a damaged file.

pyelftools follows a reference back to an earlier sibling for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from weakref import WeakKeyDictionary

from elftools.dwarf.die import DIE

# Ends of entries without DW_AT_sibling, whose children had to be walked: compilers leave it out for the last
# entry of a list, and each entry above would walk the list again.
_ENDS: Final[WeakKeyDictionary[DIE, int]] = WeakKeyDictionary()


def children(die: DIE) -> Iterator[DIE]:
    """The entries directly below `die`. Raises ValueError for siblings in another order than the file's."""
    if not die.has_children:
        return
    at = die.offset + die.size
    while not (child := die.cu.get_DIE_from_refaddr(at)).is_null():
        yield child
        following = _end(child)
        if following <= at:
            raise ValueError("an entry of the debug information leads back")
        at = following


def below(die: DIE) -> Iterator[DIE]:
    """All entries below `die`, in the order of the file."""
    for child in children(die):
        yield child
        yield from below(child)


def origins(die: DIE) -> Iterator[DIE]:
    """The entry, and the entries that it completes: an inlined function's abstract entry, a declaration.

    Raises ValueError if an entry completes itself.
    """
    seen: set[int] = set()
    while die.offset not in seen:
        seen.add(die.offset)
        yield die
        links = ("DW_AT_abstract_origin", "DW_AT_specification")
        link = next((link for link in links if link in die.attributes), None)
        if link is None:
            return
        die = die.get_DIE_from_attribute(link)
    raise ValueError("an entry of the debug information completes itself")


def _end(die: DIE) -> int:
    """Offset behind the entry and all entries below it."""
    if not die.has_children:
        return int(die.offset + die.size)
    if "DW_AT_sibling" in die.attributes:
        return int(die.get_DIE_from_attribute("DW_AT_sibling").offset)
    if (end := _ENDS.get(die)) is None:
        end = die.offset + die.size
        for child in children(die):
            end = _end(child)
        end = _ENDS[die] = int(end) + 1  # The list of children ends by a byte of 0.
    return end
