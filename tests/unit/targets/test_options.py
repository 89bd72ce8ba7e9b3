# SPDX-License-Identifier: Apache-2.0
"""The options that say which devices are meant."""

import argparse

import pytest
from minrpc.errors import ConfigurationError
from minrpc.targets.options import Options, add_device_options, options_from, split_names


def parse(*argv: str) -> Options:
    """As a command line gives them."""
    parser = argparse.ArgumentParser()
    add_device_options(parser.add_argument)
    return options_from(vars(parser.parse_args(argv)))


def test_nothing_given() -> None:
    assert parse() == Options()


def test_platforms_by_comma_and_by_repetition() -> None:
    assert parse("--platform", "a, b", "--platform=c,a").platforms == ("a", "b", "c")


def test_empty_names_are_none() -> None:
    assert split_names([" ,,", ""]) == ()


@pytest.mark.parametrize(("argv", "resend"), [([], None), (["--resend=on"], True), (["--resend=off"], False)])
def test_resend(argv: list[str], resend: bool | None) -> None:
    assert parse(*argv).resend is resend


def test_a_port_with_its_rate() -> None:
    options = parse("--serial-port", "/dev/ttyACM0", "--baud", "9600", "--platform", "my_board")
    assert (options.serial_port, options.baud, options.platforms) == ("/dev/ttyACM0", 9600, ("my_board",))


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["--baud", "9600"], "--baud is for a serial port"),
        (["--timing", "board"], "--timing board is for a board"),
        (["--elf", __file__], "says which program runs at a serial port: it is not started"),
        (["--serial-port", "p", "--platform", "a,b"], "leads to one device"),
        (["--serial-port", "p", "--timing", "exact"], "--timing exact can't be had"),
        (["--total-timeout", "0"], "more than 0 seconds"),
    ],
)
def test_what_does_not_fit_together(argv: list[str], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        parse(*argv)
