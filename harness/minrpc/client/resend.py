# SPDX-License-Identifier: Apache-2.0
"""Numbered requests: lost or damaged messages are sent again, and the device runs each request once.

The request keeps its number until its answer is there. The client sends a short probe when nothing comes,
or a damaged frame; the device then sends the kept answer again, or reports that the request never arrived.
Copies are cut into small pieces while the link damages much, because long messages would never arrive
undamaged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from minrpc.wire.framing import FramingError
from minrpc.wire.session_layer import Numbered, Resend, SessionEvent

# Seconds without a byte until the client sends a probe; the last value repeats. They grow with each silence,
# and shrink when a whole message came, even damaged. Single bytes don't shrink them: a slow device, probed at
# each pause of a long answer, would send it again each time.
PROBE_AFTER_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)

# Bytes of a copy's piece: at first, and at least, which is for a link that damages one byte in a hundred.
FIRST_PIECE = 1024
LEAST_PIECE = 64
# Limits the cost of needless probes while the device only pauses.
MOST_PIECE = 32 << 10


class Action(Enum):
    """The client's next step."""

    WAIT = "wait"
    PROBE = "probe"
    SEND = "send the request again"


@dataclass
class ResendCounters:
    """Counts of the traffic of numbered requests.

    requests: numbered requests. sent_again: copies of them. probes: questions for an answer.
    """

    requests: int = 0
    sent_again: int = 0
    probes: int = 0


@dataclass
class NumberedRequests:
    """The client's half of the protocol, without I/O: takes events, returns actions.

    sequence: number of the last request; the device starts at 0 with each session.
    piece: bytes that a piece of a copy may have now.
    """

    sequence: int = 0
    piece: int = FIRST_PIECE
    counters: ResendCounters = field(default_factory=ResendCounters)
    _damaged: bool = False

    def begin(self) -> int:
        """Begins a request; returns its sequence number."""
        self.sequence = (self.sequence + 1) & 0xFF
        self.counters.requests += 1
        self._damaged = False
        return self.sequence

    def answer(self, events: list[SessionEvent], sent: int) -> memoryview | None:
        """The answer to the last request, of `sent` bytes, if it is among `events`."""
        for event in events:
            if isinstance(event, Numbered) and event.sequence == self.sequence:
                self._learn(max(sent, len(event.body)))
                return event.body
        return None

    def react(self, events: list[SessionEvent]) -> Action:
        """The action for `events` that do not contain the answer."""
        action = Action.WAIT
        for event in events:
            if isinstance(event, FramingError):
                action = Action.PROBE
            elif isinstance(event, Resend):
                action = Action.PROBE if event.sequence == self.sequence else Action.SEND
        return self._count(action)

    def silence(self) -> Action:
        """The action after a silence."""
        return self._count(Action.PROBE)

    def _count(self, action: Action) -> Action:
        self._damaged |= action is not Action.WAIT
        self.counters.probes += action is Action.PROBE
        self.counters.sent_again += action is Action.SEND
        return action

    def _learn(self, size: int) -> None:
        """Doubles `piece` after a clean exchange, halves it after a repeated exchange.

        size: of the longer of the two messages. A short message shows nothing about the loss of long
            messages.
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
    """Sends a request and returns its answer.

    encode, probe: the frames of the request and of the question for its answer, by sequence.
    write: sends bytes.
    read: the events of the next bytes; None when no byte came for the given seconds. Raises at the deadline
        and when an event means that there will be no answer.
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
