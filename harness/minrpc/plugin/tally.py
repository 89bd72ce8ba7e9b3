# SPDX-License-Identifier: Apache-2.0
"""Counts the tests of one pytest run that need devices, in each of its processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from minrpc.timing import DeviceClock


@dataclass
class Tally:
    """Outcomes of the tests that need a device; can be sent between processes.

    wanted, had: ids of the tests that need a device, and of the tests that got a device.
    left_out: the reason why a platform is not tested, by platform.
    quarantined: the reason why a board of a hardware map may not be used, by board.
    pinned: tests that requested the fixture while they ran, and so used only the first of several devices.
    clocks: the clock of each device; None for a device without clock information.
    tests, records, firmwares, libraries: for --minrpc-report: outcomes of tests; measurements; by platform,
        the tested firmware with facts about it, and bytes of loaded code by library and symbol.
    """

    wanted: set[str] = field(default_factory=set)
    had: set[str] = field(default_factory=set)
    left_out: dict[str, str] = field(default_factory=dict)
    quarantined: dict[str, str] = field(default_factory=dict)
    pinned: list[str] = field(default_factory=list)
    clocks: dict[str, DeviceClock | None] = field(default_factory=dict)
    tests: dict[str, dict[str, Any]] = field(default_factory=dict)
    records: list[dict[str, Any]] = field(default_factory=list)
    firmwares: dict[str, dict[str, Any]] = field(default_factory=dict)
    libraries: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        """Add another process's counts."""
        self.wanted |= other.wanted
        self.had |= other.had
        self.left_out |= other.left_out
        self.quarantined |= other.quarantined
        self.pinned += other.pinned
        self.clocks |= other.clocks
        self.tests |= other.tests
        self.records += other.records
        self.firmwares |= other.firmwares
        for platform, loaded in other.libraries.items():
            self.libraries.setdefault(platform, {}).update(loaded)

    def to_json(self) -> dict[str, Any]:
        """The counts as JSON, for another process."""
        clocks = {name: clock and clock.to_json() for name, clock in self.clocks.items()}
        return {**vars(self), "wanted": sorted(self.wanted), "had": sorted(self.had), "clocks": clocks}

    @classmethod
    def from_json(cls, sent: dict[str, Any]) -> Tally:
        """The counts from `to_json`."""
        clocks = {name: clock and DeviceClock.from_json(clock) for name, clock in sent["clocks"].items()}
        sets = {name: set(sent[name]) for name in ("wanted", "had")}
        return cls(**{**sent, **sets, "clocks": clocks})
