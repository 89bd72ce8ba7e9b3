# SPDX-License-Identifier: Apache-2.0
"""The places of a device's arrays and code: requested, available, and the request to change them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from minrpc.client.info import DeviceInfo, MemoryRegion
from minrpc.errors import ConfigurationError

LAYOUT: Final = "minrpc.layout"
STAGE: Final = "lay out the memory"

Where = int | tuple[int, int] | MemoryRegion
"""A place: a size in bytes at the usual address, or an address and a size."""

How = Literal["session", "new session", "restart"]

# A block of code starts on such a boundary.
_ALIGNMENT: Final = 64


class LayoutRequest(NamedTuple):
    """Addresses and sizes in bytes; code has size 0 if the firmware chooses its place."""

    arena_at: int
    arena_size: int
    code_at: int = 0
    code_size: int = 0


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a device's memory, and the fate of the objects that it held.

    arena: holds arrays and workspace. code: holds loaded code; None if code lies among the arrays.
    how: "session": arrays, functions and libraries are unchanged. "new session": they are gone. "restart":
        another device runs, built or started with other options, and all is gone.
    why: the reason for a new session or a restart; "" for "session".
    """

    arena: MemoryRegion
    code: MemoryRegion | None
    how: How
    why: str = ""

    @property
    def restarted(self) -> bool:
        """True if another device runs."""
        return self.how == "restart"

    def __str__(self) -> str:
        code = "among them" if self.code is None else _shown(self.code)
        why = f" ({self.why})" if self.why else ""
        return f"{self.how}{why}: arrays {_shown(self.arena)}, code {code}"


def told_memory(info: DeviceInfo) -> list[str]:
    """The device's memory, one line per region."""
    of = {"memory": "arrays", "code_memory": "code"}
    return [f"for {of[region.kind]}: {_shown(region)}" for region in info.regions if region.kind in of]


def home(info: DeviceInfo, name: str) -> MemoryRegion:
    """The memory that holds the firmware's arrays. Raises ConfigurationError if it reports none."""
    memory = next((region for region in info.regions if region.kind == "memory"), None)
    if memory is None:
        raise no_layout(name)
    return memory


def places_of(info: DeviceInfo, name: str, arena: Where | None, code: Where | None) -> LayoutRequest:
    """The places as numbers; the firmware's own if not given.

    An arena given by its size begins its memory. Code given by its size lies at the end of that memory, or at
    the beginning of the port's memory for code.

    Raises ConfigurationError, and ValueError for invalid sizes.
    """
    memory = home(info, name)
    arena_at, arena_size = _place(arena, "arena", memory.base)
    holding = next(
        (region for region in info.regions if region.kind == "memory" and _has(region, arena_at)), memory
    )
    of_code = next((region for region in info.regions if region.kind == "code_memory"), None)
    code_at, code_size = _place(code, "code", 0)
    if code_size and not code_at:
        if of_code is not None:
            code_at = of_code.base
        else:
            code_at = (holding.base + holding.size - code_size) // _ALIGNMENT * _ALIGNMENT
    if arena is None:
        end = code_at if code_size and _has(memory, code_at) else memory.base + memory.size
        arena_size = end - memory.base
    return LayoutRequest(arena_at, arena_size, code_at, code_size)


def _place(where: Where | None, name: str, base: int) -> tuple[int, int]:
    if where is None:
        return base, 0
    match where:
        case MemoryRegion(_, at, size):
            return at, size
        case (int() as at, int() as size):
            pass
        case int() as size:
            at = base
        case _:
            raise TypeError(f"{name} is bytes, or an address and bytes, not {where!r}")
    if at < 0 or size < 0 or (size == 0 and name == "arena"):
        raise ValueError(f"{name} has {size} bytes at {at:#x}: the size must be above 0")
    return at, size


def _has(region: MemoryRegion, address: int) -> bool:
    return region.base <= address < region.base + region.size


def _shown(region: MemoryRegion) -> str:
    return f"{region.base:#x}+{region.size:,}"


def no_layout(name: str) -> ConfigurationError:
    return ConfigurationError(
        f"the firmware of {name} can't change its memory's layout",
        stage=STAGE,
        next_step="build it with -DMINRPC_LAYOUT=ON, CONFIG_MINRPC_LAYOUT=y on Zephyr",
    )
