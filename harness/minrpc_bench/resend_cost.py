# SPDX-License-Identifier: Apache-2.0
"""What numbered requests, which are sent again when they are lost, cost on a link that loses nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from minrpc.pipeline import Device

from minrpc_bench.copies import CALLS, copies_of
from minrpc_bench.paired import interleave
from minrpc_bench.peers import Peers, on_one_cpu, running_device
from minrpc_bench.round_trip import calls_of
from minrpc_bench.rows import Row, time_row

_CALLS: Final = {"process": 200, "qemu": 10}


def measure(peers: Peers, rounds: int, copy_rounds: int) -> list[Row]:
    """Calls and copies; the baseline is the same on a second device, without numbers."""
    starts = peers.platform.starts
    with (
        running_device(peers.server) as (plain, item),
        running_device(peers.server, resend=True) as (numbered, other),
        on_one_cpu(item, other),
    ):
        rows = _rows(peers, calls_of(plain), calls_of(numbered), rounds, _CALLS[starts])
        copies, numbered_copies = _copies(peers, plain), _copies(peers, numbered)
        return rows + _rows(peers, copies, numbered_copies, copy_rounds, CALLS[starts])


def _copies(peers: Peers, device: Device) -> dict[str, Callable[[], object]]:
    return {copy.name: copy.run for copy in copies_of(device, peers.platform)}


def _rows(
    peers: Peers,
    plain: dict[str, Callable[[], object]],
    numbered: dict[str, Callable[[], object]],
    rounds: int,
    calls: int,
) -> list[Row]:
    note = "baseline: the same without numbered requests"
    return [
        time_row(
            "resend",
            name,
            peers.platform.name,
            interleave(numbered[name], plain[name], rounds=rounds, calls=calls),
            note=note,
        )
        for name in plain
    ]
