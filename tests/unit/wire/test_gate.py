# SPDX-License-Identifier: Apache-2.0
"""The device's bytes that a client may read, for any division into reads."""

from hypothesis import given, strategies as st
from minrpc.wire.framing import RESYNC, encode_frame
from minrpc.wire.gate import SessionGate
from minrpc.wire.session_layer import MessageType, encode_message

Cuts = st.lists(st.integers(1, 40), max_size=30)


def message(session_id: int, kind: MessageType, body: bytes = b"") -> bytes:
    return encode_frame(encode_message(session_id, kind, body))


def init(nonce: int) -> bytes:
    return message(nonce, MessageType.START_INIT, b"\x01")


def reply(session_id: int) -> bytes:
    return message(session_id, MessageType.START_REPLY, b"\x01")


def passed(gate: SessionGate, data: bytes, cuts: list[int]) -> bytes:
    """The part of the device's `data` that passes, given in pieces of these sizes and the rest."""
    parts = []
    for size in cuts:
        parts.append(gate.from_device(data[:size]))
        data = data[size:]
    return b"".join([*parts, gate.from_device(data)])


TERMINATE = message(0, MessageType.TERMINATE)
LATE = message(0x1007, MessageType.NORMAL, b"\xff\xfd of the first \xff")


@given(Cuts, st.binary(max_size=60))
def test_all_passes_from_the_answer_to_the_own_start_on(cuts: list[int], rest: bytes) -> None:
    gate = SessionGate()
    gate.new_client()
    gate.from_client(init(7))
    assert gate.from_device(reply(0x1007)) == reply(0x1007)
    gate.new_client()
    gate.from_client(message(0, MessageType.TERMINATE) + init(9))
    before = b"text" + LATE[5:] + LATE + RESYNC + TERMINATE + LATE[:11]
    assert passed(gate, before + reply(0x2009) + rest, cuts) == TERMINATE + reply(0x2009) + rest
    assert gate.from_device(LATE) == LATE


@given(Cuts)
def test_logs_of_no_session_pass_and_those_of_another_do_not(cuts: list[int]) -> None:
    gate = SessionGate()
    gate.new_client()
    log = message(0, MessageType.LOG, b"boot")
    said = log + message(0x1007, MessageType.LOG, b"late") + message(0, MessageType.NORMAL, b"odd") + log
    assert passed(gate, said, cuts) == log + log


def test_the_answer_to_the_start_of_another_with_the_same_nonce() -> None:
    """TVM's oldest clients always use the same nonces: the order decides then."""
    gate = SessionGate()
    for _ in range(2):
        gate.new_client()
        gate.from_client(init(0x5C))
    assert gate.from_device(reply(0x105C)) == b""
    assert gate.from_device(reply(0x205C)) == reply(0x205C)


def test_a_start_that_got_no_answer_is_passed_over() -> None:
    gate = SessionGate()
    gate.new_client()
    for nonce in (1, 2, 3):
        gate.from_client(init(nonce))
    gate.new_client()
    gate.from_client(init(4) + init(5))
    assert gate.from_device(reply(0x1002)) == b""
    assert gate.from_device(reply(0x1005)) == reply(0x1005)


def test_a_client_may_start_anew() -> None:
    """The gate does not withhold answers to the client's own earlier session, as on a wire."""
    gate = SessionGate()
    gate.new_client()
    gate.from_client(init(7))
    gate.from_device(reply(0x1007))
    gate.from_client(init(8))
    assert gate.from_device(LATE + reply(0x1008) + b"x") == LATE + reply(0x1008) + b"x"
    gate.new_client()
    gate.from_client(init(8))
    assert gate.from_device(LATE + reply(0x3008)) == reply(0x3008)


def test_what_is_no_message_opens_nothing() -> None:
    gate = SessionGate()
    gate.new_client()
    gate.from_client(encode_frame(b"\x07\x00") + b"\x07\x00\x00" + init(7)[:-1] + b"?")
    assert gate.from_device(reply(0x1007) + encode_frame(b"\x07") + encode_frame(b"")) == b""


def test_starts_that_nobody_answers_take_no_memory() -> None:
    gate = SessionGate()
    gate.new_client()
    for number in range(1000):
        gate.from_client(init(number % 255 + 1))
    assert gate.from_device(reply(0x10FF)) == reply(0x10FF)


def test_the_first_client_gets_nothing_either_before_its_start() -> None:
    gate = SessionGate()
    assert gate.from_device(LATE + TERMINATE) == TERMINATE
    gate.from_client(init(7))
    assert gate.from_device(LATE + reply(0x1007)) == reply(0x1007)


def test_what_is_kept_of_starts_is_bounded() -> None:
    """The oldest of 257 starts is forgotten, with its answer."""
    gate = SessionGate()
    for number in range(257):
        gate.from_client(init(1 if number == 0 else 2))
    assert gate.from_device(reply(0x1001)) == b""
    assert gate.from_device(reply(0x1002)) == reply(0x1002)


def test_a_start_without_a_body_is_one() -> None:
    """The device ignores the version."""
    gate = SessionGate()
    gate.from_client(message(7, MessageType.START_INIT))
    assert gate.from_device(reply(0x1007)) == reply(0x1007)
