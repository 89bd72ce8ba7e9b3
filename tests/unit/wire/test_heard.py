# SPDX-License-Identifier: Apache-2.0
"""The program at the far end, by its bytes."""

from __future__ import annotations

import pytest
from minrpc.wire.heard import describe

START = bytes.fromhex("ff ff fd 03 00 00 00 12 34 56 78")


@pytest.mark.parametrize(
    ("heard", "message", "step"),
    [
        (b"", "not one byte came", "check power, cable"),
        (START * 3, "the sent bytes came back", "separate TX and RX"),
        (
            b"\x1b[0m*** Booting Zephyr ***\r\nuart:~$ ",
            r"text: \x1b[0m*** Booting Zephyr ***",
            "console",
        ),
        (START + b"\r\nlogin: ", "readable text: login:", "console"),
        (
            bytes(range(128, 256)),
            "128 bytes or more at 9600 baud that are neither",
            "scan --probe /dev/ttyS0`",
        ),
        (b"", "not one byte came at 9600 baud", "scan --probe /dev/ttyS0`"),
    ],
)
def test_what_came_decides_the_message(heard: bytes, message: str, step: str) -> None:
    found = describe(heard, [START], "/dev/ttyS0", 9600)
    assert message in found.message
    assert step in found.next_step


def test_a_link_without_a_rate_has_none_in_its_message() -> None:
    assert "baud" not in str(describe(b"\x80\x81", []))
    assert "baud" not in str(describe(b"", []))


def test_framing_errors_that_a_port_has_counted_are_told() -> None:
    found = describe(b"\x80\x81", [START], "/dev/ttyS0", 9600, 2)
    assert found.message.endswith("neither text nor frames, 2 of them with a framing error")
