# SPDX-License-Identifier: Apache-2.0
"""The start of a session while the device boots."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from minrpc import NothingHeardError
from minrpc.client import RandomNonces
from minrpc.wire.framing import encode_frame
from minrpc.wire.session_layer import MessageType, encode_message

from tests.unit.client.conftest import Bench

GOODBYE = encode_frame(encode_message(0, MessageType.TERMINATE))


def test_no_two_starts_in_a_row_have_the_same_nonce() -> None:
    nonces = RandomNonces()
    drawn = [nonces() for _ in range(20_000)]
    assert set(drawn) == set(range(1, 255))
    assert all(item != other for item, other in pairwise(drawn))


def test_a_start_that_waited_for_the_boot_is_sent_once(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(chunk=1, boot=True)
    bench.device.connect()
    assert sum(GOODBYE in data for data in bench.transport.written) == 1


def test_a_start_is_sent_again_after_longer_and_longer_silences(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench()
    clock, sent = bench.transport.clock, []
    bench.transport.spoil = lambda data: sent.append(clock.s) or b""  # type: ignore[func-returns-value]
    with pytest.raises(NothingHeardError):
        bench.connect(40.0).connect()
    assert [round(later - item, 1) for item, later in pairwise(sent)] == [
        0.5,
        1.0,
        2.0,
        4.0,
        8.0,
        8.0,
        8.0,
        8.0,
    ]


def test_once_the_device_has_booted_its_answer_is_not_waited_for_long(
    make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start before the boot may be lost: after `terminate` the next start is sent in 0.1 s."""
    bench = make_bench()
    clock, receive, starts = bench.transport.clock, bench.model.receive, []

    def boots(data: bytes) -> bytes:
        starts.append(clock.s)
        return GOODBYE if len(starts) == 1 else receive(data)

    monkeypatch.setattr(bench.model, "receive", boots)
    bench.connect(40.0).connect()
    assert len(starts) == 2
    assert starts[1] - starts[0] == pytest.approx(0.1, abs=0.02)
