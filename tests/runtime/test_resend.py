# SPDX-License-Identifier: Apache-2.0
"""Numbered messages: each request runs once however often it arrives, and its reply can be had again."""

from __future__ import annotations

import pytest
from minrpc.wire.framing import encode_frame
from minrpc.wire.replies import RemoteException, decode_reply
from minrpc.wire.requests import CallFunc, CopyFromRemote, Request, alloc_data
from minrpc.wire.session_layer import MessageType
from minrpc.wire.values import Argument

from tests.runtime.host import I8, V8, Host, flipped, message, numbered, packet, tensor

# A block of 512 bytes.
SPARE = 544


def payload(host: Host, sequence: int, request: Request) -> bytes:
    return numbered(host.session, sequence, packet(request))


def give(host: Host, sequence: int, function: int, *args: Argument) -> None:
    """A numbered call."""
    host.give(encode_frame(payload(host, sequence, CallFunc(function, args))))


def call(host: Host, sequence: int, function: int) -> bytes:
    """The reply to a numbered call without arguments."""
    give(host, sequence, function)
    return host.take_numbered(sequence)


def asks_for(host: Host, sequence: int) -> bool:
    """True if the device asks for the request behind `sequence`."""
    return host.take_next() == (host.session, MessageType.RESEND, bytes([sequence]))


def probe(host: Host, sequence: int) -> None:
    host.give(message(host.session, MessageType.PROBE, bytes([sequence])))


def overwrite_buffer(host: Host) -> None:
    """A request as large as the receive buffer, and damaged."""
    host.give(flipped(message(host.session, MessageType.NORMAL, b"\xee" * (8192 - 3)), -1))


def kept(host: Host, sequence: int) -> bytes:
    """The reply to `sequence`, which comes again, byte for byte, after the receive buffer was overwritten."""
    first = host.take_numbered(sequence)
    host.silent()
    overwrite_buffer(host)
    assert asks_for(host, sequence)
    probe(host, sequence)
    assert host.take_numbered(sequence) == first
    host.silent()
    return first


def test_a_request_that_arrives_twice_runs_once(host: Host) -> None:
    tick = host.function("tick")
    first = call(host, 1, tick)
    assert call(host, 1, tick) == first
    host.silent()
    assert host.functions.calls == 1


def test_an_old_request_is_dropped(host: Host) -> None:
    """The request is not run, and the client learns the device's last sequence."""
    tick = host.function("tick")
    call(host, 1, tick)
    call(host, 2, tick)
    for sequence in range(4, 258):  # all except the last and the next
        give(host, sequence & 0xFF, tick)
        assert asks_for(host, 2)
        host.silent()
    assert host.functions.calls == 2


def test_the_sequence_goes_round(host: Host) -> None:
    tick = host.function("tick")
    for i in range(1, 601):
        call(host, i & 0xFF, tick)
    assert host.functions.calls == 600


def test_a_probe_gets_the_reply_or_learns_that_no_request_came(host: Host) -> None:
    tick = host.function("tick")
    probe(host, 1)
    assert asks_for(host, 0)
    call(host, 1, tick)
    probe(host, 1)
    host.take_numbered(1)
    probe(host, 2)
    assert asks_for(host, 1)
    assert host.functions.calls == 1


def test_a_message_whose_own_check_fails_is_asked_for_again(host: Host) -> None:
    """The frame's CRC lets it through; the message's own does not."""
    whole = payload(host, 1, CallFunc(host.function("tick"), ()))
    for broken in [whole[:-1], *[flipped(whole, at, 3) for at in range(3, len(whole))]]:
        host.give(encode_frame(broken))
        assert asks_for(host, 0)
    assert host.functions.calls == 0


def test_a_damaged_frame_is_asked_for_again(host: Host) -> None:
    tick = host.function("tick")
    call(host, 1, tick)
    host.give(flipped(encode_frame(payload(host, 2, CallFunc(tick, ()))), 20, 5))
    assert asks_for(host, 1)
    host.silent()
    assert host.functions.calls == 1


def test_after_a_frame_that_was_cut_short_nothing_is_asked(host: Host) -> None:
    """A frame is cut short by a new frame, which gets an answer: a request to resend would bring it twice."""
    tick = host.function("tick")
    call(host, 1, tick)
    frame = encode_frame(payload(host, 2, CallFunc(tick, ())))
    host.give(frame[:-5] + frame)
    host.take_numbered(2)
    host.silent()
    assert host.count("MINRPC_SHORT_PACKETS") == 1
    assert host.functions.calls == 2


def test_a_numbered_message_over_the_buffer_is_asked_for_again(host: Host) -> None:
    """The front of it, as much as the buffer holds, is a message whose check is right."""
    tick = host.function("tick")
    call(host, 1, tick)
    front = payload(host, 2, CallFunc(tick, (bytes(8148),)))
    assert len(front) == 8192
    host.give(encode_frame(front + b"\0"))
    assert asks_for(host, 1)
    host.silent()
    assert host.functions.calls == 1


@pytest.mark.parametrize("size", range(6))
def test_messages_too_short_to_be_numbered(host: Host, size: int) -> None:
    host.give(message(host.session, MessageType.NUMBERED, bytes(size)))
    assert asks_for(host, 0)
    host.give(message(host.session, MessageType.PROBE))
    assert asks_for(host, 0)
    assert host.serves()


def test_a_reply_from_the_receive_buffer_is_kept(host: Host) -> None:
    echo, info = host.function("echo"), host.find("minrpc.device_info")
    give(host, 1, info)
    kept(host, 1)
    texts: list[str | bytes] = ["a text that came as an argument", b"bytes that came as an argument", "", b""]
    for sequence, text in enumerate(texts, 2):
        give(host, sequence, echo, text)
        kept(host, sequence)


def test_a_long_reply_from_the_receive_buffer_is_kept(host: Host) -> None:
    """Sizes around the bytes that are always kept for a reply, and up to the receive buffer's size."""
    echo = host.function("echo")
    for sequence, size in enumerate([400, 500, 505, 511, 512, 513, 600, 1500, 513, 5000, 100], 1):
        text = bytes([ord("a") + sequence]) * size
        # An array lies behind the memory that is kept for the reply.
        guard = host.alloc(16)
        host.door.write(guard, b"\x77" * 16)
        give(host, sequence, echo, text)
        assert kept(host, sequence).endswith(text)
        host.blocks()
        assert host.door.read(guard, 16) == b"\x77" * 16


def test_a_call_whose_answer_could_not_be_kept_does_not_run(host: Host) -> None:
    """Memory for the answer is taken before: a request that can't be answered does not run."""
    tick = host.function("tick")
    host.alloc(host.arena.size - 1024)
    give(host, 1, tick, bytes(2000))
    assert isinstance(decode_reply(host.take_numbered(1), V8), RemoteException)
    assert host.functions.calls == 0
    # A short one does.
    call(host, 2, tick)
    assert host.functions.calls == 1


def test_with_a_full_arena_numbered_requests_are_answered(host: Host) -> None:
    echo, info = host.function("echo"), host.find("minrpc.device_info")
    call(host, 1, host.function("tick"))
    while not isinstance(host.request(alloc_data(1, I8, 1)), RemoteException):
        pass
    give(host, 2, info)
    kept(host, 2)
    give(host, 3, echo, "a text that came as an argument")
    kept(host, 3)


def test_exceptions_data_and_evaluators_results_are_kept(host: Host) -> None:
    data = host.alloc(64)
    evaluator = host.evaluator("tick", number=3, repeat=3)
    host.write(data, b"0123456789abcdef" * 4)
    used = host.arena.used
    give(host, 1, 0x7777)
    kept(host, 1)
    give(host, 2, evaluator)
    kept(host, 2)
    host.give(encode_frame(payload(host, 3, CopyFromRemote(tensor(data, 64), 64))))
    kept(host, 3)
    # The memory for answers stays, which a session takes once.
    assert host.arena.used == used + SPARE


def test_a_probe_after_a_normal_request(host: Host) -> None:
    """A normal request between two numbered requests: no data that it freed is sent again."""
    echo = host.function("echo")
    give(host, 1, echo, "numbered")
    host.take_numbered(1)
    assert host.call(echo, "normal") == "normal"
    assert host.arena.used == SPARE
    overwrite_buffer(host)
    # The reply is gone, and the client is told so.
    probe(host, 1)
    assert asks_for(host, 1)
    host.silent()
    assert host.serves()


def test_a_probe_right_after_a_session_start(host: Host) -> None:
    """There is no reply of the last session either, whose data has been freed."""
    info = host.find("minrpc.device_info")
    for sequence in range(1, 257):
        call(host, sequence & 0xFF, info)
    host.open(0x33)
    probe(host, 0)
    assert asks_for(host, 0)
    host.silent()


def test_nothing_is_sent_again_unasked(host: Host) -> None:
    """A packet without an answer, after a packet whose answer is kept."""
    call(host, 1, host.function("tick"))
    host.give(message(host.session, MessageType.NORMAL, bytes(8)))
    host.silent()
    probe(host, 1)
    assert asks_for(host, 1)


def test_a_new_session_counts_anew(host: Host) -> None:
    tick = host.function("tick")
    call(host, 1, tick)
    host.open(0x51)
    probe(host, 1)
    assert asks_for(host, 0)
    call(host, 1, tick)
    assert host.functions.calls == 2


def test_a_new_session_keeps_replies_in_memory_of_its_own(host: Host) -> None:
    """An array lies where the last session's replies were kept."""
    echo = host.function("echo")
    give(host, 1, echo, bytes(400))
    kept(host, 1)
    host.open(0x51)
    array, content = host.alloc(1000), b"\x77" * 1000
    host.door.write(array, content)
    give(host, 1, echo, bytes(400))
    kept(host, 1)
    assert host.door.read(array, 1000) == content


def test_normal_requests_get_normal_replies(host: Host) -> None:
    """TVM's clients never send a numbered message, and must never get a numbered message."""
    tick = host.function("tick")
    overwrite_buffer(host)
    host.silent()
    call(host, 1, tick)
    assert host.serves()
    overwrite_buffer(host)
    host.silent()


def test_a_probe_after_a_restart_is_told_that_the_session_has_ended(host: Host) -> None:
    """The first message of a device that has restarted may be lost. A device in another session is silent."""
    call(host, 1, host.function("tick"))
    old = message(host.session, MessageType.PROBE, b"\1")
    host.open(0x33)
    host.give(old)
    host.silent()
    host.give(message(host.session, MessageType.TERMINATE))
    host.give(old)
    assert host.take_next().kind == MessageType.TERMINATE
    host.silent()


def test_a_result_that_is_longer_than_the_memory_for_it_is_refused(host: Host) -> None:
    """Part of an answer to a question lies in the receive buffer, and may be longer than the request."""
    call(host, 1, host.function("tick"))
    reply = host.server.reply
    reply.kind = host.door.constant("MINRPC_REPLY_CALL")
    reply.wire_code = host.door.constant("kTVMBytes")
    for size, refused in ((host.server.spare_size, False), (host.server.spare_size + 1, True)):
        reply.size, reply.value.v_handle = size, host.config.receive_buffer
        host.door.call("minrpc_resend_keep", host.server)
        assert (reply.kind == host.door.constant("MINRPC_REPLY_EXCEPTION")) is refused
    assert host.serves()
