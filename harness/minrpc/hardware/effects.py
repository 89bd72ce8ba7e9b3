# SPDX-License-Identifier: Apache-2.0
"""Effects of accesses on a register's bits, with the names that CMSIS-SVD gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from minrpc.hardware.accesses import Field

WRITES: Final[Mapping[str, Callable[[int, int], int]]] = {
    "modify": lambda _, new: new,
    "keep": lambda old, _: old,
    "oneToClear": lambda old, new: old & ~new,
    "oneToSet": lambda old, new: old | new,
    "oneToToggle": lambda old, new: old ^ new,
    "zeroToClear": lambda old, new: old & new,
    "zeroToSet": lambda old, new: old | ~new,
    "zeroToToggle": lambda old, new: old ^ ~new,
    "clear": lambda _, __: 0,
    "set": lambda _, __: -1,
}
"""New bits after a write, by modifiedWriteValues; "keep" for bits that can't be written."""

_PLAIN: Final[Mapping[str, int]] = MappingProxyType({"modify": -1})


class Effects(NamedTuple):
    """The behaviour of one register, as its description has it.

    fields: its fields by name. writes: the bits that have each effect of `WRITES`. cleared, set: the bits
    that a read clears or sets. hidden: the bits that read as 0, as they can only be written.
    readable, writable: False if such an access is an error. once: True if a second write is an error.
    """

    fields: Mapping[str, Field] = MappingProxyType({})
    writes: Mapping[str, int] = _PLAIN
    cleared: int = 0
    set: int = 0
    hidden: int = 0
    readable: bool = True
    writable: bool = True
    once: bool = False

    def written(self, old: int, new: int) -> int:
        """The register's value after a write of `new`."""
        return sum(WRITES[name](old, new) & mask for name, mask in self.writes.items())

    def after_read(self, value: int) -> int:
        """The register's value after a read."""
        return value & ~self.cleared | self.set


def by_effect(effects: Iterable[tuple[str, int]], full: int) -> Mapping[str, int]:
    """Masks by the name of the effect. effects: of fields; the last one holds for bits that several have.

    full: all bits, which the first effect has.
    """
    masks: dict[str, int] = {}
    for name, mask in effects:
        masks = {known: bits & ~mask for known, bits in masks.items()}
        masks[name] = masks.get(name, 0) | mask & full
    return {name: bits for name, bits in masks.items() if bits}
