# SPDX-License-Identifier: Apache-2.0
"""Counts of the guest's instructions, made by a plugin in QEMU, in memory shared with this process.

tcg_plugin.c defines the memory's layout: a page of control; the windows; executions of each block of code;
the image's functions; the call tree; a trace. The memory contains the sizes of all structures; the plugin
refuses memory with other sizes than its own.
"""

from __future__ import annotations

import mmap
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from minrpc.counters.call_tree import CallTree
from minrpc.counters.image import AddressRange, CodeSegment, Image, LoadedCode
from minrpc.counters.packed_code import packed_function_code
from minrpc.counters.plugin_build import SOURCE
from minrpc.counters.plugin_memory import PluginMemory
from minrpc.cycles import Core, Span
from minrpc.cycles.core import NOTHING
from minrpc.cycles.estimate import CodeBlock, CycleModel, Edge, Passage
from minrpc.cycles.operands import CLASSES
from minrpc.errors import ConfigurationError, HarnessError
from minrpc.program.compiler import attributes_of

_LAYOUT: Final = 12
_MAX_EDGES: Final = 16
_MAX_REGIONS: Final = 16
_MAX_OPERATIONS: Final = 8
_WINDOWS: Final = 65536
_NODES: Final = 65536
_BLOCKS: Final = 1 << 18
_MEMBERS: Final = 1 << 22
_STEPS: Final = 1 << 20
_CHECKPOINTS: Final = 1 << 20
# Bytes of the blocks' code, edges between blocks, and entries of the ring of edges taken in windows.
_CODE: Final = 1 << 24
_EDGES: Final = 1 << 19
_TAKEN: Final = 1 << 21
CHECKPOINT: Final = 4096
"""Steps of a trace from one checkpoint to the next."""
# Limits for code loaded while QEMU runs: blocks of memory, functions, and instructions with a counter.
_LOADED_RANGES: Final = 8192
_LOADED: Final = 65536
_LOADED_SLOTS: Final = 1 << 22

_RANGE: Final = np.dtype([(name, "<u8") for name in ("base", "size", "shift", "first", "flash")])
_REGION: Final = np.dtype([(name, "<u8") for name in ("base", "size", "kind")])
_FUNCTION: Final = np.dtype([(name, "<u8") for name in ("start", "end")])
_NODE: Final = np.dtype(
    [
        *((name, "<u4") for name in ("parent", "function", "child", "sibling")),
        *((name, "<u8") for name in ("interrupt", "instructions", "calls", "extra_cycles")),
    ]
)
_BLOCK: Final = np.dtype(
    [
        *((name, "<u8") for name in ("runs", "runs_in_windows", "jumps_in_windows", "last")),
        *((name, "<u8") for name in ("start", "code", "size")),
        *((name, "<u4") for name in ("first", "instructions")),
    ]
)
_EDGE: Final = np.dtype(
    [
        *((name, "<u4") for name in ("left", "entered", "size", "passage")),
        *((name, "<u8") for name in ("node", "skipped", "times_in_windows")),
    ]
)
_OPERATION: Final = np.dtype([("mask", "<u8"), ("bits", "<u8")])
_TIMES: Final = np.dtype([(name, "<u8") for name in ("edge", "times")])
_CONTROL: Final = np.dtype(
    [
        ("layout", "<u8"),
        ("sizes", "<u8", 10),
        *((name, "<u8") for name in ("ranges_at", "ranges", "opens", "closes", "windows_at", "windows_max")),
        *((name, "<u8") for name in ("counters", "parts_at", "parts_in_windows_at", "blocks_at")),
        *((name, "<u8") for name in ("blocks_max", "members_at", "members_max", "slow_from", "slow_to")),
        ("open_at", "<u8", _MAX_EDGES),
        ("close_at", "<u8", _MAX_EDGES),
        *((name, "<u8") for name in ("look_at", "machine", "wide", "functions_at", "functions")),
        *((name, "<u8") for name in ("nodes_at", "nodes_max", "regions")),
        ("region", _REGION, _MAX_REGIONS),
        *((name, "<u8") for name in ("cache_line", "cache_sets", "cache_ways", "stack_low", "stack_high")),
        *((name, "<u8") for name in ("loaded", "code_at", "code_max", "edges_at", "edges_max")),
        *((name, "<u8") for name in ("taken_at", "taken_max", "extra_cycles_at")),
        ("wait_states", "<u8"),
        ("unaligned", "u1", (2, 2, 4, 2)),
        *((name, "<u8") for name in ("doubts_at", "operations")),
        ("operation", _OPERATION, _MAX_OPERATIONS),
        ("operand_cycles_at", "<u8"),
        *((name, "<u8") for name in ("trace_at", "trace_max", "checkpoints_at", "checkpoints_max")),
        *((name, "<u8") for name in ("trace_from", "traced", "trace_hash", "nodes", "blocks", "members")),
        *((name, "<u8") for name in ("code", "edges", "taken", "reads_operands")),
        *((name, "<u8") for name in ("reads_flags", "extra_spread", "full", "lost", "windows")),
    ]
)
# The counter for code outside the image comes first.
_ELSEWHERE, _FIRST_RANGE = range(2)
STEP: Final = np.dtype([("where", "<u8"), ("what", "<u8")])
"""A step of a trace: a jump to `where`, with the end of the code left and the top bit in `what`; or an access
by the instruction at `where` to the address in `what`, with the second highest bit set for a store."""
STEP_JUMP: Final = 1 << 63
STEP_STORE: Final = 1 << 62
_KINDS: Final = ("flash", "ram", "device")
_WINDOW: Final = np.dtype(
    [
        *((name, "<u8") for name in ("instructions", "branches", "loads", "stores", "load_bytes")),
        *((name, "<u8") for name in ("store_bytes", "unaligned", *(f"{kind}_accesses" for kind in _KINDS))),
        ("cache_misses", "<u8"),
        *((name, "<u8") for name in ("stack_first", "stack_lowest", "first_taken", "edges_taken")),
        *((name, "<u8") for name in ("extra_cycles", "extra_spread")),
    ]
)
_DOUBT: Final = 2**64 - 1
_IS_IT: Final = 2**64 - 2
_MEMORY_COUNTERS: Final = {
    **dict.fromkeys(("loads", "stores"), ""),
    **dict.fromkeys(("load_bytes", "store_bytes"), "bytes"),
    **dict.fromkeys(("unaligned", *(f"{kind}_accesses" for kind in _KINDS), "cache_misses"), ""),
}
# Estimates: the least and the most.
_CYCLES: Final = ("cycles", "cycles_most")
# The plugin compares these with the sizes of its own structures.
_SIZES: Final = [
    structure.itemsize
    for structure in (_CONTROL, _RANGE, _FUNCTION, _NODE, STEP, _WINDOW, _BLOCK, _EDGE, _TIMES, _OPERATION)
]
_LOOK_AT_FLOW, _LOOK_AT_MEMORY, _LOOK_AT_EDGES, _LOOK_AT_FLASH, _LOOK_AT_UNALIGNED = 1, 2, 4, 8, 16
_MACHINES: Final = {"EM_ARM": 1, "EM_RISCV": 2, "EM_386": 3, "EM_X86_64": 3}
# Tag_CPU_arch and Tag_FP_arch of the Cortex-M4, from the ABI for the Arm Architecture, "Addenda".
_ARM_V7E_M: Final = 13
_VFPV4_D16: Final = 6
_INSTRUCTION_SETS: Final = {"thumb": ("EM_ARM", False), "riscv32": ("EM_RISCV", False)}
_PAGE: Final = 4096
NO_FUNCTION: Final = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Cache:
    """The data cache whose misses are counted: `size` bytes in lines of `line`, `ways` lines in a set.

    The least recently used line of a set is replaced. All numbers are powers of two.

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
        """Number of sets."""
        return self.size // self.line // self.ways

    @classmethod
    def parse(cls, text: str) -> Self:
        """The cache from "8192,32,4": size, line, ways. Raises ConfigurationError."""
        try:
            size, line, ways = map(int, text.split(","))
        except ValueError as error:
            step = "write the cache's bytes, a line's bytes, and the ways: 8192,32,4"
            raise ConfigurationError(f"{text!r} is no cache", next_step=step) from error
        return cls(size, line, ways)


@dataclass(frozen=True)
class Trace:
    """The jumps and accesses of a timed batch, in their order.

    length: number of steps. hash: of all steps.
    checkpoints: the hash of the first 4,096 steps, of the first 8,192, and so on.
    steps: the steps from number `kept_from` on, of type `STEP`: at most a million.
    """

    length: int
    hash: int
    checkpoints: npt.NDArray[np.uint64]
    kept_from: int
    steps: npt.NDArray[np.void]

    def equals(self, other: Trace) -> bool:
        """True if all steps are equal, by their hashes."""
        return (self.length, self.hash) == (other.length, other.hash)

    def equal_steps(self, other: Trace) -> int:
        """Number of steps at the beginning that are certainly equal: a multiple of 4,096."""
        shared = min(len(self.checkpoints), len(other.checkpoints))
        unequal = np.flatnonzero(self.checkpoints[:shared] != other.checkpoints[:shared])
        return CHECKPOINT * (int(unequal[0]) if len(unequal) else shared)


@dataclass(frozen=True, slots=True)
class Counts:
    """Number of executions of each instruction.

    by_address: of executed instructions in the image's code.
    elsewhere: instructions executed outside of it.
    """

    by_address: Mapping[int, int]
    elsewhere: int = 0

    @property
    def total(self) -> int:
        """All executed instructions."""
        return sum(self.by_address.values()) + self.elsewhere

    def __sub__(self, before: Counts) -> Counts:
        """The counts since `before`."""
        since = {at: count - before.by_address.get(at, 0) for at, count in self.by_address.items()}
        return Counts({at: count for at, count in since.items() if count}, self.elsewhere - before.elsewhere)

    def by_function(self, image: Image) -> dict[str, int]:
        """Instructions by function of the image, most first; "?" is code outside all functions."""
        sums: dict[str, int] = {}
        for address, count in self.by_address.items():
            function = image.function_at(address)
            name = image.name_of(function) if function else "?"
            sums[name] = sums.get(name, 0) + count
        if self.elsewhere:
            sums["?"] = sums.get("?", 0) + self.elsewhere
        return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))


class QemuCounters(PluginMemory):
    """The plugin for one run of QEMU. Also a context manager, which frees the memory.

    flow: count branches and the call tree, too.
    memory: count loads and stores, the memory that they access, and the misses of `cache`.
    core: the core whose cycles are estimated, from the number of passages between blocks of code; this needs
        the flow. no_cycles: reason for no core, for a message.
    trace: hash the last timed batch step by step, and keep up to a million of its steps.
    slow: a function whose instructions each take the host at least 50 us longer. In the receive interrupt,
        this makes waiting bytes arrive all at once.

    Pass it to `start`. The device behaves the same, to the tick; the host has more work.
    """

    def __init__(
        self,
        image: Image,
        *,
        flow: bool = False,
        memory: bool = False,
        core: Core | None = None,
        no_cycles: str = "",
        cache: Cache | None = None,
        trace: bool = False,
        slow: str | None = None,
    ) -> None:
        self.image = image
        # Loaded code with the number of its first counter, and the names of its functions.
        self._loaded: dict[LoadedCode, int] = {}
        self._loaded_names: list[str] = []
        self.unknown_code = 0
        self.cache = cache or Cache()
        self._flow, self._memory, self._trace = flow or trace or core is not None, memory or trace, trace
        if core and (self.image.machine, self.image.wide) != _INSTRUCTION_SETS[core.instruction_set]:
            raise ConfigurationError(
                f"{core.title} has another instruction set than the program", next_step="name another core"
            )
        if core and _is_later(image):
            raise ConfigurationError(
                f"the program is of a Cortex-M7 or Armv8-M, later than {core.title}: it has no cycles",
                next_step="compile it for that core, or count instructions",
            )
        self.core, self._no_cycles = core, no_cycles
        self._cycles = CycleModel(core, image.in_flash) if core else None
        self._wait_states = core.flash.wait_states if core else 0
        self._operations = core.operations if core else ()
        self._slow = self._range_of(slow) if slow else (0, 0)
        super().__init__("minrpc-counters", SOURCE)

    @property
    def instructions(self) -> int:
        """Instructions executed since QEMU's start."""
        return int(self._executed("runs", self._parts).sum())

    @property
    def windows(self) -> int:
        """Timed batches that have ended since QEMU's start."""
        return int(self._control["windows"])

    def window_instructions(self, since: int = 0) -> list[int]:
        """Instructions of each timed batch from number `since` on, the oldest first.

        Only the last 65,536 are kept. Raises ValueError if `since` is older.
        """
        if self.windows - since > _WINDOWS:
            raise ValueError(f"batch {since} is gone: {self.windows} have ended, {_WINDOWS} are kept")
        return [
            int(self._windows[number % _WINDOWS]["instructions"]) for number in range(since, self.windows)
        ]

    def window_counts(self, since: int = 0) -> npt.NDArray[np.void]:
        """The windows of `window_instructions`, with a field for each counter."""
        if self.windows - since > _WINDOWS:
            raise ValueError(f"batch {since} is gone: {self.windows} have ended, {_WINDOWS} are kept")
        return self._windows[np.arange(since, self.windows) % _WINDOWS].copy()

    @property
    def names(self) -> Mapping[str, str]:
        """Names of the counters of timed batches, with their units."""
        return {
            "instructions": "",
            **dict.fromkeys(_CYCLES if self.core else (), "cycles"),
            **({"branches": ""} if self._flow else {}),
            **(_MEMORY_COUNTERS if self._memory else {}),
            **({"stack_bytes": "bytes"} if self._memory and self.image.stack[1] else {}),
        }

    @property
    def refused(self) -> Mapping[str, str]:
        """Counters of other devices that are unavailable here, with the reason."""
        return {} if self.core or not self._no_cycles else dict.fromkeys(_CYCLES, self._no_cycles)

    @property
    def estimate(self) -> str:
        """The source of the cycles and their error against hardware, in a line; "" without cycles."""
        return self.core.about if self.core else ""

    def of_batches(self, since: int, names: Sequence[str] | None = None) -> list[dict[str, int]]:
        """The counters of each timed batch from number `since` on, the oldest first, by name.

        names: the wanted counters; by default all. Raises HarnessError if the memory for cycles was too
        small, ConfigurationError for code of these batches whose cycles are unknown.
        """
        names = list(self.names) if names is None else names
        cycles = self._cycles_of_batches(since) if {*names} & {*_CYCLES} else []
        return [
            {name: _value(name, window, cycles[number] if cycles else NOTHING) for name in names}
            for number, window in enumerate(self.window_counts(since))
        ]

    def executed(self) -> Counts:
        """Counts since QEMU's start. Subtract an earlier result for the counts since then.

        Raises HarnessError if the memory for counts was too small.
        """
        return self._counts("runs", self._parts)

    def in_windows(self) -> Counts:
        """Counts of timed batches since QEMU's start. Raises as `executed` does."""
        return self._counts("runs_in_windows", self._parts_in_windows)

    def jumps_in_windows(self) -> dict[int, int]:
        """Number of jumps by each branch, call and return, by the instruction's address.

        Timed batches only. The difference to `in_windows` is the number of times a branch was not taken.
        """
        blocks = self._used_blocks()
        by_address: Counter[int] = Counter()
        for address, jumps in blocks[["last", "jumps_in_windows"]][blocks["jumps_in_windows"] > 0].tolist():
            by_address[address] += jumps
        return by_address

    def executed_by_code(self) -> list[tuple[LoadedCode | None, dict[int, int | None]]]:
        """The counts of `executed` without IT and what it skipped, separately for the image (None) and each
        loaded code, since several loaded codes may have used the same address in turn.

        The count is None for an instruction that an IT block may have skipped each time: a QEMU before
        version 9 does not show this.
        """
        doubts, executed = self._doubts[: self._free_slots], self._executed("runs", self._parts)
        unknown = doubts == _DOUBT
        known = self._by_code(executed - np.where(doubts == _IS_IT, executed, np.where(unknown, 0, doubts)))
        return [
            (code, {at: None if at in perhaps else count for at, count in counts.items()})
            for (code, counts), (_, perhaps) in zip(known, self._by_code(unknown), strict=True)
        ]

    def last_trace(self) -> Trace:
        """The trace of the last timed batch."""
        steps, from_ = int(self._control["traced"]), int(self._control["trace_from"])
        checkpoints = steps // CHECKPOINT
        if checkpoints > len(self._checkpoints):
            longest = CHECKPOINT * len(self._checkpoints)
            raise ValueError(f"a trace of {steps:,} steps can't be compared: {longest:,} are the most")
        kept = self._steps[: max(0, min(steps - from_, len(self._steps)))].copy()
        return Trace(
            steps, int(self._control["trace_hash"]), self._checkpoints[:checkpoints].copy(), from_, kept
        )

    def keep_trace_from(self, step: int) -> None:
        """Keep the steps of the next timed batches from number `step` on."""
        self._control["trace_from"] = step

    def cycles_in_windows(self, since: int = 0) -> tuple[Counts, int]:
        """Estimated cycles of timed batches since QEMU's start: the least by instruction, and the possible
        excess of their sum.

        since: number of the first batch whose code must have cycles; code without them has 0 in the others.
        Raises as `of_batches` does.
        """
        times = self._edge_times(since)
        model = self._learned()
        by_address = Counter(model.by_address(times))
        for _, extra in self._by_code(self._extra_cycles):
            by_address.update(extra)
        spread = model.spread(times) + int(self._control["extra_spread"])
        return Counts(by_address, int(self._extra_cycles[_ELSEWHERE])), spread

    def cycle_tree(self, since: int = 0) -> CallTree:
        """The tree of `call_tree`, with the least estimated cycles in place of instructions.

        since: as in `cycles_in_windows`. Raises as `of_batches` does.
        """
        times = self._edge_times(since)
        nodes = int(self._control["nodes"])
        extra = self._nodes["extra_cycles"][:nodes].astype(np.int64)
        model, tree = self._learned(), self.call_tree()
        entries = np.array(tree.calls, np.int64) * tree.interrupts * model.core.entry.least
        own = np.array(model.by_node(times, nodes), np.int64) + extra + entries
        return replace(tree, own=own.tolist())

    def _edge_times(self, since: int) -> npt.NDArray[np.int64]:
        self._check_room()
        times = self._edges["times_in_windows"][: int(self._control["edges"])].astype(np.int64)
        if since:
            self._cycles_of_batches(since)
        else:
            self._check_accesses(self._windows)
            self._learned().total(np.arange(len(times)), times)
        return times

    def _cycles_of_batches(self, since: int) -> list[Span]:
        self._check_room()
        windows = self.window_counts(since)
        self._check_accesses(windows)
        if len(windows) and int(self._control["taken"]) - int(windows["first_taken"][0]) > _TAKEN:
            raise HarnessError(
                "there is no room for the counts of so many batches",
                next_step="time fewer repeats, or less code in a batch",
            )
        model, spans = self._learned(), []
        names = ["first_taken", "edges_taken", "extra_cycles", "extra_spread"]
        for first, count, extra, spread in windows[names].tolist():
            taken = self._taken[np.arange(first, first + count) % _TAKEN]
            span = model.total(taken["edge"].astype(np.int64), taken["times"].astype(np.int64))
            spans.append(span + Span(extra, extra + spread))
        return spans

    def _check_accesses(self, windows: npt.NDArray[np.void]) -> None:
        if self.core and self.core.unaligned is None and windows["unaligned"].any():
            raise ConfigurationError(
                f"{self.core.title} has no unaligned accesses, which the code makes: it has no cycles",
                next_step="name a core that has them, or align the data",
            )

    def _learned(self) -> CycleModel:
        """The model, after learning all recorded edges."""
        assert self._cycles is not None, "the counters have a core"
        self._cycles.knows_operands = bool(self._control["reads_operands"])
        self._cycles.knows_conditions = bool(self._control["reads_flags"])
        names = ["left", "entered", "size", "passage", "node", "skipped"]
        edges = self._edges[self._cycles.edges : int(self._control["edges"])][names].tolist()
        self._cycles.learn(
            [
                Edge(left, entered, size, Passage(passage), node, skipped)
                for left, entered, size, passage, node, skipped in edges
            ],
            self._block,
        )
        return self._cycles

    def _block(self, number: int) -> CodeBlock:
        start, at, size = self._blocks[number][["start", "code", "size"]].tolist()
        return CodeBlock(start, self._code[at : at + size].tobytes())

    def call_tree(self) -> CallTree:
        """The call tree of timed batches since QEMU's start; empty without `flow`.

        Raises HarnessError if the memory for it was too small.
        """
        if self._control["lost"]:
            raise HarnessError(
                "there is no room for the call tree: more calls were active at once than its depth, or the "
                "ways to them were too many",
                next_step="start the device again, and call the function with less recursion",
            )
        nodes = self._nodes[: int(self._control["nodes"])]
        functions = (*map(self.image.name_of, self.image.functions), *self._loaded_names)
        names = [
            functions[function] if function < len(functions) else "?"
            for function in nodes["function"].tolist()
        ]
        return CallTree(
            names,
            nodes["parent"].tolist(),
            nodes["instructions"].tolist(),
            nodes["calls"].tolist(),
            nodes["interrupt"].astype(bool).tolist(),
        )

    def name_in_tree(self, name: str, address: int | None) -> str:
        """The name in the call tree of the C function at `address`; for None, of the packed function `name`
        of the firmware."""
        if address is None:
            code = packed_function_code(self.image, name)
        else:
            code = self.image.function_at(address & ~self.image.program.elf.machine_bit)
        return self.image.name_of(code) if code else name

    def inclusive(self, name: str, *, cycles: bool) -> Mapping[str, tuple[int, int]]:
        """Instructions, and with `cycles` the least estimated cycles, of the calls of `name` with its callees
        in timed batches since QEMU's start, each with the number of calls; empty without `flow`, and where
        the call tree had no room.

        name: as `name_in_tree` gives it. Code without cycles has 0 here: `of_batches` raises its error.
        """
        if not self._flow or self._control["lost"]:
            return {}
        calls = {"instructions": self.call_tree().calls_of(name)}
        return {**calls, "cycles": self.cycle_tree(self.windows).calls_of(name)} if cycles else calls

    def _range_of(self, name: str) -> tuple[int, int]:
        for function in self.image.functions:
            if function.name == name:
                return function.start, function.end
        raise ConfigurationError(f"{self.image.path} has no function {name}")

    def _map(self) -> None:
        code, window, functions = self.image.code, self.image.window, self.image.functions
        regions = _joined(self.image.regions)
        if len(regions) > _MAX_REGIONS or max(len(window.opens), len(window.closes)) > _MAX_EDGES:
            raise ConfigurationError(f"{self.image.path} has too many places to count at")
        self._first_slots = list(accumulate(map(self._slots, code), initial=_FIRST_RANGE))
        self._free_slots = self._first_slots[-1]
        counters = self._free_slots + _LOADED_SLOTS
        layout = {
            "windows": (_WINDOWS, _WINDOW),
            "ranges": (len(code) + _LOADED_RANGES, _RANGE),
            "parts": (counters, np.dtype("<u8")),
            "parts_in_windows": (counters, np.dtype("<u8")),
            "blocks": (_BLOCKS, _BLOCK),
            "members": (_MEMBERS, np.dtype("<u4")),
            "functions": (len(functions) + _LOADED, _FUNCTION),
            "nodes": (_NODES, _NODE),
            "trace": (_STEPS * self._trace, STEP),
            "checkpoints": (_CHECKPOINTS * self._trace, np.dtype("<u8")),
            "code": (_CODE * (self.core is not None), np.dtype("u1")),
            "edges": (_EDGES * (self.core is not None), _EDGE),
            "taken": (_TAKEN * (self.core is not None), _TIMES),
            "extra_cycles": (counters * (self.core is not None), np.dtype("<u8")),
            "doubts": (counters, np.dtype("<u8")),
            "operand_cycles": (len(self._operations) * CLASSES**2, np.dtype("u1")),
        }
        sizes = [_rounded(count * dtype.itemsize) for count, dtype in layout.values()]
        *places, size = accumulate(sizes, initial=_PAGE)
        os.ftruncate(self._fd, size)
        memory = mmap.mmap(self._fd, size)
        control = self._control = np.frombuffer(memory, _CONTROL, 1)[0]
        arrays = {}
        for (name, (count, dtype)), place in zip(layout.items(), places, strict=True):
            control[f"{name}_at"] = place
            arrays[name] = np.frombuffer(memory, dtype, count, place)
            if f"{name}_max" in (_CONTROL.names or ()):
                control[f"{name}_max"] = count
        self._windows, self._ranges, self._nodes = arrays["windows"], arrays["ranges"], arrays["nodes"]
        self._parts, self._parts_in_windows = arrays["parts"], arrays["parts_in_windows"]
        self._blocks, self._members = arrays["blocks"], arrays["members"]
        self._functions = arrays["functions"]
        self._steps, self._checkpoints = arrays["trace"], arrays["checkpoints"]
        self._code, self._edges, self._taken = arrays["code"], arrays["edges"], arrays["taken"]
        self._extra_cycles, self._doubts = arrays["extra_cycles"], arrays["doubts"]
        self._ranges[: len(code)] = [
            (item.base, item.size, self.image.shift, first, 0)
            for item, first in zip(code, self._first_slots, strict=False)
        ]
        self._functions[: len(functions)] = [(function.start, function.end) for function in functions]
        self._nodes[0]["function"] = NO_FUNCTION
        control["ranges"], control["functions"], control["nodes"] = len(code), len(functions), 1
        control["counters"] = counters
        control["opens"], control["closes"] = len(window.opens), len(window.closes)
        control["open_at"][: len(window.opens)] = window.opens
        control["close_at"][: len(window.closes)] = window.closes
        control["slow_from"], control["slow_to"] = self._slow
        control["stack_low"], control["stack_high"] = self.image.stack
        control["look_at"] = (
            _LOOK_AT_FLOW * self._flow
            + _LOOK_AT_MEMORY * (self._memory or self.core is not None)
            + _LOOK_AT_EDGES * (self.core is not None)
            + _LOOK_AT_FLASH * bool(self._wait_states)
            + _LOOK_AT_UNALIGNED * (self.core is not None)
        )
        control["wait_states"], control["operations"] = self._wait_states, len(self._operations)
        control["operation"][: len(self._operations)] = [(item.mask, item.bits) for item in self._operations]
        if self.core:
            tables = arrays["operand_cycles"].reshape(len(self._operations), CLASSES, CLASSES)
            for place, operation in enumerate(self._operations):
                tables[place] = self.core.by_operands(operation)
            if self.core.unaligned is not None:
                control["unaligned"][:] = self.core.unaligned
        control["machine"], control["wide"] = _MACHINES.get(self.image.machine, 0), self.image.wide
        control["regions"] = len(regions)
        control["region"][: len(regions)] = [
            (region.base, region.size, _KINDS.index(region.kind)) for region in regions
        ]
        control["cache_line"], control["cache_ways"] = self.cache.line, self.cache.ways
        control["cache_sets"] = self.cache.sets
        control["sizes"][:], control["layout"] = _SIZES, _LAYOUT

    def note_code(self, base: int, size: int, name: str, program: bytes) -> None:
        """Register loaded code, `size` bytes at `base`, before the device runs it: its instructions are then
        counted, and its functions have names.

        name: of addresses without a symbol in `program`, the code's ELF file. Code beyond the limits is
        counted as a whole, as "?"; `unknown_code` has its size.
        """
        new = LoadedCode(base, size, name, program)
        if next(self._loaded_in(base, base + size), None) == new:
            return
        code = next((item for item in self._loaded if item == new), new)
        first = self._loaded.get(code, self._free_slots)
        free_slots = max(self._free_slots, first + self._slots(code))
        ranges, known = int(self._control["ranges"]), len(self.image.functions) + len(self._loaded_names)
        fits = free_slots <= len(self._parts) and ranges < len(self._ranges)
        if not fits or known + len(code.functions) > len(self._functions):
            self.unknown_code += size
            self._forget(base, base + size)
            return
        for place, function in enumerate(code.functions, known):
            self._functions[place] = (function.start, function.end)
        self._loaded_names += [function.name for function in code.functions]
        flash = code.flash_size if self._wait_states else 0
        self._ranges[ranges] = (base, size, self.image.shift, first, flash)
        self.image.loaded.append(code)
        self._loaded[code] = first
        self._free_slots = free_slots
        self._control["loaded"], self._control["ranges"] = len(self._loaded_names), ranges + 1

    def _loaded_in(self, begin: int, end: int) -> Iterator[LoadedCode]:
        """Known loaded code in memory from `begin` to `end`, the last first."""
        return (
            item for item in reversed(self.image.loaded) if item.base < end and begin < item.base + item.size
        )

    def _forget(self, begin: int, end: int) -> None:
        """Forget loaded code that unknown code overwrites; its counts stay."""
        ranges, functions = self._ranges[len(self.image.code) :], self._functions[len(self.image.functions) :]
        ranges["size"][(ranges["base"] < end) & (begin < ranges["base"] + ranges["size"])] = 0
        over = (functions["start"] < end) & (begin < functions["end"])
        functions["end"][over] = functions["start"][over]
        for code in [*self._loaded_in(begin, end)]:
            self.image.loaded.remove(code)

    def _slots(self, code: CodeSegment | LoadedCode) -> int:
        return (code.size >> self.image.shift) + 1

    def _used_blocks(self) -> npt.NDArray[np.void]:
        self._check_room()
        return self._blocks[: int(self._control["blocks"])].copy()

    def _check_room(self) -> None:
        if self._control["full"]:
            raise HarnessError(
                "there is no room for more counts: this device has run too much different code",
                next_step="start the device again, and count less code in a run",
            )

    def _executed(self, runs: str, parts: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """Number of executions of each instruction with a counter; the first is all others together."""
        blocks = self._used_blocks()
        lengths = blocks["instructions"].astype(np.int64)
        members = self._members[: int(lengths.sum())].astype(np.int64)
        # Whole numbers, exact up to 2**53.
        whole = np.bincount(members, np.repeat(blocks[runs], lengths), minlength=self._free_slots)
        return whole.astype(np.uint64) + parts[: self._free_slots]

    def _counts(self, runs: str, parts: npt.NDArray[np.uint64]) -> Counts:
        executed = self._executed(runs, parts)
        by_address: Counter[int] = Counter()
        for _, counts in self._by_code(executed):
            by_address.update(counts)
        return Counts(by_address, int(executed[_ELSEWHERE]))

    def _by_code(self, executed: npt.NDArray[Any]) -> list[tuple[LoadedCode | None, dict[int, int]]]:
        image: dict[int, int] = {}
        for code, first in zip(self.image.code, self._first_slots, strict=False):
            image |= self._addresses(executed, code, first)
        loaded = ((code, self._addresses(executed, code, first)) for code, first in self._loaded.items())
        return [(None, image), *loaded]

    def _addresses(
        self, executed: npt.NDArray[Any], code: CodeSegment | LoadedCode, first: int
    ) -> dict[int, int]:
        counts = executed[first : first + self._slots(code)]
        places = np.flatnonzero(counts)
        addresses = (places << self.image.shift) + code.base
        return dict(zip(addresses.tolist(), counts[places].tolist(), strict=True))


def counters_for(
    elf: Path,
    *,
    flow: bool = False,
    memory: bool = False,
    core: Core | None = None,
    no_cycles: str = "",
    cache: Cache | None = None,
    trace: bool = False,
    slow: str | None = None,
) -> QemuCounters:
    """The plugin for a run of the program in `elf`; see `QemuCounters`."""
    return QemuCounters(
        Image(elf),
        flow=flow,
        memory=memory,
        core=core,
        no_cycles=no_cycles,
        cache=cache,
        trace=trace,
        slow=slow,
    )


def _is_later(image: Image) -> bool:
    """True for code of an Arm core behind the Cortex-M4, which have no table: Armv8-M, or the FPU of a
    Cortex-M7. A Cortex-M7 without an FPU has the M4's instructions."""
    noted = attributes_of(image.program, ".ARM.attributes")
    arch, fpu = noted.get("TAG_CPU_ARCH"), noted.get("TAG_FP_ARCH")
    return (isinstance(arch, int) and arch > _ARM_V7E_M) or (isinstance(fpu, int) and fpu > _VFPV4_D16)


def _value(name: str, window: np.void, cycles: Span) -> int:
    match name:
        case "stack_bytes":
            return _stack(window)
        case "cycles":
            return cycles.least
        case "cycles_most":
            return cycles.most
    return int(window[name])


def _stack(window: np.void) -> int:
    """Stack use in bytes: from the first store to the stack, by the evaluator or callee, to the lowest."""
    return int(window["stack_first"]) - int(window["stack_lowest"])


def _joined(regions: Sequence[AddressRange]) -> list[AddressRange]:
    """Joins adjacent ranges of one kind, and the padding between them."""
    joined: list[AddressRange] = []
    for region in regions:
        before = joined[-1] if joined else None
        if before and before.kind == region.kind and region.base - before.base - before.size < _PAGE:
            joined[-1] = before._replace(size=region.base + region.size - before.base)
        else:
            joined.append(region)
    return joined


def _rounded(size: int) -> int:
    """`size` rounded up to whole pages."""
    return -(-size // _PAGE) * _PAGE
