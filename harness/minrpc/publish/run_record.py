# SPDX-License-Identifier: Apache-2.0
"""A run as a value: measurements, profiles, sizes and tests, and their origin. Stored as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from minrpc.counters.call_tree import CallTree
from minrpc.reports.document import document, parse, to_text
from minrpc.timing.record import TimingRecord, content, from_content

COMMAND: Final = "report"
"""The command that writes the JSON."""


OUTCOMES: Final = ("failed", "passed", "skipped", "xfailed", "xpassed")
"""Outcomes of tests, in pytest's order."""


@dataclass(frozen=True)
class CallProfile:
    """The profile of one call.

    tree: instructions, or estimated cycles, by call. lines: place, text of the line, how many; most first.
    unit: "instructions" or "cycles".
    """

    call: str
    tree: CallTree
    lines: Sequence[tuple[str, str, int]] = ()
    unit: str = "instructions"

    @property
    def unit_title(self) -> str:
        """The unit for readers: a page also has cycles of the device's clock."""
        return "core cycles" if self.unit == "cycles" else self.unit


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
    outcome: str
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


def run_of(text: str) -> RunRecord:
    """The run from JSON of `RunRecord.to_json` or `minrpc time --json`. Raises ValueError with the reason."""
    found = parse(text, COMMAND, "time")
    records = from_content(found)
    try:
        return RunRecord(
            title=found.get("title") or "Measurements",
            about=dict(found.get("about", {})),
            records=records,
            platforms=[_platform_of(platform) for platform in found.get("platforms", [])],
            tests=[Tested(**test) for test in found.get("tests", [])],
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"an entry in it is damaged: {error}") from error


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
            }
            for profile in platform_part.profiles
        ],
        "flash_bytes": {name: dict(symbols) for name, symbols in platform_part.flash.items()},
        "ram_bytes": {name: dict(symbols) for name, symbols in platform_part.ram.items()},
        "loaded_bytes": {name: dict(symbols) for name, symbols in platform_part.loaded.items()},
    }


_TREE: Final = ("names", "parents", "own", "calls")


def _platform_of(found: Mapping[str, Any]) -> PlatformPart:
    profiles = [
        CallProfile(
            profile["call"],
            CallTree(**{name: profile["tree"][name] for name in _TREE}),
            [(place, text, count) for place, text, count in profile["lines"]],
            profile.get("unit", "instructions"),
        )
        for profile in found["profiles"]
    ]
    return PlatformPart(
        found["platform"],
        dict(found["facts"]),
        profiles,
        found["flash_bytes"],
        found["ram_bytes"],
        found.get("loaded_bytes", {}),
    )
