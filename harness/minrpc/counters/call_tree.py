# SPDX-License-Identifier: Apache-2.0
"""A tree of calls with the instructions executed in each, as in the files of a profile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from minrpc.errors import HarnessError


class Row(NamedTuple):
    """A function of a profile.

    own: instructions executed in it. inclusive: with its callees'.
    calls: number of times it was entered.
    """

    name: str
    own: int
    inclusive: int
    calls: int


@dataclass(frozen=True)
class CallTree:
    """A tree of calls: node 0 is the root, without a function; each other node comes after its parent.

    own: instructions executed in the node's function itself.
    interrupts: True for a node that was entered by an exception; left out for a tree without any.
    """

    names: Sequence[str]
    parents: Sequence[int]
    own: Sequence[int]
    calls: Sequence[int]
    interrupts: Sequence[bool] = ()

    @property
    def total(self) -> int:
        """All instructions."""
        return sum(self.own)

    @cached_property
    def inclusive(self) -> Sequence[int]:
        """Instructions of each node and all below it."""
        sums = list(self.own)
        for node in range(len(sums) - 1, 0, -1):
            sums[self.parents[node]] += sums[node]
        return sums

    def __sub__(self, before: CallTree) -> CallTree:
        """The counts since `before`, an earlier state of this tree: nodes are never moved or removed."""
        missing = [0] * (len(self.own) - len(before.own))
        own = [now - then for now, then in zip(self.own, [*before.own, *missing], strict=True)]
        calls = [now - then for now, then in zip(self.calls, [*before.calls, *missing], strict=True)]
        return CallTree(self.names, self.parents, own, calls, self.interrupts)

    def with_interrupts_named(self, name: str) -> CallTree:
        """The tree with all instructions of interrupts in nodes `name`, whose calls are the interrupts."""
        names, calls = list(self.names), list(self.calls)
        for node, interrupt in enumerate(self.interrupts):
            if interrupt or (node and names[self.parents[node]] == name):
                names[node] = name
                calls[node] *= interrupt
        return CallTree(names, self.parents, self.own, calls, self.interrupts)

    def below(self, name: str, rest: str) -> CallTree:
        """The calls of `name` and all below them; all other instructions are in one node, `rest`.

        Raises HarnessError if `name` was not called.
        """
        inside = [False] * len(self.names)
        for node in range(1, len(self.names)):
            inside[node] = inside[self.parents[node]] or self.names[node] == name
        if not any(inside):
            raise HarnessError(
                f"no call of {name} was seen: its code is inlined, or another function was called",
                next_step="profile a function that is called by its address",
            )
        kept = [node for node, within in enumerate(inside) if within]
        places = {node: place for place, node in enumerate(kept, 2)}
        return CallTree(
            ["?", rest, *(self.names[node] for node in kept)],
            [0, 0, *(places.get(self.parents[node], 0) for node in kept)],
            [0, self.total - sum(self.own[node] for node in kept), *(self.own[node] for node in kept)],
            [0, 0, *(self.calls[node] for node in kept)],
        )

    def calls_of(self, name: str) -> tuple[int, int]:
        """Instructions of all calls of `name` with its callees, without interrupts, and the number of calls.

        A recursive call is part of the outermost call.
        """
        inside = [False] * len(self.names)
        interrupts = self.interrupts or inside
        instructions = calls = 0
        for node in range(1, len(self.names)):
            within = inside[self.parents[node]]
            inside[node] = (within or self.names[node] == name) and not interrupts[node]
            instructions += self.own[node] * inside[node]
            calls += self.calls[node] * (inside[node] and not within)
        return instructions, calls

    def stack(self, node: int) -> tuple[str, ...]:
        """The functions that are active in `node`, the outermost first."""
        names: list[str] = []
        while node != 0:
            names.append(self.names[node])
            node = self.parents[node]
        return tuple(reversed(names))

    def stacks(self) -> Iterator[tuple[tuple[str, ...], int]]:
        """Each node with instructions: its functions, the outermost first, and the number of instructions."""
        for node, own in enumerate(self.own):
            if own:
                yield self.stack(node), own

    def rows(self) -> list[Row]:
        """Rows by function, most instructions first. A recursive function is counted once."""
        sums: dict[str, list[int]] = {}
        above: list[frozenset[str]] = [frozenset()]
        for node, name in enumerate(self.names[1:], 1):
            row = sums.setdefault(name, [0, 0, 0])
            outer = above[self.parents[node]]
            above.append(outer if name in outer else outer | {name})
            row[0] += self.own[node]
            row[1] += 0 if name in outer else self.inclusive[node]
            row[2] += self.calls[node]
        rows = [Row(name, *row) for name, row in sums.items() if row[0] or row[1]]
        return sorted(rows, key=lambda row: (-row.own, row.name))
