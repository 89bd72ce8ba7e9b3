# SPDX-License-Identifier: Apache-2.0
"""The timing table of a core: a TOML file of this package (`cores/`) or of the user.

title = "Cortex-M4"             # name for messages
instruction_set = "thumb"       # or "riscv32"
against = "..."                 # error against hardware, and the measured programs
ignores = "without ..."         # effects that the table leaves out, beside wait states; optional
extends = "cortex-m4"           # starts with that core's rows; pairs here replace its pairs; title and
                                # against are those of this file
wide = ["call"]                 # classes of instructions that may be 4 bytes long; all classes if missing

[[cost]]                        # cycles of an instruction of these classes
kinds = ["load_multiple"]
cycles = 1                      # or [least, most] if they depend on operands
each = 1                        # additional cycles for each transferred word
operands = "arm division"       # rule by which operands decide: see operands.py; optional
source = "where the number is from"

[[refill]]                      # additional cycles of a jump
kinds = ["branch", "call"]      # after an instruction of these classes
cycles = 2
wide_unaligned = 1              # additional cycles if the target is 4 bytes long at an odd half-word
source = "..."

[[pair]]                        # change in the cycles of the second of two adjacent instructions
first = ["load"]
then = ["load", "store"]
unless = "address"              # condition, also `when`: address, uses, updates, straddles, both straddle,
                                # both indexed, overwrites
between = 0                     # instructions between the two; optional
cycles = -1
source = "..."

[[further_pair]]                # as [[pair]], beside the pairs of the extended core

[[group]]                       # additional cycles, once, of a row of instructions of 4 bytes that are not
kinds = ["data"]                # word aligned: all of these classes
of = 3                          # and so many, or more
cycles = 1
source = "..."

[[unaligned]]                   # additional cycles of accesses, by the address modulo 4; a core without
accesses = ["load", "store"]    # these rows has no unaligned accesses
half = [0, 1, 0, 1]             # of 2 bytes
word = [0, 2, 1, 2]             # of 4 bytes; [least, most] if code around it decides
source = "..."

[interrupt]                     # cycles from the interrupted instruction to the handler's first, and back
entry = 12
exit = 12
source = "..."
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Self, get_args

import numpy as np
import numpy.typing as npt

from minrpc.cycles.instructions import KINDS, Instruction, InstructionSet
from minrpc.cycles.operands import OPERATIONS, RULES, Operation, table as rule_table
from minrpc.cycles.wait_states import AT_ONCE, Flash
from minrpc.errors import ConfigurationError
from minrpc.targets.table import Platform

When = Literal["", "address", "uses", "updates", "straddles", "both straddle", "both indexed", "overwrites"]
ACCESSES: Final = ("load", "store")
_SIZES: Final = ("half", "word")
# Jumps that are taken whenever they are executed.
_ALWAYS: Final = frozenset({"call", "indirect", "jump", "table_branch"})
_FARTHEST: Final = 2


class Span(NamedTuple):
    """Least and most cycles; they differ if operands decide."""

    least: int
    most: int

    def __add__(self, other: object) -> Span:
        if not isinstance(other, Span):
            return NotImplemented
        return Span(self.least + other.least, self.most + other.most)

    @property
    def spread(self) -> int:
        """The difference between the most and the least."""
        return self.most - self.least

    def times(self, count: int) -> Span:
        """The cycles times `count`."""
        return Span(self.least * count, self.most * count)


NOTHING: Final = Span(0, 0)


@dataclass(frozen=True, slots=True)
class Refill:
    """Additional cycles of a jump, and further ones for a target of 4 bytes at an odd half-word."""

    cycles: Span
    wide_unaligned: Span


@dataclass(frozen=True, slots=True)
class Pair:
    """Additional cycles of an instruction that follows another, with `between` instructions in between.

    when, unless: conditions. "address": the second instruction's address uses a register that the first
        writes. "uses": the second reads such a register. "updates": the second writes its new address to the
        base register. "straddles": the second is 4 bytes long and not word aligned. "both straddle": the
        first, too. "both indexed": the address of each is the sum of two registers. "overwrites": the second
        writes a register that it reads. "": no condition.
    """

    first: frozenset[str]
    then: frozenset[str]
    when: When
    unless: When
    between: int
    cycles: Span

    def holds(self, first: Instruction, then: Instruction) -> bool:
        """True if the row applies to these two instructions."""
        if first.kind not in self.first or then.kind not in self.then:
            return False
        return (not self.when or _depends(self.when, first, then)) and not (
            self.unless and _depends(self.unless, first, then)
        )


@dataclass(frozen=True, slots=True)
class Group:
    """Additional cycles, once, of `of` or more instructions in a row that are 4 bytes long, not word aligned,
    and of the classes `kinds`."""

    kinds: frozenset[str]
    of: int
    cycles: Span

    def extended(self, before: int, then: Instruction) -> int:
        """The length of the row that ends with `then`, after one of `before`; above `of` for other kinds."""
        if not _straddles(then):
            return 0
        return before + 1 if then.kind in self.kinds else self.of + 1


def _depends(how: When, first: Instruction, then: Instruction) -> bool:
    match how:
        case "address":
            return bool(first.writes & then.address)
        case "updates":
            return then.updates
        case "straddles":
            return _straddles(then)
        case "both straddle":
            return _straddles(first) and _straddles(then)
        case "both indexed":
            return len(first.address) == len(then.address) == 2
        case "overwrites":
            return bool(then.reads & then.writes)
    return bool(first.writes & then.reads)


def _straddles(instruction: Instruction) -> bool:
    """True if it is 4 bytes long and not word aligned."""
    return instruction.size == 4 and instruction.start % 4 == 2


@dataclass(frozen=True)
class Core:
    """A core whose timing is known.

    name: "cortex-m4"; title: "Cortex-M4".
    wide: classes of instructions that may be 4 bytes long; None for all.
    against: error of its cycles against hardware, and the measured programs; one line.
    ignores: effects that the table leaves out, beside wait states; "" for none.
    operands: the rule by which operands decide the cycles of a class; "" where no rule is known.
    unaligned: additional cycles by access (load, store), size (2, 4 bytes), address modulo 4, and end (least,
        most), of shape (2, 2, 4, 2); None if unaligned accesses are faults.
    flash: the wait states of its code and constants.
    """

    name: str
    title: str
    instruction_set: InstructionSet
    wide: frozenset[str] | None
    against: str
    ignores: str
    costs: Mapping[str, Span]
    each: Mapping[str, Span]
    operands: Mapping[str, str]
    refills: Mapping[str, Refill]
    pairs: Sequence[Pair]
    groups: Sequence[Group]
    unaligned: npt.NDArray[np.uint8] | None
    entry: Span
    exit: Span
    flash: Flash = AT_ONCE

    @classmethod
    def read(cls, name: str, text: str) -> Self:
        """The core from the text of its file. Raises ConfigurationError."""
        try:
            return cls._from(name, _whole(name, tomllib.loads(text)))
        except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
            said = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
            raise ConfigurationError(f"the core {name} can't be read: {said}") from error

    @classmethod
    def _from(cls, name: str, table: Mapping[str, Any]) -> Self:
        kinds = KINDS[table["instruction_set"]]
        costs = {kind: _time(row["cycles"]) for row in table["cost"] for kind in _named(row["kinds"], kinds)}
        each = {kind: _time(row.get("each", 0)) for row in table["cost"] for kind in row["kinds"]}
        operands = {kind: _rule(row) for row in table["cost"] for kind in row["kinds"]}
        refills = {
            kind: Refill(_time(row["cycles"]), _time(row.get("wide_unaligned", 0)))
            for row in table["refill"]
            for kind in _named(row["kinds"], kinds)
        }
        rows = [row for part in ("pair", "further_pair") for row in table.get(part, ())]
        pairs = tuple(_pair(row, kinds) for row in rows)
        interrupt = table["interrupt"]
        return cls(
            name,
            table["title"],
            table["instruction_set"],
            frozenset(_named(table["wide"], kinds)) if "wide" in table else None,
            table["against"],
            table.get("ignores", ""),
            costs,
            each,
            operands,
            refills,
            pairs,
            tuple(
                Group(frozenset(_named(row["kinds"], kinds)), row["of"], _time(row["cycles"]))
                for row in table.get("group", ())
            ),
            _unaligned(table.get("unaligned", ())),
            _time(interrupt["entry"]),
            _time(interrupt["exit"]),
        )

    def costs_of(self, code: Sequence[Instruction]) -> Iterator[Span]:
        """Cycles of each instruction of straight-line code, without effects of code before and after it.

        A conditional instruction may be skipped, which takes a cycle.
        """
        sizes = [0] * len(self.groups)
        for place, instruction in enumerate(code):
            self._check(instruction)
            span = self.costs[instruction.kind] + self.each[instruction.kind].times(instruction.registers)
            written: frozenset[str] = frozenset()
            for between, before in enumerate(reversed(code[max(0, place - _FARTHEST) : place])):
                kept = before._replace(writes=before.writes - written)
                span += self.neighbours(kept, instruction, between)
                written = before.writes
            sizes = [
                group.extended(size, instruction) for group, size in zip(self.groups, sizes, strict=True)
            ]
            for group, size in zip(self.groups, sizes, strict=True):
                span += group.cycles if size == group.of else NOTHING
            yield Span(1, max(1, span.most)) if instruction.conditional else span

    @property
    def operations(self) -> Sequence[Operation]:
        """The instructions whose cycles a rule gives by their operands."""
        return [item for item in OPERATIONS[self.instruction_set] if self.operands.get(item.kind)]

    def by_operands(self, operation: Operation) -> npt.NDArray[np.int64]:
        """Cycles beyond the least of an operation, by the classes of its operands."""
        cycles = rule_table(self.operands[operation.kind], operation.signed)
        return cycles - self.costs[operation.kind].least

    def counted(self, instruction: Instruction, span: Span) -> Span:
        """Cycles of an instruction without those that its operands decide, for known operands."""
        by_operands = self.operands[instruction.kind] and not instruction.conditional
        return Span(span.least, span.most - self.costs[instruction.kind].spread) if by_operands else span

    def _check(self, instruction: Instruction) -> None:
        wide = instruction.size == 4 and self.wide is not None and instruction.kind not in self.wide
        if instruction.kind not in self.costs or wide:
            raise ConfigurationError(
                f"{self.title} has no {instruction.mnemonic}, which the code has at {instruction.start:#x}: "
                "it has no cycles",
                next_step="name a core that has it, or compile for this core",
            )

    def neighbours(self, first: Instruction, then: Instruction, between: int = 0) -> Span:
        """Additional cycles of `then` after `first`, with `between` other instructions in between."""
        total = NOTHING
        for pair in self.pairs:
            if pair.between == between and pair.holds(first, then):
                total += pair.cycles
        return Span(min(0, total.least), max(0, total.most)) if first.conditional else total

    def passage(self, last: Instruction, to: Instruction) -> Span:
        """Additional cycles from the last instruction of a block to the first of the next executed block."""
        if to.start == last.end and (last.conditional or last.kind not in _ALWAYS):
            return self.neighbours(last, to)
        refill = self.refills.get(last.kind)
        if refill is None:
            return NOTHING
        return refill.cycles + refill.wide_unaligned if _straddles(to) else refill.cycles

    @property
    def about(self) -> str:
        """The source of its cycles and their error against hardware, in a line."""
        parts = [f"{self.title}'s table", *filter(None, [self.ignores]), self.flash.about]
        against = f"at 0 wait states {self.against}" if self.flash.wait_states else self.against
        return f"estimate: {', '.join(parts)}; {against}"


def _whole(name: str, table: dict[str, Any]) -> dict[str, Any]:
    """The table of the extended core, followed by the file's own; of two rows for a class, the later
    counts. The extended core's title and error are not those of other rows."""
    _check_keys(table)
    if "extends" not in table:
        return table
    if table["extends"] not in core_names():
        known = ", ".join(core_names())
        raise ValueError(f"it extends {table['extends']}, which is no core of this package; there is {known}")
    base = _whole(name, tomllib.loads(_text(table["extends"])))
    own = {"title": name, "against": "never compared with hardware", **table}
    rows = {part: [*base.get(part, ()), *table.get(part, ())] for part in ("cost", "refill", "unaligned")}
    return {**base, **own, **rows}


_KEYS: Final[Mapping[str, Sequence[str]]] = {
    "": (
        *("title", "instruction_set", "against", "ignores", "extends", "wide"),
        *("cost", "refill", "pair", "further_pair", "group", "unaligned", "interrupt"),
    ),
    "cost": ("kinds", "cycles", "each", "operands", "source"),
    "refill": ("kinds", "cycles", "wide_unaligned", "source"),
    "pair": ("first", "then", "when", "unless", "between", "cycles", "source"),
    "further_pair": ("first", "then", "when", "unless", "between", "cycles", "source"),
    "group": ("kinds", "of", "cycles", "source"),
    "unaligned": ("accesses", "half", "word", "source"),
    "interrupt": ("entry", "exit", "source"),
}


def _check_keys(table: Mapping[str, Any]) -> None:
    """Raise TypeError or ValueError for a key that no core's file has, and for rows that are no tables."""
    parts = [("", table)]
    for part in ("cost", "refill", "pair", "further_pair", "group", "unaligned"):
        rows = table.get(part, [])
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise TypeError(f"{part} is no list of tables: [[{part}]]")
        parts += [(part, row) for row in rows]
    if not isinstance(table.get("interrupt", {}), dict):
        raise TypeError("interrupt is no table: [interrupt]")
    for part, row in (*parts, ("interrupt", table.get("interrupt", {}))):
        if unknown := [key for key in row if key not in _KEYS[part]]:
            where = f" in {part}" if part else ""
            raise ValueError(f"there is no key {unknown[0]}{where}; there is {', '.join(_KEYS[part])}")
    for key in ("title", "against", "ignores"):
        if not isinstance(table.get(key, ""), str):
            raise TypeError(f"{key} is a text, not {table[key]!r}")


def _span(value: Any) -> Span:  # noqa: ANN401 - a number or two of a TOML file
    match value:
        case [int(least), int(most)]:
            pass
        case int(least):
            most = least
        case _:
            raise TypeError(f"{value} are no whole cycles: write 2, or [2, 12] if operands decide")
    if least > most:
        raise ValueError(f"{value} is no range: its first number is the least")
    return Span(least, most)


def _time(value: Any) -> Span:  # noqa: ANN401 - as of _span
    """The cycles of an instruction or a jump."""
    span = _span(value)
    if span.least < 0:
        raise ValueError(f"{value} cycles are less than none; only a pair's may be")
    return span


def _rule(row: Mapping[str, Any]) -> str:
    name = row.get("operands", "")
    if not name:
        return ""
    if name not in RULES:
        raise ValueError(f"there is no rule {name!r} of operands; there is {', '.join(RULES)}")
    tables = [rule_table(name, signed) for signed in (False, True)]
    span = Span(min(int(item.min()) for item in tables), max(int(item.max()) for item in tables))
    if _span(row["cycles"]) != span:
        raise ValueError(f"the rule {name!r} gives {span.least} to {span.most} cycles, not {row['cycles']}")
    return str(name)


def _named(names: Sequence[str], kinds: Sequence[str]) -> Sequence[str]:
    if not isinstance(names, list):
        raise TypeError(f"classes are a list, not {names!r}")
    unknown = [name for name in names if name not in kinds]
    if unknown:
        raise ValueError(f"there is no class {', '.join(unknown)}; there is {', '.join(kinds)}")
    return names


def _pair(row: Mapping[str, Any], kinds: Sequence[str]) -> Pair:
    first, then = (frozenset(_named(row[end], kinds)) for end in ("first", "then"))
    when, unless = row.get("when", ""), row.get("unless", "")
    if unknown := {when, unless} - set(get_args(When)):
        named = ", ".join(filter(None, get_args(When)))
        raise ValueError(f"{unknown.pop()!r} is no relation of a pair; there is {named}")
    between = row.get("between", 0)
    if between not in range(_FARTHEST):
        raise ValueError(f"{between!r} instructions between a pair are not known; there is 0 or 1")
    return Pair(first, then, when, unless, between, _span(row["cycles"]))


def _unaligned(rows: Sequence[Mapping[str, Any]]) -> npt.NDArray[np.uint8] | None:
    cycles = np.zeros((len(ACCESSES), len(_SIZES), 4, 2), np.uint8)
    for row in rows:
        places = [ACCESSES.index(name) for name in _named(row["accesses"], ACCESSES)]
        for place, size in enumerate(_SIZES):
            spans = [_time(value) for value in row[size]]
            if len(spans) != 4:
                raise ValueError(f"{size} has cycles for 4 addresses, not for {len(spans)}")
            cycles[places, place] = spans
    return cycles if rows else None


def core_names() -> list[str]:
    """Names of the cores that come with the package."""
    files = resources.files("minrpc.cycles").joinpath("cores").iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def load_core(name: str, directory: Path = Path()) -> Core:
    """The core `name` of this package, or of the file NAME.toml in `directory`.

    Raises ConfigurationError, which lists the known cores.
    """
    if name.endswith(".toml"):
        try:
            return Core.read(name, (directory / name).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            said = getattr(error, "strerror", None) or str(error)
            raise ConfigurationError(f"the core {name} can't be read: {said}") from error
    if name in NOT_MODELLED:
        raise ConfigurationError(
            f"{name} is not modelled: {NOT_MODELLED[name]}", next_step="count instructions"
        )
    return Core.read(name, _text(name))


def _text(name: str) -> str:
    """The text of a core's file in this package. Raises ConfigurationError."""
    known = core_names()
    if name not in known:
        step = f"take one of {', '.join(known)}, or a file of your own, NAME.toml"
        raise ConfigurationError(f"there is no core {name}", next_step=step)
    return resources.files("minrpc.cycles").joinpath("cores", f"{name}.toml").read_text(encoding="utf-8")


def core_or_reason(platform: Platform) -> tuple[Core | None, str]:
    """The platform's core with its flash, or the reason why it has no table.

    Raises ConfigurationError for an unknown core and for impossible flash.
    """
    flash, name = Flash(platform.flash_wait_states, platform.flash_width), platform.core
    if not name:
        return None, "this platform has no core with a timing table: name a core with --core"
    if name in NOT_MODELLED:
        return None, f"{name} is not modelled: {NOT_MODELLED[name]}"
    return replace(load_core(name), flash=flash), ""


_NO_TABLE: Final = "its maker publishes no timing table, so a number would be a guess"
NOT_MODELLED: Final[Mapping[str, str]] = {
    "cortex-m7": f"it issues two instructions at once, predicts branches and has caches; {_NO_TABLE}",
    "cortex-m33": _NO_TABLE,
    "cortex-m55": _NO_TABLE,
}
"""The reason why a core has no table, by the core's name."""
