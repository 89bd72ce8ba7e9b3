# SPDX-License-Identifier: Apache-2.0
"""Differences between a run and an earlier run: outcomes of tests, times, counters, sizes, compilers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from minrpc.publish.run_record import OUTCOMES, RunRecord, Tested
from minrpc.publish.tables import Table, first, own_code, why
from minrpc.sizes.growth import growth
from minrpc.timing.compare import Comparison, Growth, compare, comparison_json
from minrpc.timing.comparison_text import counter_text, counter_title, difference_text, headline, value_text
from minrpc.timing.units import count

_SYMBOLS: Final = 40


@dataclass(frozen=True, slots=True)
class OutcomeChange:
    """A test whose outcome differs from the base's, or that failed and is not in the base.

    base: its outcome there, "" for none.
    """

    base: str
    head: Tested


@dataclass(frozen=True, slots=True)
class Differences:
    """Differences from the base; the worst first.

    new, gone: numbers of tests that only one of the runs has.
    """

    comparison: Comparison
    tests: Sequence[OutcomeChange]
    new: int
    gone: int
    compared_tests: int

    def sentences(self) -> list[str]:
        """A sentence on times and sizes, and a sentence on tests, where the runs have these."""
        measured = self.comparison.changes or self.comparison.sizes
        tested = self.compared_tests or self.new or self.gone
        return [
            *([headline(self.comparison)] if measured else []),
            *([f"Tests: {self._tests()}"] if tested else []),
        ]

    def _tests(self) -> str:
        failed = sum(change.head.outcome == "failed" for change in self.tests)
        mended = sum(change.base == "failed" for change in self.tests)
        others = len(self.tests) - failed - mended
        counted = [
            (failed, "newly failed"),
            (mended, "no longer failed"),
            (others, "changed in another way"),
            (self.new, "new"),
            (self.gone, "gone"),
        ]
        told = [f"{number} {name}" for number, name in counted if number]
        return "; ".join(told) or f"none of {self.compared_tests} changed"

    def content(self) -> dict[str, Any]:
        """The differences as JSON; see docs/json.md."""
        tests = [
            {"test": change.head.test, "base": change.base or None, "head": change.head.outcome}
            for change in self.tests
        ]
        return {
            **comparison_json(self.comparison),
            "tests": tests,
            "new_tests": self.new,
            "gone_tests": self.gone,
        }


def differences(base: RunRecord, run: RunRecord) -> Differences:
    """Compares `run` with `base`."""
    comparison = compare(base.records, run.records)
    earlier = {test.test: test.outcome for test in base.tests}
    names = {test.test for test in run.tests}
    changes = [OutcomeChange(earlier.get(test.test, ""), test) for test in run.tests]
    tests = [change for change in changes if _tells(change)]
    return Differences(
        replace(comparison, sizes=(*comparison.sizes, *_loaded(base, run))),
        sorted(tests, key=lambda change: OUTCOMES.index(change.head.outcome)),
        new=len(names - earlier.keys()),
        gone=len(earlier.keys() - names),
        compared_tests=len(names & earlier.keys()),
    )


def _tells(change: OutcomeChange) -> bool:
    if not change.base:
        return change.head.outcome == "failed"
    return change.base != change.head.outcome


def _loaded(base: RunRecord, run: RunRecord) -> Iterator[Growth]:
    """Sizes of the code that both runs loaded and that no measurement has."""
    before, after = (own_code(replace(each, records=())) for each in (base, run))
    for platform, libraries in after.items():
        for name, sizes in libraries.items():
            old = before.get(platform, {}).get(name)
            if old is not None:
                yield Growth(platform, name, sum(old.values()), sum(sizes.values()), (old, sizes))


def shown(differences: Differences) -> list[Table]:
    """The tables of differences; none without differences."""
    tables = (part(differences) for part in (_tests, _builds, _times, _counters, _sizes))
    return [table for table in tables if table.rows]


def folded(differences: Differences) -> list[Table]:
    """Symbols that grew or shrank: a table for each region."""
    return [table for size in differences.comparison.sizes if (table := _symbols(size)).rows]


def _tests(differences: Differences) -> Table:
    rows = [
        [change.head.test, change.base or "-", change.head.outcome, why(change.head.text)]
        for change in differences.tests
    ]
    return Table("Tests with another outcome", ["test", "base", "now", "why"], rows)


def _builds(differences: Differences) -> Table:
    rows = [list(asdict(change).values()) for change in differences.comparison.builds]
    return Table("Built differently", ["code", "base", "now"], rows)


def _times(differences: Differences) -> Table:
    rows = [
        [
            change.call.removesuffix("()"),
            change.platform,
            change.verdict,
            value_text(change.base),
            value_text(change.head),
            difference_text(change),
        ]
        for change in differences.comparison.changes
        if change.verdict != "same"
    ]
    return Table("Times", ["call", "platform", "verdict", "base", "now", "change"], rows, (3, 4, 5))


def _counters(differences: Differences) -> Table:
    rows = [
        [
            change.call.removesuffix("()"),
            change.platform,
            counter_title(counter.name, change.head.counters if change.head else ()),
            count(counter.base),
            count(counter.head),
            counter_text(counter),
        ]
        for change in differences.comparison.changes
        for counter in change.counters
    ]
    return Table(
        "Counters, a call", ["call", "platform", "counter", "base", "now", "change"], rows, (3, 4, 5)
    )


def _sizes(differences: Differences) -> Table:
    rows = [
        [size.platform, size.region, f"{size.base:,}", f"{size.head:,}", f"{size.grown:+,}"]
        for size in differences.comparison.sizes
        if size.grown
    ]
    return Table("Bytes", ["platform", "of", "base", "now", "change"], rows, (2, 3, 4))


def _symbols(size: Growth) -> Table:
    rows = [
        [change.symbol, *("-" if each is None else f"{each:,}" for each in change[1:]), f"{change.grown:+,}"]
        for change in growth(*size.symbols)
    ]
    title = f"{size.platform}, {size.region}: {size.grown:+,} bytes by symbol"
    return first(Table(title, ["symbol", "base", "now", "change"], rows, (1, 2, 3)), _SYMBOLS)
