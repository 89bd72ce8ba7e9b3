# SPDX-License-Identifier: Apache-2.0
"""The profile of one call: what it executed, by function, by source line and by who called whom. Exact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol

from minrpc.counters.call_tree import CallTree, Row
from minrpc.counters.image import Image
from minrpc.counters.qemu_counters import Counts, QemuCounters
from minrpc.errors import HarnessError
from minrpc.program.lines import Line

INTERRUPTS: Final = "(interrupts)"
CALLING: Final = "(calling it)"
"""What it takes to call the function: the evaluator, and the conversion of arguments."""


@dataclass(frozen=True)
class Profile:
    """One call's instructions, the evaluator's own call of the function among them.

    tree, counts: the same instructions, by who called whom and by address.
    """

    name: str
    image: Image
    tree: CallTree
    counts: Counts

    @property
    def total(self) -> int:
        """Instructions in all."""
        return self.counts.total

    @cached_property
    def functions(self) -> list[Row]:
        """By function, most first; what interrupts executed is a row of its own, `INTERRUPTS`."""
        return self.settled.rows()

    @cached_property
    def settled(self) -> CallTree:
        """The tree, with all that exceptions executed in nodes of the function that they interrupted."""
        return self.tree.with_interrupts_named(INTERRUPTS)

    @cached_property
    def called(self) -> CallTree:
        """The function and what it called; all else that was executed is one node, `CALLING`."""
        return self.settled.below(self.name, CALLING)

    @cached_property
    def called_lines(self) -> Mapping[Line | None, int]:
        """By source line, most first, of the function and of what it called."""
        functions = set(self.called.names) - {CALLING}
        sums: Counter[Line | None] = Counter()
        for address, count in self.counts.by_address.items():
            function = self.image.function_at(address)
            if function is not None and function.name in functions:
                sums[self.image.line_at(address)] += count
        return dict(sums.most_common())

    @cached_property
    def lines(self) -> Mapping[Line | None, int]:
        """By source line, most first; None is code without any."""
        sums: dict[Line | None, int] = {}
        for address, count in self.counts.by_address.items():
            line = self.image.line_at(address)
            sums[line] = sums.get(line, 0) + count
        if self.counts.elsewhere:
            sums[None] = sums.get(None, 0) + self.counts.elsewhere
        return dict(sorted(sums.items(), key=lambda item: -item[1]))

    def check(self) -> None:
        """Raise HarnessError unless all sums are equal: the plugin, or this, is wrong then."""
        sums = {
            "by address": self.total,
            "by caller": self.tree.total,
            "by function": sum(row.own for row in self.functions),
            "by line": sum(self.lines.values()),
        }
        if len(set(sums.values())) != 1:
            shown = ", ".join(f"{count} {what}" for what, count in sums.items())
            raise HarnessError(f"the profile of {self.name} does not add up: {shown}")


class Measures(Protocol):
    """What measures functions: a module of the device's, or a library that was loaded."""

    def measure(
        self, name: str, *, number: int, repeat: int, interrupts_masked: bool = False
    ) -> Callable[..., Any]: ...


def profile_call(lib: Measures, counters: QemuCounters, name: str, arguments: Sequence[object]) -> Profile:
    """The profile of one call of `name`, after as many as warm it up; the device was started with `counters`.

    Raises as a call does, and HarnessError when the counts contradict each other.
    """
    measurer = lib.measure(name, number=1, repeat=1)
    # What measuring costs is measured with the first, in batches of its own.
    measurer(*arguments)
    tree, counts = counters.call_tree(), counters.in_windows()
    measurer(*arguments)
    image = counters.image.as_of_now()
    profile = Profile(name, image, counters.call_tree() - tree, counters.in_windows() - counts)
    profile.check()
    return profile
