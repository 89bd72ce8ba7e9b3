# SPDX-License-Identifier: Apache-2.0
"""What the rows of direct memory and of tuning say, on a process of this machine."""

from __future__ import annotations

import pytest
from minrpc import Target, build
from minrpc_bench import direct, tuning
from minrpc_bench.peers import Peers


@pytest.fixture(scope="module")
def peers() -> Peers:
    firmware = build(Target.named("posix"))
    return Peers(firmware, firmware)


def test_copies_each_way_and_a_call(peers: Peers) -> None:
    rows = direct.measure(peers)
    assert [row.name for row in rows] == [
        "256 KiB to the device",
        "256 KiB back",
        "add of 512x512 float32, to and back",
    ]
    for row in rows[:2]:
        assert row.baseline is not None
        assert row.ratio == pytest.approx(row.baseline / row.value)
        assert row.verdict in ("met", "missed")
    assert rows[2].verdict == ""


def test_nothing_where_no_memory_is_shared(peers: Peers) -> None:
    target = Target.named("posix", direct=False)
    assert direct.measure(Peers(build(target), peers.raw)) == []


@pytest.mark.slow
def test_candidates_on_one_device_and_two(peers: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "_CANDIDATES", 4)
    monkeypatch.setattr(tuning, "_BUILDS", 1)
    item, two, against = tuning.measure(peers)
    assert (item.name, two.name) == ("candidates a minute, 1 device", "candidates a minute, 2 devices")
    assert against.value == item.value
    assert against.baseline is not None
    assert against.ratio == pytest.approx(item.value / against.baseline)
