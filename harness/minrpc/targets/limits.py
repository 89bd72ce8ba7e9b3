# SPDX-License-Identifier: Apache-2.0
"""A project's limits on size and time: the table [limits] of minrpc.toml.

    [limits]
    flash = 20000                       # bytes of any platform's firmware; the same for ram
    exp.instructions = "+2%"            # a call of exp, against the base of a comparison
    exp.time = "3 ms"                   # at the most
    scale.code = 120                    # bytes of the code loaded for it
    dsp.fir.instructions = "+2%"        # a function of the library dsp, linked in

    [limits.bare_mps2_an385]            # the same, for one platform
    flash = 30000
    exp.stack_bytes = "+16"

A number is the maximum; a text with a sign is the allowed growth over the base, in the number's unit or in
percent. A decrease is always allowed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from minrpc.errors import ConfigurationError

_Path = tuple[str, ...]

SIZES: Final = ("flash", "ram")
"""Limits of a firmware; all other limits are of calls."""

_TIME: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(s|ms|us|µs|ns)\s*")
_SECONDS: Final = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_MORE: Final = re.compile(r"\s*\+\s*(\d+(?:\.\d+)?)\s*(%?)\s*")


@dataclass(frozen=True, slots=True)
class Limit:
    """The limit of one number.

    function: the measured function; "" for a size of the firmware. what: "flash", "time", "instructions", ...
    platform: "" for all. kind: `value` is the maximum, or the growth over the base: in the
        number's unit, or as a share.
    origin: the file and the key, for messages. text: the limit as written in the file.
    """

    function: str
    what: str
    kind: Literal["most", "more", "share"]
    value: float
    platform: str = ""
    origin: str = ""
    text: str = ""

    @property
    def key(self) -> str:
        """The limit's key in the file."""
        return ".".join(part for part in ("limits", self.platform, self.function, self.what) if part)

    def allows(self, base: float | None, head: float) -> bool:
        """True if `head` is within the limit; growth is always allowed without a base."""
        if self.kind == "most":
            allowed = self.value
        elif base is None:
            return True
        else:  # A net base may be below 0 by noise.
            allowed = base + self.value * (1 if self.kind == "more" else abs(base))
        return head <= allowed or math.isclose(head, allowed, rel_tol=1e-12)


def limits_of(
    table: object, platforms: Collection[str], origin: str, libraries: Collection[str] = ()
) -> tuple[Limit, ...]:
    """The limits of a parsed table.

    platforms, libraries: allowed names of tables in it: limits of a platform, or of a library's functions.
    Raises ConfigurationError with the key.
    """
    if not isinstance(table, Mapping):
        raise ConfigurationError(f"{origin}: limits must be a table, [limits]")
    return tuple(_limit_at(path, value, platforms, libraries, origin) for path, value in _leaves(table))


def _leaves(
    table: Mapping[str, object], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], object]]:
    """The keys that lead to each value of nested tables, and the value."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*above, name))
        else:
            yield (*above, name), value


def _limit_at(
    path: _Path,
    value: object,
    platforms: Collection[str],
    libraries: Collection[str],
    origin: str,
) -> Limit:
    """The limit of a value, by its keys: [PLATFORM.]SIZE, [PLATFORM.][LIBRARY.]FUNCTION.NUMBER."""
    platform = path[0] if path[0] in platforms else ""
    where = f"{origin}: limits{'.' + platform if platform else ''}"
    match path[1:] if platform else path:
        case ():
            raise ConfigurationError(f"{where} must be a table, [limits.{platform}]")
        case (what,) if what in SIZES:
            return _limit("", what, value, platform, origin)
        case (name,):
            step = f'write {" or ".join(SIZES)}, or a number of a call: {name}.instructions = "+2%"'
            raise ConfigurationError(f"{where}.{name}: nothing is known by that name", next_step=step)
        case (function, what) if what not in SIZES:
            return _limit(function, what, value, platform, origin)
        case (library, function, what) if what not in SIZES and library in libraries:
            return _limit(f"{library}.{function}", what, value, platform, origin)
        case (name, *_):
            step = (
                "see `minrpc platforms`; a board of Zephyr's needs an entry, [platforms.NAME], and a library "
                "[libraries.NAME]"
            )
            message = f"{where}.{name}: there is no such platform, and no library of that name"
            raise ConfigurationError(message, next_step=step)
    raise AssertionError(path)


def _limit(function: str, what: str, value: Any, platform: str, origin: str) -> Limit:  # noqa: ANN401 - TOML's
    made = Limit(function, what, "most", 0.0, platform, origin, str(value))
    kind, number = _parsed(value, what)
    if kind is None:
        step = 'write the most, 20000; or how much more than the base, "+200" or "+2%"'
        if what == "time":
            step = 'write the most, "3 ms"; or how much more than the base, "+2%"'
        raise ConfigurationError(f"{origin}: {made.key}: {value!r} is no limit", next_step=step)
    return Limit(function, what, kind, number, platform, origin, str(value))


def _parsed(value: object, what: str) -> tuple[Literal["most", "more", "share"], float] | tuple[None, float]:
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 and what != "time":
        return "most", float(value)
    if not isinstance(value, str):
        return None, 0.0
    time, more = _TIME.fullmatch(value), _MORE.fullmatch(value)
    if time and what == "time":
        return "most", float(time[1]) * _SECONDS[time[2]]
    if more and more[2]:
        return "share", float(more[1]) / 100
    if more and what != "time":
        return "more", float(more[1])
    return None, 0.0


def load_limits(user_toml: Path | None = None) -> tuple[Limit, ...]:
    """The limits of the project's file: `user_toml`, or the nearest minrpc.toml; none where there is no file.

    Raises ConfigurationError, which names the file and the key.
    """
    from minrpc.targets.config import load_platforms, read_toml
    from minrpc.targets.project import find_project_file

    path = user_toml or find_project_file(Path.cwd())
    if path is None:
        return ()
    content = read_toml(path)
    libraries = content.get("libraries", {})
    known = libraries if isinstance(libraries, Mapping) else {}
    return limits_of(content.get("limits", {}), load_platforms(user_toml), str(path), known)
