# SPDX-License-Identifier: Apache-2.0
"""Wait states of flash, by hand: waits of straight code and of jumps, and refusals."""

from __future__ import annotations

import pytest
from minrpc import ConfigurationError, open_device
from minrpc.cycles.instructions import Instruction, decode
from minrpc.cycles.wait_states import Flash

# Ten times adds r2, #1; a line of 64 bits has four.
CODE = decode(bytes.fromhex("0132") * 10, 0x1000, "thumb")


def waits(flash: Flash, took: int) -> list[int]:
    return list(flash.crossings(CODE, [took] * len(CODE)))


def at(address: int) -> Instruction:
    return CODE[0]._replace(start=address)


@pytest.mark.parametrize(
    ("states", "width", "took", "due"),
    [
        (2, 64, 1, {}),  # A line takes four cycles; the next line is read after three.
        (5, 64, 1, {4: 2, 8: 2}),
        (5, 64, 2, {}),
        (5, 128, 1, {}),
        (1, 32, 1, {}),
        (2, 32, 1, {2: 1, 4: 1, 6: 1, 8: 1}),
    ],
)
def test_straight_code_waits_for_what_the_line_before_does_not_hide(
    states: int, width: int, took: int, due: dict[int, int]
) -> None:
    assert waits(Flash(states, width), took) == [due.get(number, 0) for number in range(len(CODE))]


@pytest.mark.parametrize(
    ("to", "due"),
    [
        (0x1002, (0, 3)),  # A jump within the line waits for nothing, and the line's time goes on.
        (0x1008, (6 - 3, 0)),  # The next line has been read for three cycles.
        (0x1010, (5, 0)),
        (0x0FF8, (5, 0)),
    ],
)
def test_a_jump_waits_for_a_line_that_is_not_there(to: int, due: tuple[int, int]) -> None:
    assert Flash(5, 64).arrival(at(0x1000), 3, at(to)) == due


def test_an_instruction_across_two_lines_is_in_the_second() -> None:
    wide = decode(bytes.fromhex("0132013201320af10102"), 0x1000, "thumb")
    assert Flash(5, 64).head(wide) == 3


@pytest.mark.parametrize(("states", "width"), [(-1, 64), (256, 64), (1, 8), (1, 48)])
def test_flash_that_there_is_not_is_refused(states: int, width: int) -> None:
    with pytest.raises(ConfigurationError, match="flash"):
        Flash(states, width)


def test_wrong_flash_is_refused_where_a_device_starts() -> None:
    with (
        pytest.raises(ConfigurationError, match="0 to 255 wait states, not -1"),
        open_device("posix", flash_wait_states=-1),
    ):
        pass


def test_the_words_of_an_estimate_name_the_flash() -> None:
    assert Flash().about == "without wait states"
    assert Flash(1, 32).about.startswith("1 wait state of flash")
    assert Flash(5, 128).about.startswith("5 wait states of flash that is read 128 bits at once")
