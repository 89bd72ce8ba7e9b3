# SPDX-License-Identifier: Apache-2.0
"""The link's messages in a failed test's report."""

from __future__ import annotations

import pytest
from minrpc import LinkClosedError
from minrpc.client import LentTransport, SessionLink
from minrpc.transport import memory_pair
from minrpc.wire.framing import encode_frame
from minrpc.wire.session_layer import MessageType, encode_message


def test_messages_that_come_byte_by_byte_are_whole() -> None:
    near, far = memory_pair()
    lent = LentTransport(near)
    texts = [f"line {number} of a log" for number in range(40)]
    for text in texts:
        for byte in encode_frame(encode_message(0, MessageType.LOG, text.encode())):
            far.write(bytes([byte]), 1.0)
            lent.read(1.0)
    assert lent.trace().splitlines() == [f"< log: {text}" for text in texts[-16:]]


def test_questions_for_an_answer_do_not_push_out_what_was_asked() -> None:
    near, _ = memory_pair()
    lent = LentTransport(near)
    lent.write(encode_frame(encode_message(0, MessageType.LOG, b"the question")), 1.0)
    for _ in range(1000):
        lent.write(encode_frame(encode_message(0, MessageType.PROBE, b"\x07")), 1.0)
    assert lent.trace().splitlines() == ["> log: the question", "> probe 07 (1000 times)"]


def test_what_is_long_is_kept_as_it_came() -> None:
    near, far = memory_pair()
    lent = LentTransport(near)
    log = encode_frame(encode_message(0, MessageType.LOG, b"x" * 5000))
    far.write(log[:4500], 1.0)
    lent.read(1.0)
    far.write(log[4500:], 1.0)
    lent.read(1.0)
    lent.write(log, 1.0)
    shown = lent.trace().splitlines()
    assert [line[:12] for line in shown] == ["< log: xxxxx", "> log: xxxxx"]


def test_it_has_the_name_of_the_link_that_it_lends() -> None:
    near, _ = memory_pair()
    assert LentTransport(near).name == near.name


def test_chunks_are_joined_up_to_the_limit_and_not_beyond() -> None:
    near, _ = memory_pair()
    lent = LentTransport(near)
    for size in (4000, 96, 1):
        lent.write(bytes(size), 1.0)
    assert [len(data) for _, data in lent._chunks] == [4096, 1]


def test_a_link_that_is_opened_again_stays_lent() -> None:
    """The trace goes on, and the lender's new link is not closed at the test's end."""
    (near, _), (again, far) = memory_pair(), memory_pair()
    lent = LentTransport(near)
    link = SessionLink(lent)
    link.go_on(None)
    link.go_on(again)
    assert link.transport is lent
    link.close()
    assert far.read(0.0)
    far.write(b"x", 1.0)
    assert again.read(0.0) == b"x"


def test_a_device_that_is_closed_does_not_disturb_the_next_on_its_link() -> None:
    near, far = memory_pair()
    link = SessionLink(LentTransport(near))
    link.close()
    far.read(0.0)
    with pytest.raises(LinkClosedError, match="this device was closed"):
        link.start(0.1)
    assert not far.read(0.0)
