# SPDX-License-Identifier: Apache-2.0
"""The plugin's options: declared for pytest, and read from it once, as one typed object."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, get_args

import pytest

from harness.platforms import Link, Timing

TOTAL_S: Final = 1200.0


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for.

    platforms: names in the order given; empty for every default platform that runs here.
    serial_port: attach to this port instead of starting anything.
    baud: bits per second of the serial port; None for the platform's own.
    platforms_file: a TOML file that is merged over the table of platforms.
    timing: None for what fits the platform, "exact" under QEMU.
    total_s: limit of the whole run, seconds of wall time.
    """

    platforms: tuple[str, ...] = ()
    serial_port: str | None = None
    baud: int | None = None
    platforms_file: Path | None = None
    timing: Timing | None = None
    link: Link = "pty"
    total_s: float = TOTAL_S


def add_options(parser: pytest.Parser) -> None:
    """Declare them."""
    group = parser.getgroup("minrpc", "devices to test (minrpc)")
    group.addoption(
        "--platform",
        action="append",
        default=[],
        metavar="NAME[,NAME...]",
        help="platforms to test; by default all default platforms that can run here (see `minrpc platforms`)",
    )
    group.addoption("--serial-port", metavar="PATH", help="test the device that already runs at this port")
    group.addoption("--baud", type=int, metavar="N", help="bits per second of the serial port")
    group.addoption("--platforms-file", type=Path, metavar="FILE", help="TOML file with more platforms")
    group.addoption(
        "--timing",
        choices=get_args(Timing),
        help="clock that the device's times follow: exact (instructions counted, the default under QEMU), "
        "wall (the host's time), board",
    )
    group.addoption(
        "--link", choices=get_args(Link), default="pty", help="what carries RPC to a device started here"
    )
    group.addoption(
        "--total-timeout",
        type=float,
        default=TOTAL_S,
        metavar="SECONDS",
        help="limit for all that the run waits for devices (default %(default)g)",
    )


def read_options(config: pytest.Config) -> Options:
    """As given. Raises pytest.UsageError for what makes no sense together."""
    options = Options(
        platforms=split_names(config.getoption("--platform")),
        serial_port=config.getoption("--serial-port"),
        baud=config.getoption("--baud"),
        platforms_file=config.getoption("--platforms-file"),
        timing=config.getoption("--timing"),
        link=config.getoption("--link"),
        total_s=config.getoption("--total-timeout"),
    )
    _check(options)
    return options


def split_names(values: list[str]) -> tuple[str, ...]:
    """`["a,b", "c"]` as `("a", "b", "c")`, each name once."""
    names = (name.strip() for value in values for name in value.split(","))
    return tuple(dict.fromkeys(name for name in names if name))


def _check(options: Options) -> None:
    if options.serial_port is None:
        if options.baud is not None:
            raise pytest.UsageError("--baud is for a serial port: name it with --serial-port")
        if options.timing == "board":
            raise pytest.UsageError("--timing board is for a board: name its port with --serial-port")
    else:
        if len(options.platforms) > 1:
            raise pytest.UsageError("--serial-port leads to one device: name one platform, or none")
        if options.timing not in (None, "board"):
            raise pytest.UsageError(f"--timing {options.timing} can't be had over --serial-port")
    if options.total_s <= 0:
        raise pytest.UsageError("--total-timeout must be more than 0 seconds")
