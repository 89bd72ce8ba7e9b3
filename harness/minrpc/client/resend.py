# SPDX-License-Identifier: Apache-2.0
"""Numbered requests: what is lost or damaged on the way is sent again, and the device runs each request once.

The request keeps its number until its answer is there. The client asks with a short probe when nothing comes,
or when something came damaged; the device then sends the kept answer again, or says that the request never
arrived. Copies are cut small while the link damages much, because a long message would never get through.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from minrpc.wire.framing import FramingError
from minrpc.wire.session import Numbered, Resend, SessionEvent

# Seconds without a byte until the client asks; the last one repeats. They grow with each silence, and
# shrink when a whole message came, if damaged; not with single bytes: a slow device, asked at each pause of a
# long answer, would have to send it again as often.
PROBE_AFTER_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)

# Bytes of a copy's piece: at first and at least, when every hundredth byte would be damaged.
FIRST_PIECE = 1024
LEAST_PIECE = 64
# What is asked for needlessly, while the device only pauses, costs no more than this.
MOST_PIECE = 32 << 10


class Action(Enum):
    """What the client does next."""

    WAIT = "wait"
    PROBE = "probe"
    SEND = "send the request again"


@dataclass
class ResendCounters:
    """What it took.

    requests: numbered requests. sent_again: copies of them. probes: questions for an answer.
    """

    requests: int = 0
    sent_again: int = 0
    probes: int = 0


@dataclass
class NumberedRequests:
    """The client's half, without the link: events in, what to do out.

    sequence: of the last request; the device starts at 0 with each session.
    piece: bytes that a piece of a copy may have now.
    """

    sequence: int = 0
    piece: int = FIRST_PIECE
    counters: ResendCounters = field(default_factory=ResendCounters)
    _damaged: bool = False

    def begin(self) -> int:
        """A new request: its sequence."""
        self.sequence = (self.sequence + 1) & 0xFF
        self.counters.requests += 1
        self._damaged = False
        return self.sequence

    def answer(self, events: list[SessionEvent], sent: int) -> memoryview | None:
        """The answer to the last request, of `sent` bytes, when it is among `events`."""
        for event in events:
            if isinstance(event, Numbered) and event.sequence == self.sequence:
                self._learn(max(sent, len(event.body)))
                return event.body
        return None

    def react(self, events: list[SessionEvent]) -> Action:
        """What these events ask for, the answer not being among them."""
        action = Action.WAIT
        for event in events:
            if isinstance(event, FramingError):
                action = Action.PROBE
            elif isinstance(event, Resend):
                action = Action.PROBE if event.sequence == self.sequence else Action.SEND
        return self._count(action)

    def silence(self) -> Action:
        """Nothing came for a while."""
        return self._count(Action.PROBE)

    def _count(self, action: Action) -> Action:
        self._damaged |= action is not Action.WAIT
        self.counters.probes += action is Action.PROBE
        self.counters.sent_again += action is Action.SEND
        return action

    def _learn(self, size: int) -> None:
        """Twice the piece after a clean exchange, half of it after one that had to be repeated.

        size: of the longer of the two messages. A short one tells nothing of how a long one would fare.
        """
        if 2 * size >= self.piece:
            self.piece = (
                max(self.piece // 2, LEAST_PIECE) if self._damaged else min(self.piece * 2, MOST_PIECE)
            )


def run(
    requests: NumberedRequests,
    encode: Callable[[int], bytes],
    probe: Callable[[int], bytes],
    write: Callable[[bytes], None],
    read: Callable[[float], list[SessionEvent] | None],
) -> memoryview:
    """One request to its answer.

    encode, probe: the frames of the request and of the question for its answer, by sequence.
    write: sends bytes.
    read: the events of the next bytes; None when none came for so many seconds. It raises at the deadline and
        when an event means that there will be no answer.
    """
    sequence = requests.begin()
    frame = encode(sequence)
    write(frame)
    silences = 0
    while True:
        events = read(PROBE_AFTER_S[min(silences, len(PROBE_AFTER_S) - 1)])
        if events is None:
            silences += 1
            action = requests.silence()
        else:
            reply = requests.answer(events, len(frame))
            if reply is not None:
                return reply
            action = requests.react(events)
            if action is not Action.WAIT:
                silences = max(0, silences - 1)
        if action is not Action.WAIT:
            write(frame if action is Action.SEND else probe(sequence))
