# SPDX-License-Identifier: Apache-2.0
"""What a device counts itself beside a time, and peaks of its memory: firmware with MINRPC_COUNTERS."""

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
"""Asked for by memory=True; they are peaks of a call, no differences."""
NO_SLOT: Final = "no slot for the counter"
"""How the device says that all hardware counters are in use, or none can be had."""

_HEAP: Final = Struct("<II")


def device_counters(rpc: RpcClient) -> Mapping[str, DeviceCounter]:
    """All by name; none where the firmware was built without them. Asked once in a session."""
    facts = rpc.facts
    if facts.counters is None:
        handle = rpc.global_function(LIST)
        answer = rpc.call(handle, (), "list the counters") if handle else b""
        if not isinstance(answer, bytes):
            raise DialectError(f"{LIST} gave {answer!r} instead of a list")
        facts.counters = {one.name: one for one in _parsed(answer)}
    return facts.counters


def _parsed(answer: bytes) -> Sequence[DeviceCounter]:
    found = []
    for line in answer.decode("ascii", "backslashreplace").splitlines():
        name, _, rest = line.partition(",")
        unit, _, bits = rest.rpartition(",")
        if name and bits.isdecimal():
            found.append(DeviceCounter(name, unit, int(bits)))
    return found


class HeapUse(NamedTuple):
    """Bytes of a device's heap."""

    used: int
    peak: int


def heap_use(rpc: RpcClient, *, reset: bool = False) -> HeapUse | None:
    """The heap's; None where the firmware does not tell. reset: all peaks, also of stack and arena, are those
    of now on.
    """
    handle = rpc.global_function(MEMORY)
    if not handle:
        return None
    answer = rpc.call(handle, (int(reset),), "ask for peaks")
    if not isinstance(answer, bytes) or len(answer) < _HEAP.size:
        raise DialectError(f"{MEMORY} gave {answer!r} instead of bytes")
    return HeapUse(*_HEAP.unpack_from(answer))
