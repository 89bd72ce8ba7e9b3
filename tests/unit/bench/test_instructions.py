# SPDX-License-Identifier: Apache-2.0
"""Instructions of a call: the same count each time, and no rows for a process."""

from __future__ import annotations

import pytest
from minrpc import PLATFORMS, Target, build, lacking
from minrpc_bench import instructions
from minrpc_bench.peers import Peers


def server_on(name: str) -> Peers:
    missing = lacking(PLATFORMS[name])
    if missing:
        pytest.skip(f"{name} lacks {', '.join(item.name for item in missing)}")
    firmware = build(Target.named(name))
    return Peers(firmware, firmware)


@pytest.mark.slow
def test_a_call_takes_the_same_each_time() -> None:
    """Exactly: the least of several has no waking up between bytes that a busy host sends one by one."""
    (index, to_device, back), (other, *_) = (
        instructions.measure(server_on("bare_mps2_an385")) for _ in range(2)
    )
    assert index.name == "a call of inc"
    assert index.value > 1000
    assert index.value == other.value
    assert index.note == other.note
    assert to_device.value > 1
    assert back.value > 1


def test_a_process_has_no_such_rows() -> None:
    assert instructions.measure(server_on("posix")) == []
