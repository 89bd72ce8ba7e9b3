# SPDX-License-Identifier: Apache-2.0
"""Questions of a running function: the answer is the next request.

After any other message the function goes on or ends, and the device serves the next requests."""

from __future__ import annotations

from collections.abc import Callable
from struct import pack

import pytest
from minrpc.wire.framing import encode_frame
from minrpc.wire.replies import Question, RemoteException, Return, decode_reply
from minrpc.wire.requests import Answer, CallFunc, Request, RpcCode
from minrpc.wire.session_layer import MessageType

from tests.runtime.host import F32, V8, Host, flipped, message, numbered, packet, tensor

SEVEN = ord("7")
ENDED = "the client ended the function"


@pytest.fixture
def host(host: Host) -> Host:
    """A session of this project's client, which knows a function that only this runtime has."""
    host.find("minrpc.device_info")
    return host


def sent(host: Host, request: Request | bytes) -> bytes:
    return message(host.session, MessageType.NORMAL, packet(request))


def take_question(host: Host) -> None:
    """Takes the question, which is `ask`'s, of a normal message."""
    taken = host.take_next()
    assert taken.kind == MessageType.NORMAL
    expect_question(taken.body)


def expect_question(body: bytes) -> None:
    question = decode_reply(body, V8)
    assert isinstance(question, Question)
    assert question.room >= 128
    assert bytes(question.data) == b"why?"


def answering(host: Host) -> Callable[[int], bytes]:
    """The client's answer."""

    def answers(turn: int) -> bytes:
        assert turn == 0
        take_question(host)
        return sent(host, Answer(b"7"))

    return answers


def ends(host: Host) -> bytes:
    take_question(host)
    return sent(host, Answer(b""))


def is_seven(host: Host, waiting: Callable[[int], bytes]) -> bool:
    """True if the function gets the answer. A request refused meanwhile is not the function's failure."""
    host.functions.calls = 0
    ask = host.function("ask")
    host.on_wait(waiting)
    answer = host.call(ask)
    return answer == SEVEN and host.functions.calls == 1 and host.server.error[0] == b"\0"[0]


def test_an_answer_arrives(host: Host) -> None:
    assert is_seven(host, answering(host))
    assert host.serves()


def test_an_answer_arrives_in_pieces(host: Host) -> None:
    def byte_by_byte(turn: int) -> bytes:
        if turn == 0:
            take_question(host)
        return sent(host, Answer(b"7"))[turn : turn + 1]

    assert is_seven(host, byte_by_byte)
    assert host.serves()


def largest_free(host: Host) -> int:
    return int(host.door.call("minrpc_arena_largest_free", host.arena, result="I"))


def test_the_client_ends_the_function(host: Host) -> None:
    """The function does not go on, and its workspace is freed."""
    room = largest_free(host)

    def ends_with_workspace(_turn: int) -> bytes:
        size = host.door.wide(1000)
        assert host.door.call("TVMBackendAllocWorkspace", 1, 0, *size, 0, 8, result="P")
        return ends(host)

    host.on_wait(ends_with_workspace)
    assert ENDED in host.fails(host.function("ask"))
    assert largest_free(host) == room
    assert host.functions.calls == 0
    assert host.serves()


def refused_first(host: Host, wire: Callable[[], bytes]) -> Callable[[int], bytes]:
    """The client sends other bytes, which are refused, and then the answer."""

    def waiting(turn: int) -> bytes:
        if turn == 0:
            take_question(host)
            return wire()
        assert isinstance(decode_reply(host.take_next().body, V8), RemoteException)
        return sent(host, Answer(b"7"))

    return waiting


def too_long_message(host: Host) -> bytes:
    """A packet as long as the room, in a longer message."""
    room = host.door.call("minrpc_inbox_size", host.server, result="I") - 3 - 8
    return message(host.session, MessageType.NORMAL, pack("<QI", room, RpcCode.ANSWER) + b"x" * room)


def bytes_behind_the_packet(host: Host) -> bytes:
    return message(host.session, MessageType.NORMAL, pack("<QI", 5, RpcCode.ANSWER) + b"xxx")


@pytest.mark.parametrize(
    "other",
    [
        lambda host: sent(host, CallFunc(0x80008000, ())),
        lambda host: sent(host, Answer(b"7" * 9000)),
        bytes_behind_the_packet,
        too_long_message,
    ],
    ids=["a call", "a long answer", "bytes behind it", "a long message"],
)
def test_what_is_no_answer_is_refused_meanwhile(host: Host, other: Callable[[Host], bytes]) -> None:
    assert is_seven(host, refused_first(host, lambda: other(host)))
    assert host.serves()


def test_a_start_of_no_session_has_no_answer(host: Host) -> None:
    answers = answering(host)
    start = message(0, MessageType.START_INIT, b"\1")
    assert is_seven(host, lambda turn: start + answers(turn))
    assert host.serves()


def asked(host: Host) -> int:
    """The answer's address to a question that the test asks in the program's place."""
    size = host.door.memory(4)
    question = host.door.memory(b"why?")
    return int(host.door.call("minrpc_ask", host.server, question, 4, size, result="P"))


def test_there_is_one_question_at_a_time(host: Host) -> None:
    """The call comes as in an interrupt, while a function waits."""
    answers = answering(host)
    received: list[int] = []

    def asks_again(turn: int) -> bytes:
        received.append(host.server.link_received)
        wire = answers(turn)
        assert asked(host) == 0
        host.silent()
        received.append(len(wire))
        return wire

    assert is_seven(host, asks_again)
    assert host.server.link_received == sum(received)
    assert host.serves()


def begins_a_session(host: Host) -> bytes:
    take_question(host)
    return message(0x21, MessageType.START_INIT, b"\1")


@pytest.mark.parametrize("name", ["ask", "insist"])
def test_a_new_session_ends_the_function(host: Host, name: str) -> None:
    """A function that waits for a client that has gone ends, and the new session is served.

    A caller that goes on asks nothing: its question would be of a session that has ended."""
    function = host.function(name)
    host.functions.nested = host.door.memory(b"ask\0")
    host.on_wait(lambda _turn: begins_a_session(host))
    host.send(CallFunc(function, ()))
    assert host.take_next().kind == MessageType.START_REPLY
    host.silent()
    assert host.functions.calls == 0
    host.open(0x33)
    assert host.serves()


def test_the_end_of_the_session_ends_the_function(host: Host) -> None:
    def says_goodbye(_turn: int) -> bytes:
        take_question(host)
        return message(host.session, MessageType.TERMINATE)

    ask = host.function("ask")
    host.on_wait(says_goodbye)
    host.send(CallFunc(ask, ()))
    host.silent()
    assert host.functions.calls == 0
    host.open(0x33)
    assert host.serves()


def test_a_foreign_client_is_asked_nothing(host: Host) -> None:
    """A client that never asked for a function of this runtime, such as TVM's."""
    ask = host.function("ask")
    host.server.own_client = False
    assert "the client can't answer" in host.fails(ask)
    assert host.functions.calls == 0


def test_a_port_that_can_not_wait(host: Host) -> None:
    host.platform.receive = 0
    assert "the port can't wait" in host.fails(host.function("ask"))
    assert host.serves()


def test_arguments_outlast_an_answer(host: Host) -> None:
    """The device decodes these kinds of arguments into other places than the wire's: see `ask`."""
    ask = host.function("ask")
    place = tensor(host.alloc(64), 16, dtype=F32)
    host.on_wait(answering(host))
    assert host.call(ask, 5, place, b"bytes", "a text", place) == SEVEN


def test_arguments_that_leave_no_room(host: Host) -> None:
    """The arguments of a call stay where they are."""
    ask = host.function("ask")
    host.on_wait(answering(host))
    assert "no room for an answer" in host.fails(ask, "x" * 7999)
    assert host.serves()


def test_a_function_that_is_timed_ends(host: Host) -> None:
    """The timer and the batch's counts end as in any function that fails."""
    evaluator = host.evaluator("ask")
    host.on_wait(lambda _turn: ends(host))
    assert ENDED in host.fails(evaluator)
    assert host.clock.begun == host.clock.ended
    assert host.serves()


def test_there_is_no_question_outside_a_call(host: Host) -> None:
    assert asked(host) == 0
    host.silent()
    assert is_seven(host, answering(host))
    assert asked(host) == 0
    host.silent()


def test_numbered_questions_survive_a_bad_link(host: Host) -> None:
    """All faults of a link for the question and the answer, and finally the answer."""
    call = encode_frame(numbered(host.session, 1, packet(CallFunc(host.function("ask"), ()))))
    answer = encode_frame(numbered(host.session, 2, packet(Answer(b"7"))))
    faults = [
        message(host.session, MessageType.PROBE, b"\1"),  # the question was lost: the client probes
        call,  # the request came twice
        flipped(answer, -4),  # the answer came damaged
        message(host.session + 1, MessageType.NORMAL),  # the device asks for it; now another session's
        answer + answer,  # behind it, once more
    ]

    def suffers(turn: int) -> bytes:
        if turn < 3:
            expect_question(host.take_numbered(1))
        elif turn == 3:
            assert host.take_next().kind == MessageType.RESEND
        return faults[turn]

    host.on_wait(suffers)
    host.give(call)
    # The reply, which is sent again for the answer that came twice.
    for _ in range(2):
        assert isinstance(decode_reply(host.take_numbered(2), V8), Return)
    host.silent()
    assert host.functions.calls == 1
