# SPDX-License-Identifier: Apache-2.0
"""What a whole firmware takes: flash and RAM from its ELF, and how deep its stack went."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

import numpy as np
from minrpc.errors import RemoteError
from minrpc.pipeline import Device
from minrpc.program import Elf

from minrpc_bench.peers import Peers, running_device
from minrpc_bench.rows import Goal, Row

# The sections in RAM by picolibc's linker script, without the stack, and what receives or is arena there.
_RAM_SECTIONS: Final = (".data", ".bss", ".preserve")
_NOT_STATE: Final = frozenset({"arena", "receive_buffer", "ring"})
_RAM_GOAL: Final = Goal("at most", 767, "value")


def measure(peers: Peers) -> list[Row]:
    """Flash and RAM, arena and buffers among it; and the stack's high-water mark after some of everything."""
    flash, ram = peers.server.sizes
    rows = [
        _row(peers, "flash of the firmware", flash, "with the operators, the port and the C library"),
        _row(peers, "RAM of the firmware", ram, "with arena, receive buffer and stack"),
    ]
    if peers.platform.port == "baremetal":
        state, note = state_bytes(peers.server.elf), "all static data of the program"
        rows.append(_row(peers, "RAM beside arena, receive buffer, ring and stack", state, note, _RAM_GOAL))
    with running_device(peers.server) as (device, _):
        exercise(device)
        info = device.info()
    if info.stack_size:
        note = "after calls, copies, a time evaluator and an exception"
        rows += [
            _row(peers, "stack, high-water mark", info.stack_peak, note),
            _row(peers, "stack, size", info.stack_size, ""),
        ]
    return rows


def exercise(device: Device) -> None:
    """Calls, copies within and beyond the receive buffer, an evaluator, and a call that fails."""
    library = device.system_lib()
    a, b = (device.array(np.ones(20_000, np.float32)) for _ in range(2))
    c = device.empty((20_000,), np.float32)
    library["add"](a, b, c)
    library["exp"](a, c)
    a.copy_from(c.numpy())
    library.time_evaluator("add", number=2, repeat=2)(a, b, c)
    with contextlib.suppress(RemoteError):
        library["add"](a)


def state_bytes(elf: Path) -> int:
    """Static data of a bare-metal program beside its arena and what it receives into."""
    program = Elf(elf.read_bytes())
    total = sum(section.size for section in program.sections if section.name in _RAM_SECTIONS)
    return total - sum(symbol.size for symbol in program.symbols if symbol.name in _NOT_STATE)


def _row(peers: Peers, name: str, size: int, note: str, goal: Goal | None = None) -> Row:
    return Row("size", name, peers.platform.name, "bytes", size, goal=goal, note=note)
