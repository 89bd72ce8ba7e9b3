# SPDX-License-Identifier: Apache-2.0
"""A UART's wire, true to the bit, with noise, bursts, lost bytes and foreign lines: each value is numpy's, or
the call is an error, and the next session works."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from minrpc import DeadlineError, Device, HarnessError, LinkError, RunningDevice, SessionError, connect
from minrpc.client import LentTransport

from tests.device.test_session import add_works
from tests.uart import Damage, Wire, levels

pytestmark = pytest.mark.slow

CALLS = 400
# The rate of damaged bytes; a byte has ten bits.
RATE = 1e-3
LINE = b"[00:00:01.234,000] <inf> app: temperature \xc2\xb021 C\r\n"
START = levels(b"\xff\xfd")


def noise(random: Random) -> Damage:
    """Inverts one bit in ten thousand: a start bit, too, so that the receiver sees other bytes."""
    return lambda wire: [level ^ (random.random() < RATE / 10) for level in wire]


def bursts(random: Random) -> Damage:
    """Now and then the levels of up to 40 bits are those of a coin."""

    def damage(wire: list[int]) -> list[int]:
        wire = list(wire)
        for at in range(len(wire)):
            if random.random() < RATE / 50:
                end = min(len(wire), at + random.randrange(2, 40))
                wire[at:end] = [random.randrange(2) for _ in range(at, end)]
        return wire

    return damage


def lost(random: Random) -> Damage:
    """Leaves out one byte in a thousand, as a receiver that was read too late."""
    return lambda wire: [
        level
        for at in range(0, len(wire), 10)
        for level in (wire[at : at + 10] if random.random() >= RATE else ())
    ]


def lines_between(random: Random) -> Damage:
    """Another program's lines before frames, in both directions."""
    return lambda wire: [*levels(LINE), *wire] if wire[:20] == START and random.random() < 0.2 else wire


def lines_inside(random: Random) -> Damage:
    """A line at any place between two bytes, as an interrupt prints it."""

    def damage(wire: list[int]) -> list[int]:
        if random.random() > 0.02:
            return wire
        at = 10 * random.randrange(len(wire) // 10)
        return [*wire[:at], *levels(LINE), *wire[at:]]

    return damage


WIRES = {kind.__name__: kind for kind in (noise, bursts, lost, lines_between, lines_inside)}


def calls(device: Device, count: int, random: np.random.Generator) -> int:
    """The number of calls that failed; the values of the others are numpy's."""
    failed = 0
    for number in range(count):
        try:
            lib = device.system_lib()
            if number % 4 == 0:
                a = random.integers(-60, 60, 16, np.int8)
                c = device.empty((16,), "int8")
                lib["add"](device.array(a), device.array(a), c)
                assert c.numpy().tolist() == (a + a).tolist()
            elif number % 4 == 1:
                x = random.random(4, np.float32)
                y = device.empty((4,), "float32")
                lib["exp"](device.array(x), y)
                np.testing.assert_allclose(y.numpy(), np.exp(x), rtol=1e-6)
            elif number % 4 == 2:
                sent = random.integers(0, 256, 100, np.uint8)
                assert device.array(sent).numpy().tolist() == sent.tolist()
            else:
                assert lib["inc"](number) == number + 1
        except (DeadlineError, LinkError, SessionError):
            failed += 1
    return failed


@pytest.mark.parametrize("kind", WIRES)
def test_a_value_is_right_or_an_error(
    running_device: RunningDevice, works: Callable[[], bool], kind: str
) -> None:
    """Requests that are sent again repair all damage; without that, some calls are errors."""
    for resend, count in ((True, CALLS), (False, CALLS // 10)):
        wire = Wire(LentTransport(running_device.transport), WIRES[kind](Random(kind)))
        device = connect(
            running_device,
            transport=wire,
            call_timeout_s=60.0 if resend else 0.1 if running_device.process else 2.0,
            session_timeout_s=60.0,
            resend=resend,
            direct=False,
        )
        failed = calls(device, count, np.random.default_rng(7))
        assert wire.damaged > 0 or not resend
        assert failed == 0 if resend else failed < count
        device.close()
        assert works()


@pytest.mark.parametrize(
    ("off", "answers"), [(0.97, True), (1.03, True), (0.9, False), (1.1, False), (2.0, False)]
)
def test_another_rate_is_an_error_until_the_rate_is_right(
    running_device: RunningDevice, works: Callable[[], bool], off: float, answers: bool
) -> None:
    """Ends of a UART may differ by some percent."""
    wire = Wire(LentTransport(running_device.transport), list, (1.0, off))
    if answers:
        with connect(running_device, transport=wire, direct=False) as device:
            assert add_works(device)
    else:
        with pytest.raises(HarnessError, match=r"^wire "):
            connect(running_device, transport=wire, session_timeout_s=0.5, direct=False).system_lib()
    assert (wire.damaged == 0) is answers
    assert works()
