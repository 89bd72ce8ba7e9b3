# SPDX-License-Identifier: Apache-2.0
"""Numbered requests without a link: a script gives the received bytes, the test sees the sent bytes."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import pytest
from minrpc import DeadlineError
from minrpc.client.resend import (
    FIRST_PIECE,
    LEAST_PIECE,
    MOST_PIECE,
    PROBE_AFTER_S,
    NumberedRequests,
    run,
)
from minrpc.wire.framing import CrcMismatch, InvalidEscape, Noise, OversizeFrame, ShortPacket
from minrpc.wire.session_layer import Log, Numbered, Resend, SessionEvent

DAMAGED = CrcMismatch(b"", 1, 2)
Step = list[SessionEvent] | None


def answer(sequence: int, body: bytes = b"ok") -> Numbered:
    return Numbered(sequence, memoryview(body))


@dataclass
class Link:
    """A link that plays the steps in order; None is a silence. sent: "request N" and "probe N". waits: in
    seconds."""

    steps: deque[Step]
    sent: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    def read(self, wait_s: float) -> Step:
        self.waits.append(wait_s)
        if not self.steps:
            raise DeadlineError("the time is up")
        return self.steps.popleft()

    def run(self, requests: NumberedRequests) -> bytes:
        def write(frame: bytes) -> None:
            self.sent.append(frame.decode())

        encode, probe = ((lambda n, word=word: f"{word} {n}".encode()) for word in ("request", "probe"))
        return bytes(run(requests, encode, probe, write, self.read))


def test_silences_are_asked_about_after_longer_and_longer_waits() -> None:
    link = Link(deque([None] * 9 + [[answer(1)]]))
    link.run(NumberedRequests())
    assert link.sent == ["request 1"] + ["probe 1"] * 9
    assert link.waits == [0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 4.0, 4.0, 4.0]


@pytest.mark.parametrize(
    ("steps", "sent"),
    [
        ([[answer(1)]], ["request 1"]),
        ([None, [answer(1)]], ["request 1", "probe 1"]),
        # A request that never arrived is sent again, and one that arrived is not.
        ([None, [Resend(0)], [answer(1)]], ["request 1", "probe 1", "request 1"]),
        ([[Resend(1)], [answer(1)]], ["request 1", "probe 1"]),
        *(
            ([[event], [answer(1)]], ["request 1", "probe 1"])
            for event in (DAMAGED, ShortPacket(b""), InvalidEscape(b"", 7), OversizeFrame(1 << 30))
        ),
        # Several events at once get one reaction.
        ([[DAMAGED, DAMAGED, Resend(0)], [answer(1)]], ["request 1", "request 1"]),
        # Logs, noise and answers to earlier requests are waited over; an answer among damage is taken.
        ([[Log("hot"), Noise(b"x"), answer(0, b"old")], [answer(1)]], ["request 1"]),
        ([[DAMAGED, answer(1), Resend(0)]], ["request 1"]),
    ],
)
def test_what_is_sent_until_the_first_answer_is_there(steps: list[Step], sent: list[str]) -> None:
    link = Link(deque(steps))
    assert link.run(NumberedRequests()) == b"ok"
    assert link.sent == sent


def test_waits_grow_with_each_silence_until_the_answer_is_there() -> None:
    """Single bytes in between change nothing: otherwise a device that sends in bursts would be probed after
    each burst, and would send the whole answer again for each probe.
    """
    link = Link(deque([None, [], None, [Noise(b"x")], *[None] * len(PROBE_AFTER_S), [answer(1)]]))
    requests = NumberedRequests()
    link.run(requests)
    longest = PROBE_AFTER_S[-1]
    assert link.waits[:5] == [PROBE_AFTER_S[0], PROBE_AFTER_S[1], PROBE_AFTER_S[1], *[PROBE_AFTER_S[2]] * 2]
    assert link.waits[-3:] == [longest] * 3
    link = Link(deque([[answer(2)]]))
    link.run(requests)
    assert link.waits == [PROBE_AFTER_S[0]]


def test_a_device_that_is_heard_is_asked_sooner_again() -> None:
    link = Link(deque([None, None, [DAMAGED], [Resend(0)], None, [answer(1)]]))
    link.run(NumberedRequests())
    assert link.waits == [PROBE_AFTER_S[step] for step in (0, 1, 2, 1, 0, 1)]


def test_damage_before_any_silence_leaves_the_shortest_wait() -> None:
    link = Link(deque([[DAMAGED], [DAMAGED], None, [answer(1)]]))
    link.run(NumberedRequests())
    assert link.waits == [PROBE_AFTER_S[step] for step in (0, 0, 0, 1)]


def test_the_deadline_ends_it() -> None:
    with pytest.raises(DeadlineError):
        Link(deque([None, None])).run(NumberedRequests())


def test_the_sequence_wraps() -> None:
    requests = NumberedRequests(sequence=254)
    for sequence in (255, 0, 1):
        link = Link(deque([[answer(sequence)]]))
        link.run(requests)
        assert link.sent == [f"request {sequence}"]


def test_the_answer_to_the_request_before_is_not_taken() -> None:
    requests = NumberedRequests()
    Link(deque([[answer(1)]])).run(requests)
    assert Link(deque([[answer(1, b"again")], [answer(2)]])).run(requests) == b"ok"


def copy(number: int, piece: int) -> Numbered:
    """An answer with a piece of a copy."""
    return answer(number, bytes(piece))


def test_pieces_double_when_clean_and_halve_when_damaged() -> None:
    requests = NumberedRequests()
    Link(deque([[copy(1, FIRST_PIECE)]])).run(requests)
    assert requests.piece == 2 * FIRST_PIECE
    Link(deque([None, [copy(2, 2 * FIRST_PIECE)]])).run(requests)
    assert requests.piece == FIRST_PIECE


@pytest.mark.parametrize(("size", "piece"), [(512, 2 * FIRST_PIECE), (511, FIRST_PIECE)])
def test_half_a_piece_is_long_enough_to_tell(size: int, piece: int) -> None:
    requests = NumberedRequests()
    Link(deque([[copy(1, size)]])).run(requests)
    assert requests.piece == piece


@pytest.mark.parametrize("damage", [[None], [[Resend(0)]], [[DAMAGED]], [None, []], [[Resend(0)], []]])
def test_any_repetition_is_damage_until_the_next_request(damage: list[Step]) -> None:
    """This holds also if the bytes between the repetition and the answer need no reaction."""
    requests = NumberedRequests()
    Link(deque([*damage, [copy(1, FIRST_PIECE)]])).run(requests)
    assert requests.piece == FIRST_PIECE // 2
    Link(deque([[copy(2, FIRST_PIECE)]])).run(requests)
    assert requests.piece == FIRST_PIECE


@pytest.mark.parametrize("clean", [True, False])
def test_short_messages_tell_nothing_of_long_ones(clean: bool) -> None:
    requests = NumberedRequests()
    for number in range(1, 11):
        Link(deque([[answer(number)]] if clean else [None, [answer(number)]])).run(requests)
    assert requests.piece == FIRST_PIECE


@pytest.mark.parametrize(("clean", "limit"), [(True, MOST_PIECE), (False, LEAST_PIECE)])
def test_pieces_have_limits(clean: bool, limit: int) -> None:
    requests = NumberedRequests()
    for number in range(1, 31):
        whole: list[SessionEvent] = [copy(number, requests.piece)]
        steps: list[Step] = [whole] if clean else [None, whole]
        Link(deque(steps)).run(requests)
    assert requests.piece == limit


def test_what_it_took_is_counted() -> None:
    requests = NumberedRequests()
    Link(deque([None, [Resend(0)], [DAMAGED], [answer(1)]])).run(requests)
    counters = requests.counters
    assert (counters.requests, counters.sent_again, counters.probes) == (1, 1, 2)
