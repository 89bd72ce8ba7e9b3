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


def describe(heard: bytes, sent: Sequence[bytes], baud: int | None = None) -> Heard:
    """Distinguishes no bytes, the sent bytes themselves, readable text and other bytes.

    sent: the starts of sessions that were sent. baud: the rate that was used; None for a link without a rate.
    """
    if not heard:
        return Heard(
            "not one byte came",
            "check power, cable, that the firmware is flashed and for this board, and which UART carries RPC",
        )
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
    rate = f" at {baud} baud" if baud else ""
    return Heard(
        f"bytes came, but no answer to the start of a session: {len(others)} bytes or more{rate} that are "
        "neither text nor frames",
        "reset the device; check that nothing else talks to it and that --baud is the UART's current-speed",
    )


def _first_line(data: bytes) -> str:
    lines = [line.strip() for line in data.decode("ascii", "backslashreplace").splitlines()]
    line = next((line for line in lines if line), "")
    return visible(line[:_SHOWN])
