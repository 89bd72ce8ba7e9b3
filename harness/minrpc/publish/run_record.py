# SPDX-License-Identifier: Apache-2.0
"""A run as a value: measurements, profiles, sizes and tests, and their origin. Stored as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal, get_args

from minrpc.counters.call_tree import CallTree
from minrpc.counters.profile import unit_title
from minrpc.reports.document import document, parse, to_text
from minrpc.reports.json_values import decoded
from minrpc.timing.record import TimingRecord, content, from_content

COMMAND: Final = "report"
"""The command that writes the JSON."""


_TITLES: Final = 3
_Bytes = Mapping[str, Mapping[str, int]]
Outcome = Literal["failed", "passed", "skipped", "xfailed", "xpassed"]
OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
"""Outcomes of tests, in pytest's order."""


@dataclass(frozen=True)
class CallProfile:
    """The profile of one call.

    tree: instructions, or estimated cycles, by call. lines: place, text of the line, how many; most first.
    unit: "instructions" or "cycles". spread: excess of the most possible cycles over these.
    function: the tree's name of the called function; "" in older documents: the call's.
    """

    call: str
    tree: CallTree
    lines: Sequence[tuple[str, str, int]] = ()
    unit: str = "instructions"
    spread: int = 0
    function: str = ""

    @property
    def unit_title(self) -> str:
        """The unit for readers."""
        return unit_title(self.unit)


@dataclass(frozen=True)
class PlatformPart:
    """The data of one platform beside its measurements.

    facts: names and texts for readers. flash, ram: bytes by component, then by symbol.
    loaded: bytes of the user's own code, by library and symbol.
    """

    platform: str
    facts: Mapping[str, str] = field(default_factory=dict)
    profiles: Sequence[CallProfile] = ()
    flash: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    ram: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    loaded: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Tested:
    """The outcome of a test.

    outcome: one of OUTCOMES: "xfailed" is a failure that a mark expects, "xpassed" the lack of it.
    text: the explanation; its first line is the reason.
    """

    test: str
    platform: str
    outcome: Outcome
    took_s: float
    text: str = ""


@dataclass(frozen=True)
class RunRecord:
    """A run: all its parts, in order.

    about: command, machine and versions, for readers.
    """

    title: str
    about: Mapping[str, str] = field(default_factory=dict)
    records: Sequence[TimingRecord] = ()
    platforms: Sequence[PlatformPart] = ()
    tests: Sequence[Tested] = ()

    @property
    def passed(self) -> bool:
        """True if no test failed."""
        return all(test.outcome != "failed" for test in self.tests)

    def content(self) -> dict[str, Any]:
        """The content of a document of `minrpc report`."""
        return {
            "title": self.title,
            "about": dict(self.about),
            **content(self.records),
            "platforms": [_platform(platform) for platform in self.platforms],
            "tests": [asdict(test) for test in self.tests],
        }

    def to_json(self) -> str:
        """The run as JSON, which `run_of` reads."""
        return to_text(document(COMMAND, self.content(), passed=self.passed))


def joined(runs: Sequence[RunRecord], title: str = "") -> RunRecord:
    """All parts of several runs; of a platform, the facts and sizes of the last, and the profiles of all.

    title: by default the runs' own, each once.
    """
    parts: dict[str, PlatformPart] = {}
    for part in (part for run in runs for part in run.platforms):
        earlier = parts.get(part.platform, part)
        profiles = {(each.call, each.unit): each for each in (*earlier.profiles, *part.profiles)}
        loaded = {**earlier.loaded, **part.loaded}
        parts[part.platform] = replace(part, profiles=list(profiles.values()), loaded=loaded)
    titles = list(dict.fromkeys(run.title for run in runs))
    more = f" and {len(titles) - _TITLES} more" if len(titles) > _TITLES else ""
    return RunRecord(
        title=title or ", ".join(titles[:_TITLES]) + more,
        about={name: text for run in runs for name, text in run.about.items()},
        records=[record for run in runs for record in run.records],
        platforms=list(parts.values()),
        tests=[test for run in runs for test in run.tests],
    )


def run_of(text: str) -> RunRecord:
    """The run from JSON of `RunRecord.to_json` or `minrpc time --json`. Raises ValueError with the reason."""
    read = decoded(_Content, parsed := parse(text, COMMAND, "time"))
    return RunRecord(
        title=read.title or "Measurements",
        about=read.about,
        records=from_content(parsed),
        platforms=[part.part() for part in read.platforms],
        tests=read.tests,
    )


def _platform(platform_part: PlatformPart) -> dict[str, Any]:
    return {
        "platform": platform_part.platform,
        "facts": dict(platform_part.facts),
        "profiles": [
            {
                "call": profile.call,
                "tree": {name: list(getattr(profile.tree, name)) for name in _TREE},
                "lines": [list(line) for line in profile.lines],
                "unit": profile.unit,
                "spread": profile.spread,
                "function": profile.function,
            }
            for profile in platform_part.profiles
        ],
        "flash_bytes": {name: dict(symbols) for name, symbols in platform_part.flash.items()},
        "ram_bytes": {name: dict(symbols) for name, symbols in platform_part.ram.items()},
        "loaded_bytes": {name: dict(symbols) for name, symbols in platform_part.loaded.items()},
    }


_TREE: Final = ("names", "parents", "own", "calls")


@dataclass(frozen=True)
class _ProfileEntry:
    call: str
    tree: CallTree
    lines: Sequence[tuple[str, str, int]]
    unit: Literal["instructions", "cycles"] = "instructions"
    spread: int = 0
    function: str = ""

    def __post_init__(self) -> None:
        sizes = {len(getattr(self.tree, name)) for name in _TREE}
        if (
            sizes == {0}
            or len(sizes) > 1
            or any(up >= node for node, up in enumerate(self.tree.parents) if node)
        ):
            raise ValueError("its tree of calls has no root, or a node before its caller, or not all numbers")


@dataclass(frozen=True)
class _PartEntry:
    """The keys of a platform in a file."""

    platform: str
    facts: Mapping[str, str]
    profiles: Sequence[_ProfileEntry]
    flash_bytes: _Bytes
    ram_bytes: _Bytes
    loaded_bytes: _Bytes = field(default_factory=dict)

    def part(self) -> PlatformPart:
        profiles = [CallProfile(**vars(each)) for each in self.profiles]
        sizes = (self.flash_bytes, self.ram_bytes, self.loaded_bytes)
        return PlatformPart(self.platform, self.facts, profiles, *sizes)


@dataclass(frozen=True)
class _Content:
    """The keys of a file beside its measurements."""

    title: str = ""
    about: Mapping[str, str] = field(default_factory=dict)
    platforms: Sequence[_PartEntry] = ()
    tests: Sequence[Tested] = ()
