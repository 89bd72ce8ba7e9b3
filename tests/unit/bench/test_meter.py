# SPDX-License-Identifier: Apache-2.0
"""Counting bytes on the wire."""

from __future__ import annotations

import pytest
from minrpc.transport import memory_pair
from minrpc.wire import encode_frame
from minrpc_bench.meter import MeteredTransport, ReplayingTransport, Traffic, count_escapes


@pytest.mark.parametrize(
    "payload", [b"", b"abc", b"\xff", b"\xff\xff\xff", b"a\xff\xfdb", bytes(range(256)) * 3]
)
def test_escapes_are_what_a_frame_has_more_than_its_payload_and_its_fields(payload: bytes) -> None:
    frame = encode_frame(payload)
    assert count_escapes(frame) == len(frame) - len(payload) - 8
    assert count_escapes(frame * 2) == 2 * count_escapes(frame)


def test_both_directions_are_counted_for_each_action() -> None:
    host, device = memory_pair()
    meter = MeteredTransport(host)
    device.write(encode_frame(b"early"), 1.0)
    meter.read(1.0)

    def action() -> None:
        meter.write(encode_frame(b"\xff"), 1.0)
        meter.write(b"12", 1.0)
        device.write(b"reply", 1.0)
        meter.read(1.0)

    assert meter.during(action) == Traffic(sent=12, received=5, escapes=1, requests=2)
    assert meter.during(lambda: None) == Traffic()
    assert device.read(1.0) == encode_frame(b"\xff") + b"12"
    meter.close()


def test_a_replayed_call_gives_the_answer_again_and_sends_nothing() -> None:
    host, device = memory_pair()
    transport = ReplayingTransport(host)
    device.write(b"answer", 1.0)
    transport.write(b"call", 1.0)
    assert transport.read(1.0) == b"answer"
    transport.replays = True
    for _ in range(3):
        transport.write(b"call", 1.0)
        assert transport.read(1.0) == b"answer"
    transport.replays = False
    assert device.read(0.0) == b"call"
    assert device.read(0.0) == b""
    transport.close()
