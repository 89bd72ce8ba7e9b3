# SPDX-License-Identifier: Apache-2.0
"""Rows of instructions: a call and a byte on an emulated core, and no rows for a process."""

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
def test_a_call_and_a_byte_have_rows() -> None:
    """Counts vary: on a busy host the device sleeps between bytes, and waking up is counted."""
    index, to_device, back = instructions.measure(server_on("bare_mps2_an385"))
    assert index.name == "a call of inc"
    assert index.value > 1000
    assert "minrpc_reader_feed" in index.note
    assert 1 < to_device.value < 1000
    assert 1 < back.value < 1000


def test_a_process_has_no_such_rows() -> None:
    assert instructions.measure(server_on("posix")) == []
