# SPDX-License-Identifier: Apache-2.0
"""What the guest executes, counted by our plugin in QEMU, in memory that it shares with us.

The layout of that memory is tcg_plugin.c's: a page of control, the windows, the counters twice (since QEMU's
start, and of what was executed inside windows), the image's functions, and who called whom. The guest waits
for us when we read them, so nothing changes meanwhile.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from minrpc.counters.call_tree import CallTree
from minrpc.counters.image import Code, Function, Image, Region
from minrpc.counters.plugin_build import plugin_for
from minrpc.errors import ConfigurationError

_LAYOUT: Final = 5
_MAX_RANGES: Final = 16
_MAX_EDGES: Final = 16
_MAX_REGIONS: Final = 16
_WINDOWS: Final = 65536
_NODES: Final = 65536
_STEPS: Final = 1 << 20
# Of code that is loaded while QEMU runs: functions, and instructions that are counted one by one.
_LOADED: Final = 8192
_LOADED_SLOTS: Final = 1 << 18

_RANGE: Final = np.dtype([(name, "<u8") for name in ("base", "size", "shift", "first")])
_REGION: Final = np.dtype([(name, "<u8") for name in ("base", "size", "kind")])
_FUNCTION: Final = np.dtype([(name, "<u8") for name in ("start", "end")])
_NODE: Final = np.dtype(
    [
        *((name, "<u4") for name in ("parent", "function", "child", "sibling")),
        *((name, "<u8") for name in ("instructions", "calls")),
    ]
)
_CONTROL: Final = np.dtype(
    [
        *((name, "<u8") for name in ("layout", "ranges", "opens", "closes", "windows_at", "windows_max")),
        *((name, "<u8") for name in ("counters", "live_at", "inside_at", "slow_from", "slow_to")),
        ("range", _RANGE, _MAX_RANGES),
        ("open_at", "<u8", _MAX_EDGES),
        ("close_at", "<u8", _MAX_EDGES),
        *((name, "<u8") for name in ("look_at", "machine", "functions_at", "functions")),
        *((name, "<u8") for name in ("nodes_at", "nodes_max", "regions")),
        ("region", _REGION, _MAX_REGIONS),
        *(
            (name, "<u8")
            for name in ("cache_line", "cache_sets", "cache_ways", "stack_low", "stack_high", "loaded")
        ),
        *((name, "<u8") for name in ("trace_at", "trace_max", "traced", "nodes", "windows")),
    ]
)
# The counter that is no single instruction's comes first.
_ELSEWHERE, _FIRST_RANGE = range(2)
STEP: Final = np.dtype([("where", "<u8"), ("what", "<u8")])
"""A step of a trace: a jump to `where`, the end of where it came from and the top bit in `what`; or an access
by the instruction at `where` to the address in `what`, with the bit below the top one where it stored."""
STEP_JUMP: Final = 1 << 63
STEP_STORE: Final = 1 << 62
_KINDS: Final = ("flash", "ram", "device")
_WINDOW: Final = np.dtype(
    [
        *((name, "<u8") for name in ("instructions", "branches", "loads", "stores", "load_bytes")),
        *((name, "<u8") for name in ("store_bytes", "unaligned", *(f"{kind}_accesses" for kind in _KINDS))),
        *((name, "<u8") for name in ("cache_misses", "path", "addresses")),
        *((name, "<u8") for name in ("stack_first", "stack_lowest")),
    ]
)
_MEMORY_COUNTERS: Final = {
    **dict.fromkeys(("loads", "stores"), ""),
    **dict.fromkeys(("load_bytes", "store_bytes"), "bytes"),
    **dict.fromkeys(("unaligned", *(f"{kind}_accesses" for kind in _KINDS), "cache_misses"), ""),
}
_LOOK_AT_FLOW, _LOOK_AT_MEMORY = 1, 2
_MACHINES: Final = {"EM_ARM": 1, "EM_RISCV": 2}
_X86: Final = 3
_PAGE: Final = 4096
NO_FUNCTION: Final = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Cache:
    """The data cache whose misses are counted: `size` bytes in lines of `line`, `ways` lines in a set.

    The line thrown out of a set is the one that was used least recently. All are powers of two.

    Raises ConfigurationError.
    """

    size: int = 8192
    line: int = 32
    ways: int = 4

    def __post_init__(self) -> None:
        for name, value in (("size", self.size), ("line", self.line), ("ways", self.ways)):
            if value < 1 or value & (value - 1):
                raise ConfigurationError(f"a cache's {name} is a power of two, not {value}")
        if self.line * self.ways > self.size:
            raise ConfigurationError(f"{self} has no room for {self.ways} lines")

    @property
    def sets(self) -> int:
        """How many sets there are."""
        return self.size // self.line // self.ways

    @classmethod
    def parse(cls, text: str) -> Self:
        """From "8192,32,4": size, line, ways. Raises ConfigurationError."""
        try:
            size, line, ways = map(int, text.split(","))
        except ValueError as error:
            step = "write its bytes, those of a line, and the ways: 8192,32,4"
            raise ConfigurationError(f"{text!r} is no cache", next_step=step) from error
        return cls(size, line, ways)


@dataclass(frozen=True, slots=True)
class Counts:
    """How often each instruction was executed.

    by_address: of those that were, in the image's code.
    elsewhere: executed outside of it.
    """

    by_address: Mapping[int, int]
    elsewhere: int = 0

    @property
    def total(self) -> int:
        """Instructions executed."""
        return sum(self.by_address.values()) + self.elsewhere

    def __sub__(self, before: Counts) -> Counts:
        """What was executed since `before`."""
        since = {at: count - before.by_address.get(at, 0) for at, count in self.by_address.items()}
        return Counts({at: count for at, count in since.items() if count}, self.elsewhere - before.elsewhere)

    def by_function(self, image: Image) -> dict[str, int]:
        """Instructions by function of the image, most first; "?" is code that no function claims."""
        sums: dict[str, int] = {}
        for address, count in self.by_address.items():
            function = image.function_at(address)
            name = function.name if function else "?"
            sums[name] = sums.get(name, 0) + count
        if self.elsewhere:
            sums["?"] = sums.get("?", 0) + self.elsewhere
        return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))


class QemuCounters:
    """The plugin for one run of QEMU. Also a context manager, which gives the memory back.

    flow: branches are counted too, and who calls whom.
    memory: loads and stores are, what they go to, and the misses of `cache`.
    trace: the last timed batch is kept step by step, up to a million of them.
    slow: a function each of whose instructions takes the host 50 us longer, or more. In the interrupt that
        receives, that lets what waits to be received arrive all at once.

    Hand it to `start`. The device runs as without it, to the tick; the host has more to do.
    """

    def __init__(
        self,
        image: Image,
        *,
        flow: bool = False,
        memory: bool = False,
        cache: Cache | None = None,
        trace: bool = False,
        slow: str | None = None,
    ) -> None:
        self.image = image
        self._loaded: list[tuple[Code, int]] = []
        self.cache = cache or Cache()
        self._flow, self._memory, self._trace = flow or trace, memory or trace, trace
        self._slow = self._range_of(slow) if slow else (0, 0)
        self._fd = os.memfd_create("minrpc-counters")
        try:
            self._map()
        except BaseException:
            self.close()
            raise

    def arguments(self, qemu: str) -> list[str]:
        """What QEMU's command line has for it. Raises as `plugin_for` does."""
        plugin = str(plugin_for(qemu)).replace(",", ",,")
        return ["-plugin", f"file={plugin},fd={self._fd}"]

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What QEMU inherits."""
        return (self._fd,)

    @property
    def instructions(self) -> int:
        """Executed since QEMU's start."""
        return int(self._live.sum())

    @property
    def windows(self) -> int:
        """Timed batches that have ended since QEMU's start."""
        return int(self._control["windows"])

    def window_instructions(self, since: int = 0) -> list[int]:
        """Instructions of each timed batch from number `since` on, the oldest first.

        Only the last 65,536 are kept. Raises ValueError where older ones are asked for.
        """
        if self.windows - since > _WINDOWS:
            raise ValueError(f"batch {since} is gone: {self.windows} have ended, {_WINDOWS} are kept")
        return [
            int(self._windows[number % _WINDOWS]["instructions"]) for number in range(since, self.windows)
        ]

    def window_counts(self, since: int = 0) -> npt.NDArray[np.void]:
        """The same as `window_instructions`, and all that was looked at beside them, each a field."""
        if self.windows - since > _WINDOWS:
            raise ValueError(f"batch {since} is gone: {self.windows} have ended, {_WINDOWS} are kept")
        return self._windows[np.arange(since, self.windows) % _WINDOWS].copy()

    @property
    def names(self) -> Mapping[str, str]:
        """What is counted of each timed batch, and its unit."""
        return {
            "instructions": "",
            **({"branches": ""} if self._flow else {}),
            **(_MEMORY_COUNTERS if self._memory else {}),
            **({"stack_bytes": "bytes"} if self._memory and self.image.stack[1] else {}),
        }

    def of_batches(self, since: int) -> list[dict[str, int]]:
        """The counters of each timed batch from number `since` on, the oldest first, by name."""
        return [
            {name: _stack(window) if name == "stack_bytes" else int(window[name]) for name in self.names}
            for window in self.window_counts(since)
        ]

    def executed(self) -> Counts:
        """Everything since QEMU's start. Subtract two of these for what was executed between."""
        return self._counts(self._live)

    def in_windows(self) -> Counts:
        """What was executed in timed batches since QEMU's start."""
        return self._counts(self._inside)

    def last_trace(self) -> npt.NDArray[np.void]:
        """What the last timed batch did, in its order: jumps and accesses, as `STEP` has them.

        Raises ValueError where it did more than can be kept.
        """
        steps = int(self._control["traced"])
        if steps > len(self._steps):
            raise ValueError(f"a trace of {steps} steps is too long: {len(self._steps)} are kept")
        return self._steps[:steps].copy()

    def call_tree(self) -> CallTree:
        """Who called whom in timed batches, since QEMU's start; without `flow` it is empty."""
        nodes = self._nodes[: int(self._control["nodes"])]
        functions = (*self.image.functions, *self.image.loaded)
        names = [functions[one].name if one < len(functions) else "?" for one in nodes["function"].tolist()]
        return CallTree(
            names, nodes["parent"].tolist(), nodes["instructions"].tolist(), nodes["calls"].tolist()
        )

    def close(self) -> None:
        """Give the memory back; QEMU keeps its own hold of it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _range_of(self, name: str) -> tuple[int, int]:
        for function in self.image.functions:
            if function.name == name:
                return function.start, function.end
        raise ConfigurationError(f"{self.image.path} has no function {name}")

    def _map(self) -> None:
        code, window = self.image.code, self.image.window
        if len(code) > _MAX_RANGES or len(window.opens) > _MAX_EDGES or len(window.closes) > _MAX_EDGES:
            raise ConfigurationError(f"{self.image.path} has too many places to count at")
        ranges = np.zeros(_MAX_RANGES, _RANGE)
        counters = _FIRST_RANGE
        for index, one in enumerate(code):
            ranges[index] = (one.base, one.size, self.image.shift, counters)
            counters += self._slots(one)
        self._free_slots = counters
        counters += _LOADED_SLOTS
        functions = np.array([(one.start, one.end) for one in self.image.functions], _FUNCTION)
        live_at = _PAGE + _rounded(_WINDOWS * _WINDOW.itemsize)
        inside_at = live_at + _rounded(8 * counters)
        functions_at = inside_at + _rounded(8 * counters)
        nodes_at = functions_at + _rounded(functions.nbytes + _LOADED * _FUNCTION.itemsize)
        trace_at = nodes_at + _rounded(_NODES * _NODE.itemsize)
        steps = _STEPS if self._trace else 0
        size = trace_at + _rounded(steps * STEP.itemsize)
        os.ftruncate(self._fd, size)
        memory = mmap.mmap(self._fd, size)
        control = np.frombuffer(memory, _CONTROL, 1)
        control["range"][0] = ranges
        control["open_at"][0][: len(window.opens)] = window.opens
        control["close_at"][0][: len(window.closes)] = window.closes
        control["ranges"], control["opens"], control["closes"] = (
            len(code),
            len(window.opens),
            len(window.closes),
        )
        control["windows_at"], control["windows_max"] = _PAGE, _WINDOWS
        control["counters"], control["live_at"], control["inside_at"] = counters, live_at, inside_at
        control["slow_from"], control["slow_to"] = self._slow
        control["functions_at"], control["functions"] = functions_at, len(functions)
        control["nodes_at"], control["nodes_max"], control["nodes"] = nodes_at, _NODES, 1
        control["trace_at"], control["trace_max"] = trace_at, steps
        control["stack_low"], control["stack_high"] = self.image.stack
        control["look_at"] = _LOOK_AT_FLOW * self._flow + _LOOK_AT_MEMORY * self._memory
        control["machine"] = _MACHINES.get(self.image.machine, _X86)
        regions = _joined(self.image.regions)[:_MAX_REGIONS]
        control["region"][0][: len(regions)] = [
            (one.base, one.size, _KINDS.index(one.kind)) for one in regions
        ]
        control["regions"] = len(regions)
        control["cache_line"], control["cache_ways"] = self.cache.line, self.cache.ways
        control["cache_sets"] = self.cache.sets
        self._functions = np.frombuffer(memory, _FUNCTION, len(functions) + _LOADED, functions_at)
        self._functions[: len(functions)] = functions
        self._steps = np.frombuffer(memory, STEP, steps, trace_at)
        self._nodes = np.frombuffer(memory, _NODE, _NODES, nodes_at)
        self._nodes[0]["function"] = NO_FUNCTION
        control["layout"] = _LAYOUT
        self._control = control[0]
        self._windows = np.frombuffer(memory, _WINDOW, _WINDOWS, _PAGE)
        self._live = np.frombuffer(memory, "<u8", counters, live_at)
        self._inside = np.frombuffer(memory, "<u8", counters, inside_at)

    def note_code(self, base: int, size: int, functions: Mapping[str, tuple[int, int]]) -> None:
        """Code was loaded, `size` bytes at `base`: its instructions are counted, and its functions known by
        name. The device has not run it yet.

        functions: address and bytes by name. Code that there is no room for is counted as a whole, as "?".
        """
        loaded, known = self.image.loaded, len(self.image.functions)
        code = Code(base, size)
        ranges = int(self._control["ranges"])
        end = self._free_slots + self._slots(code)
        room = len(loaded) + len(functions) <= _LOADED and ranges < _MAX_RANGES
        if not room or end > int(self._control["counters"]):
            return
        for name, (address, length) in functions.items():
            start = address & ~1 if self.image.machine == "EM_ARM" else address
            self._functions[known + len(loaded)] = (start, start + length)
            loaded.append(Function(start, start + length, name))
        self._control["range"][ranges] = (base, size, self.image.shift, self._free_slots)
        self._loaded.append((code, self._free_slots))
        self._free_slots = end
        self._control["loaded"], self._control["ranges"] = len(loaded), ranges + 1

    def _slots(self, code: Code) -> int:
        return (code.size >> self.image.shift) + 1

    def _counts(self, counters: npt.NDArray[np.uint64]) -> Counts:
        found: dict[int, int] = {}
        first = _FIRST_RANGE
        ranges = []
        for code in self.image.code:
            ranges.append((code, first))
            first += self._slots(code)
        for code, first in [*ranges, *self._loaded]:
            counts = counters[first : first + self._slots(code)]
            executed = np.flatnonzero(counts)
            addresses = (executed << self.image.shift) + code.base
            for address, count in zip(addresses.tolist(), counts[executed].tolist(), strict=True):
                found[address] = found.get(address, 0) + count
        return Counts(found, int(counters[_ELSEWHERE]))


def counters_for(
    elf: Path,
    *,
    flow: bool = False,
    memory: bool = False,
    cache: Cache | None = None,
    trace: bool = False,
    slow: str | None = None,
) -> QemuCounters:
    """The plugin for a run of the program in `elf`; see there."""
    return QemuCounters(Image(elf), flow=flow, memory=memory, cache=cache, trace=trace, slow=slow)


def _stack(window: np.void) -> int:
    """From the first store to the stack, by the evaluator or what it calls first, down to the lowest."""
    first, lowest = int(window["stack_first"]), int(window["stack_lowest"])
    return max(0, first - lowest)


def _joined(regions: Sequence[Region]) -> list[Region]:
    """The same with neighbours of one kind as one, and with what alignment left between them."""
    joined: list[Region] = []
    for region in regions:
        before = joined[-1] if joined else None
        if before and before.kind == region.kind and region.base - before.base - before.size < _PAGE:
            joined[-1] = before._replace(size=region.base + region.size - before.base)
        else:
            joined.append(region)
    return joined


def _rounded(size: int) -> int:
    """`size` up to whole pages."""
    return -(-size // _PAGE) * _PAGE
