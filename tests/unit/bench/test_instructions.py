# SPDX-License-Identifier: Apache-2.0
"""What the device executes for a call: the same count each time, and nothing where nothing counts."""

from __future__ import annotations

import pytest
from minrpc.firmware import build
from minrpc.pipeline import lacking
from minrpc.targets import PLATFORMS, Target
from minrpc_bench import instructions
from minrpc_bench.peers import Peers


def server_on(name: str) -> Peers:
    missing = lacking(PLATFORMS[name])
    if missing:
        pytest.skip(f"{name} lacks {', '.join(one.name for one in missing)}")
    firmware = build(Target.named(name))
    return Peers(firmware, firmware)


@pytest.mark.slow
def test_a_call_takes_the_same_each_time() -> None:
    (one, to_device, back), (other, *_) = (
        instructions.measure(server_on("bare_mps2_an385")) for _ in range(2)
    )
    assert one.name == "a call of inc"
    assert 1000 < one.value == other.value
    assert one.note == other.note
    assert to_device.value > 1
    assert back.value > 1


def test_a_process_has_no_such_rows() -> None:
    assert instructions.measure(server_on("posix")) == []
