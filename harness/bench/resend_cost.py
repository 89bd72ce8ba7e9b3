# SPDX-License-Identifier: Apache-2.0
"""What numbered requests, which are sent again when they are lost, cost on a link that loses nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from harness.bench.copies import SHAPE, random_int8
from harness.bench.paired import interleave
from harness.bench.peers import Peers, running_device
from harness.bench.round_trip import calls_of, steady
from harness.bench.rows import Row, time_row
from harness.client import Device

_CALLS: Final = {"process": 200, "native": 100, "qemu": 10}
_COPIES: Final = {"process": 5, "native": 3, "qemu": 1}


def measure(peers: Peers, rounds: int, copy_rounds: int) -> list[Row]:
    """Calls and copies; the baseline is the same on a second device, without numbers."""
    starts = peers.platform.starts
    with (
        running_device(peers.server) as (plain, one),
        running_device(peers.server, resend=True) as (numbered, other),
        steady(peers, one, other),
    ):
        rows = _rows(peers, calls_of(plain), calls_of(numbered), rounds, _CALLS[starts])
        return rows + _rows(peers, _copies(plain), _copies(numbered), copy_rounds, _COPIES[starts])


def _copies(device: Device) -> dict[str, Callable[[], object]]:
    host = random_int8(SHAPE)
    array = device.array(host)
    return {"512x512 int8 to the device": lambda: array.copy_from(host), "512x512 int8 back": array.numpy}


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
