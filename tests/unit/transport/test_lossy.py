# SPDX-License-Identifier: Apache-2.0
"""The lossy transport damages bytes as its docstring says, and repeatably."""

from __future__ import annotations

import pytest
from minrpc.transport import Faults, LossyTransport, MemoryTransport, memory_pair

SENT = bytes(range(256)) * 40
KINDS = ("drop", "flip", "duplicate", "cut", "delay")


def lossy(faults: Faults, seed: int = 0) -> tuple[LossyTransport, MemoryTransport]:
    near, far = memory_pair(capacity=1 << 20)
    return LossyTransport(near, faults, seed), far


def all_of(transport: MemoryTransport | LossyTransport) -> bytes:
    """All bytes that have arrived."""
    parts = []
    while data := transport.read(0.0):
        parts.append(data)
    return b"".join(parts)


def sent_through(faults: Faults, seed: int = 0, chunk: int = len(SENT)) -> tuple[bytes, dict[str, int]]:
    transport, far = lossy(faults, seed)
    for at in range(0, len(SENT), chunk):
        transport.write(SENT[at : at + chunk], 1.0)
    return all_of(far), transport.counts


def test_without_faults_all_arrives_both_ways() -> None:
    transport, far = lossy(Faults())
    transport.write(SENT, 1.0)
    assert all_of(far) == SENT
    far.write(SENT, 1.0)
    assert all_of(transport) == SENT
    assert set(transport.counts.values()) == {0}


def test_dropped_bytes_are_missing() -> None:
    came, counts = sent_through(Faults(drop=0.01))
    assert counts["drop"] > 50
    assert len(came) == len(SENT) - counts["drop"]


def test_duplicated_bytes_come_twice() -> None:
    came, counts = sent_through(Faults(duplicate=0.01))
    assert counts["duplicate"] > 50
    assert len(came) == len(SENT) + counts["duplicate"]


def test_flipped_bytes_differ_in_one_bit() -> None:
    came, counts = sent_through(Faults(flip=0.01))
    changed = [a ^ b for a, b in zip(SENT, came, strict=True) if a != b]
    assert len(changed) == counts["flip"] > 50
    assert all(difference.bit_count() == 1 for difference in changed)


def test_cuts_take_up_to_64_bytes() -> None:
    came, counts = sent_through(Faults(cut=0.001))
    assert counts["cut"] > 3
    assert counts["cut"] <= len(SENT) - len(came) <= 64 * counts["cut"]


def test_delays_lose_nothing_and_come_by_themselves() -> None:
    transport, far = lossy(Faults(delay=0.01))
    far.write(SENT, 1.0)
    reads = []
    while data := transport.read(0.0):
        reads.append(data)
    assert b"".join(reads) == SENT
    assert len(reads) == transport.counts["delay"] + 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_means_the_same_faults_however_the_bytes_are_cut(kind: str) -> None:
    faults = Faults(**{kind: 0.003})
    assert sent_through(faults, 7) == sent_through(faults, 7, chunk=3)
    if kind != "delay":
        assert sent_through(faults, 7)[0] != sent_through(faults, 8)[0]


def test_a_rate_is_per_byte_and_spread_over_all_kinds() -> None:
    came, counts = sent_through(Faults.spread(0.02))
    assert Faults.spread(0.02).total() == pytest.approx(0.02)
    assert all(counts[kind] > 10 for kind in KINDS)
    # One in fifty of 10,240 bytes, less the bytes in cuts: within five standard deviations.
    assert 90 < sum(counts.values()) < 275
    assert came != SENT


def test_directions_have_faults_of_their_own() -> None:
    transport, far = lossy(Faults(drop=0.01))
    transport.write(SENT, 1.0)
    far.write(SENT, 1.0)
    assert all_of(far) != all_of(transport)


def test_close_closes_the_inner_one() -> None:
    transport, far = lossy(Faults())
    transport.close()
    assert transport.name.startswith("lossy ")
    with pytest.raises(Exception, match="closed"):
        far.read(0.0)
