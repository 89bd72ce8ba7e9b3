# SPDX-License-Identifier: Apache-2.0
"""Counters and memory peaks that a device reads itself: needs firmware with MINRPC_COUNTERS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import Struct
from typing import Final, NamedTuple

from minrpc.client.info import DeviceCounter
from minrpc.client.rpc import RpcClient
from minrpc.errors import DialectError

LIST: Final = "minrpc.counters"
MEMORY: Final = "minrpc.memory"
PEAKS: Final = ("stack_bytes", "arena_bytes", "heap_bytes")
"""Counters that memory=True requests; they are peaks of a call, not differences."""
NO_SLOT: Final = "no slot for the counter"
"""The device's error text when all hardware counters are in use, or none is available."""

_HEAP: Final = Struct("<II")


def device_counters(rpc: RpcClient) -> Mapping[str, DeviceCounter]:
    """The device's counters by name; empty for firmware without counters. Asked once per session."""
    facts = rpc.facts
    if facts.counters is None:
        handle = rpc.global_function(LIST)
        answer = rpc.call(handle, (), "list the counters", probing=True) if handle else b""
        if not isinstance(answer, bytes):
            raise DialectError(f"{LIST} gave {answer!r} instead of a list")
        facts.counters = {counter.name: counter for counter in _parsed(answer)}
    return facts.counters


def _parsed(answer: bytes) -> Sequence[DeviceCounter]:
    counters = []
    for line in answer.decode("ascii", "backslashreplace").splitlines():
        name, _, rest = line.partition(",")
        unit, _, bits = rest.rpartition(",")
        if name and bits.isdecimal():
            counters.append(DeviceCounter(name, unit, int(bits)))
    return counters


class HeapUse(NamedTuple):
    """A device's use of its heap, in bytes."""

    used: int
    peak: int


def heap_use(rpc: RpcClient, *, reset: bool = False) -> HeapUse | None:
    """The use of the heap; None if the firmware can't report it.

    reset: restarts all peaks, also the peaks of stack and arena.
    """
    handle = rpc.global_function(MEMORY)
    if not handle:
        return None
    answer = rpc.call(handle, (int(reset),), "ask for peaks")
    if not isinstance(answer, bytes) or len(answer) < _HEAP.size:
        raise DialectError(f"{MEMORY} gave {answer!r} instead of bytes")
    return HeapUse(*_HEAP.unpack_from(answer))
