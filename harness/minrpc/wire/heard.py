# SPDX-License-Identifier: Apache-2.0
"""Recognizes the program at the far end of a link by the bytes that it sent instead of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from minrpc.errors import visible

_READABLE: Final = 0.9
_SHOWN: Final = 60
_CONTROLS_OF_TEXT: Final = frozenset(b"\t\n\r\x1b\x08")


class Heard(NamedTuple):
    """A description of the bytes, for a message, and the next step."""

    message: str
    next_step: str


def describe(
    heard: bytes, sent: Sequence[bytes], port: str = "", baud: int = 0, framing_errors: int = 0
) -> Heard:
    """Distinguishes no bytes, the sent bytes themselves, readable text and other bytes.

    sent: the starts of sessions that were sent. port, baud: the serial port and its rate; "" and 0 for other
    links.
    framing_errors: bytes that the port received without a stop bit, as far as it counts them.
    """
    rate = f" at {baud} baud" if baud else ""
    probe = f": `minrpc board scan --probe {port}` looks for it" if baud else ""
    if not heard:
        step = (
            "check power, cable, that the firmware is flashed and for this board, and which UART carries RPC"
        )
        return Heard(f"not one byte came{rate}", f"{step}, and its baud rate{probe}" if baud else step)
    others = heard
    for start in sent:
        others = others.replace(start, b"")
    if not others.strip():
        return Heard(
            "the sent bytes came back, and no answer",
            "separate TX and RX of the UART, or switch off the echo of the program behind the link",
        )
    plain = sum(32 <= byte < 127 or byte in _CONTROLS_OF_TEXT for byte in others)
    if plain >= _READABLE * len(others):
        line = _first_line(others)
        return Heard(
            f"bytes came, but no answer to the start of a session: readable text: {line}",
            "flash the firmware with MinRPC, or name the port that carries RPC: this one is a console's",
        )
    framing = f", {framing_errors} of them with a framing error" if framing_errors else ""
    step = "reset the device; check that nothing else talks to it"
    return Heard(
        f"bytes came, but no answer to the start of a session: {len(others)} bytes or more{rate} that are "
        f"neither text nor frames{framing}",
        f"check that --baud is the UART's current-speed{probe}; {step}" if baud else step,
    )


def _first_line(data: bytes) -> str:
    lines = [line.strip() for line in data.decode("ascii", "backslashreplace").splitlines()]
    line = next((line for line in lines if line), "")
    return visible(line[:_SHOWN])
