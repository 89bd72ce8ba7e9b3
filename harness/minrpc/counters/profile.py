# SPDX-License-Identifier: Apache-2.0
"""The profile of one call: executed instructions by function, by source line and by call tree. Exact.

A profile in cycles has the same form; cycles are an estimate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, Protocol

from minrpc.counters.call_tree import CallTree, Row
from minrpc.counters.image import Image
from minrpc.counters.qemu_counters import Counts, QemuCounters
from minrpc.errors import ConfigurationError, HarnessError
from minrpc.program.lines import Line

INTERRUPTS: Final = "(interrupts)"
CALLING: Final = "(calling it)"
"""The cost of calling the function: the evaluator, the timer, and the conversion of arguments."""
APART: Final = frozenset({INTERRUPTS, CALLING})
"""Rows that are not part of the function's own figure."""


Unit = Literal["instructions", "cycles"]


def unit_title(unit: str) -> str:
    """The unit for readers: cycles are a core's, estimated."""
    return "core cycles" if unit == "cycles" else unit


@dataclass(frozen=True)
class Profile:
    """One call's instructions, or estimated cycles; the evaluator's own call of the function is among them.

    tree, counts: the same instructions or cycles, by call tree and by address.
    unit: instructions or cycles. estimate: source of cycles, a line. spread: possible excess of the total.
    function: the tree's name of the function that `name` calls.
    ran: executions by address, without IT and what it skipped; None: QEMU does not show if it skipped all.
    """

    name: str
    function: str
    image: Image
    tree: CallTree
    counts: Counts
    unit: Unit = "instructions"
    estimate: str = ""
    spread: int = 0
    ran: Mapping[int, int | None] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """All instructions or cycles, with the cost of calling the function."""
        return self.counts.total

    @property
    def inclusive(self) -> int:
        """Instructions or cycles of the function with its callees, as `Measurement.inclusive`."""
        return inclusive_of(self.called)

    @cached_property
    def functions(self) -> list[Row]:
        """Rows by function, most first; interrupts have one row, `INTERRUPTS`."""
        return self.settled.rows()

    @cached_property
    def settled(self) -> CallTree:
        """The tree, with each exception's instructions in a node of the interrupted function."""
        return self.tree.with_interrupts_named(INTERRUPTS)

    @cached_property
    def called(self) -> CallTree:
        """The function and its callees; all other instructions are in one node, `CALLING`.

        Raises HarnessError if the function was not seen.
        """
        return self.settled.below(self.function, CALLING)

    @cached_property
    def called_lines(self) -> Mapping[Line | None, int]:
        """Counts by source line of the function and its callees, most first; None is code without a line, and
        all of the functions in `called_elsewhere`."""
        sums: Counter[Line | None] = Counter()
        for name, own in self._called_own.items():
            sums.update({None: own} if name in self.called_elsewhere else self.lines_by_function[name])
        return dict(sums.most_common())

    @cached_property
    def called_elsewhere(self) -> frozenset[str]:
        """Callees that other code calls, too, such as a handler: a line's count is of all calls."""
        by_function = {name: sum(lines.values()) for name, lines in self.lines_by_function.items()}
        return frozenset(name for name, own in self._called_own.items() if by_function.get(name) != own)

    @cached_property
    def _called_own(self) -> Mapping[str, int]:
        return {row.name: row.own for row in self.called.rows() if row.own and row.name not in APART}

    @cached_property
    def lines_by_function(self) -> Mapping[str, Mapping[Line | None, int]]:
        """Counts by function, then by source line; "?" is code outside all functions."""
        sums: dict[str, Counter[Line | None]] = {}
        for address, count in self.counts.by_address.items():
            function = self.image.function_at(address)
            lines = sums.setdefault(self.image.name_of(function) if function else "?", Counter())
            lines[self.image.line_at(address)] += count
        if self.counts.elsewhere:
            sums.setdefault("?", Counter())[None] += self.counts.elsewhere
        return sums

    @cached_property
    def lines(self) -> Mapping[Line | None, int]:
        """Counts by source line, most first; None is code without a line."""
        sums: Counter[Line | None] = Counter()
        for lines in self.lines_by_function.values():
            sums.update(lines)
        return dict(sums.most_common())

    @cached_property
    def skipped_lines(self) -> Mapping[Line | None, str]:
        """Lines that IT blocks "skipped", or "perhaps skipped", each time; they count all the same."""
        times: dict[Line | None, list[int | None]] = {}
        for address in self.counts.by_address if self.ran else ():
            times.setdefault(self.image.line_at(address), []).append(self.ran.get(address, 0))
        return {
            line: "perhaps skipped" if None in ran else "skipped"
            for line, ran in times.items()
            if not any(ran)
        }

    def check(self) -> None:
        """Raise HarnessError unless all sums are equal: else the plugin or this module has a bug."""
        sums = {
            "by address": self.total,
            "by caller": self.tree.total,
            "by function": sum(row.own for row in self.functions),
            "by line": sum(self.lines.values()),
        }
        called = {}
        if self.function in self.settled.names:
            called = {"below the call": self.inclusive, "by its lines": sum(self.called_lines.values())}
        if any(len({*each.values()}) > 1 for each in (sums, called)):
            shown = ", ".join(f"{count} {what}" for what, count in {**sums, **called}.items())
            raise HarnessError(f"the profile of {self.name} does not add up: {shown}")


def inclusive_of(called: CallTree) -> int:
    """All of a tree that `Profile.called` gives, without the rows in `APART`."""
    return sum(own for name, own in zip(called.names, called.own, strict=True) if name not in APART)


class Measures(Protocol):
    """Protocol: measures functions: a module of the device, or a loaded library."""

    def measure(
        self, name: str, *, number: int, repeat: int, interrupts_masked: bool = False
    ) -> Callable[..., Any]: ...

    def code_address(self, name: str) -> int | None: ...


def profile_call(
    lib: Measures, counters: QemuCounters, name: str, arguments: Sequence[object], by: Unit = "instructions"
) -> Profile:
    """The profile of one call of `name`, after warm-up calls; the device was started with `counters`.

    by: "cycles" needs counters with a core.

    Raises as a call does, HarnessError if the counts contradict each other, ConfigurationError if cycles are
    unavailable.
    """
    if by == "cycles" and counters.core is None:
        raise ConfigurationError(
            f"cycles are not available here: {counters.refused.get('cycles', 'the counters have no core')}",
            next_step="profile by instructions",
        )
    measurer = lib.measure(name, number=1, repeat=1)
    # The first call also measures the cost of measuring, in separate batches.
    measurer(*arguments)
    since = counters.windows
    tree, counts, spread = _so_far(counters, by, since)
    before = _ran(counters)
    measurer(*arguments)
    image = counters.image.as_of_now()
    all_trees, all_counts, all_spread = _so_far(counters, by, since)
    estimate = counters.estimate if by == "cycles" else ""
    ran = {
        at: None if times is None else times - (before.get(at) or 0) for at, times in _ran(counters).items()
    }
    function = counters.name_in_tree(name, lib.code_address(name))
    profile = Profile(
        name, function, image, all_trees - tree, all_counts - counts, by, estimate, all_spread - spread, ran
    )
    profile.check()
    return profile


def _ran(counters: QemuCounters) -> dict[int, int | None]:
    """Executions of each instruction, of all code that was at its address; None if not known."""
    ran: dict[int, int | None] = {}
    for _, counts in counters.executed_by_code():
        for at, times in counts.items():
            known = ran.get(at, 0)
            ran[at] = None if times is None or known is None else known + times
    return ran


def _so_far(counters: QemuCounters, by: Unit, since: int) -> tuple[CallTree, Counts, int]:
    if by == "instructions":
        return counters.call_tree(), counters.in_windows(), 0
    cycles, spread = counters.cycles_in_windows(since)
    return counters.cycle_tree(since), cycles, spread
