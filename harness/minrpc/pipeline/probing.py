# SPDX-License-Identifier: Apache-2.0
"""Finds the baud rate at which a board answers."""

from __future__ import annotations

from typing import Final, NamedTuple

from minrpc.client import DeviceInfo
from minrpc.errors import NothingHeardError, SessionError
from minrpc.pipeline.opening import open_device
from minrpc.targets import Target

RATES: Final = (115200, 9600, 57600, 38400, 19200, 230400, 460800, 921600, 1_000_000)
"""Baud rates that boards' devicetrees have, the most usual first."""

# Opening a port resets some boards, which then boot.
_ANSWER_S: Final = 2.0


class Answer(NamedTuple):
    """baud: the rate at which the board has answered."""

    baud: int
    info: DeviceInfo


def probe(link: str, first: int | None = None) -> Answer | None:
    """The board's answer at the rate `first`, else at one of RATES; None if no rate has one.

    Takes up to 2 s a rate. Raises HarnessError for a port that can't be opened or is in use.
    """
    for baud in dict.fromkeys((first or RATES[0], *RATES)):
        target = Target.named(serial_port=link, baud=baud, session_timeout_s=_ANSWER_S)
        try:
            with open_device(target) as device:
                return Answer(baud, device.info())
        except (NothingHeardError, SessionError):
            continue
    return None
