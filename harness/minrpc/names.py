# SPDX-License-Identifier: Apache-2.0
"""Names in messages: lists of known names, and names that the user may have meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_NEAR = 3


def listed(names: Iterable[str], most: int) -> str:
    """The first names, with an ellipsis if there are more: "a, b, …"; "none" without names."""
    known = list(names)
    return ", ".join(known[:most] + ["…"] * (len(known) > most)) or "none"


def near_or_all(name: str, known: Iterable[str]) -> list[str]:
    """The names in `known` that look like `name`, the nearest first; all names if none does."""
    names = list(known)
    return difflib.get_close_matches(name, names, _NEAR) or names


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """ "did you mean a or b", with the known names that look like `name`; "" if none does."""
    near = difflib.get_close_matches(name, list(known), _NEAR)
    return f"did you mean {' or '.join(near)}" if near else ""


def in_files(name: str, known: Iterable[str]) -> list[str]:
    """The names in `known` of things that have this name in one of several files: "a.c:name"."""
    return [qualified for qualified in known if qualified.endswith(f":{name}")]


def text_name(name: object, of: str) -> str:
    """The name itself. Raises TypeError for a value that is not a text: "a function's name is a text, not
    5"."""
    if not isinstance(name, str):
        raise TypeError(f"a {of}'s name is a text, not {name!r}")
    return name


def kind_of(value: object) -> str:
    """The name of the value's type with its article: "a list", "an int"."""
    name = type(value).__name__
    return f"a{'n' * (name[0] in 'aeioAEIO')} {name}"


def instead_of(key: str, known: Iterable[str]) -> str:
    """Advice for an unknown key: "write 'a'", or "known keys are a, b"."""
    keys = list(known)
    near = difflib.get_close_matches(key, keys, n=1)
    return f"write {near[0]!r}" if near else f"known keys are {', '.join(keys)}"


def same_board(left: str, right: str) -> bool:
    """True for two names of one board: omitted qualifiers and "/" for "_" make no difference."""
    first, second = (re.sub(r"[/@]", "_", name) for name in (left, right))
    return first == second or (("/" in left) != ("/" in right) and left.split("/")[0] == right.split("/")[0])
