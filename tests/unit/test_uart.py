# SPDX-License-Identifier: Apache-2.0
"""The wire of the virtual boards, against hand-drawn frames."""

from __future__ import annotations

import pytest

from tests.uart import Received, carried, levels, receive

EVERY = bytes(range(256))


def test_a_frame_is_drawn_as_data_sheets_draw_it() -> None:
    assert levels(b"A") == [0, 1, 0, 0, 0, 0, 0, 1, 0, 1]


@pytest.mark.parametrize("off", [0.96, 0.98, 1.0, 1.02, 1.04])
def test_rates_may_differ_by_some_percent(off: float) -> None:
    """A receiver that looks at the middle of ten bits allows 5 percent."""
    assert carried(EVERY, 9600, 9600 * off) == EVERY


@pytest.mark.parametrize("off", [0.93, 1.07])
def test_rates_may_not_differ_by_more(off: float) -> None:
    assert carried(EVERY, 9600, 9600 * off) != EVERY


def test_half_and_double_rates() -> None:
    """0x55 is 0101010101 on the wire, which has each level twice at the double rate."""
    fast = list(receive(levels(b"\x55"), 9600, 19200))
    assert fast[0] == Received(0b01100110, framed=False)
    assert list(receive(levels(b"\x00"), 9600, 4800)) == [Received(0b11111000, framed=True)]
