# SPDX-License-Identifier: Apache-2.0
"""How a session starts when the device boots at the same time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from minrpc.client.link import RandomNonces
from minrpc.wire.framing import encode_frame
from minrpc.wire.session import MessageType, encode_message

from tests.unit.client.conftest import Bench

GOODBYE = encode_frame(encode_message(0, MessageType.TERMINATE))


def test_no_two_starts_in_a_row_have_the_same_nonce() -> None:
    nonces = RandomNonces()
    drawn = [nonces() for _ in range(20_000)]
    assert set(drawn) == set(range(1, 255))
    assert all(one != other for one, other in pairwise(drawn))


def test_a_start_that_waited_for_the_boot_is_sent_once(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(chunk=1, boot=True)
    bench.device.connect()
    assert sum(GOODBYE in data for data in bench.transport.written) == 1
