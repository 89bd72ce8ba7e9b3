# SPDX-License-Identifier: Apache-2.0
"""The options of devices as a command line or pytest gives them: platforms, and the fields of each target."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self, cast

from minrpc.errors import ConfigurationError
from minrpc.host.time_limits import TOTAL_TIMEOUT_S, require_seconds
from minrpc.targets.option_table import DEVICE_OPTIONS
from minrpc.targets.table import Platform
from minrpc.targets.target import Target, TargetFields

_SHOWN: Final = frozenset({"platform", "serial-port"})

# The options for a device that is not started here.
_BOARD_OPTIONS: Final = ("serial-port", "hardware-map", "wait-board", "flash", "elf", "baud")

BUILD_OPTIONS: Final = ("platform", "platforms-file", "libraries-as", "build-dir")
"""The options of commands that only build."""

START_OPTIONS: Final = tuple(
    name for name in DEVICE_OPTIONS if name not in (*_BOARD_OPTIONS, "build-dir", "total-timeout")
)
"""The options of commands that build and start devices, each for a short time."""


@dataclass(frozen=True, slots=True)
class Options:
    """The user's request.

    platforms: names in the order given; empty for every default platform that runs here.
    platforms_file: a TOML file that is merged over the table of platforms.
    given: fields of each target, as `Target.named` takes them.
    """

    platforms: tuple[str, ...] = ()
    platforms_file: Path | None = None
    given: TargetFields = field(default_factory=TargetFields)

    @property
    def total_timeout_s(self) -> float:
        """Limit of the whole command or test run, in seconds of wall time."""
        return self.given.get("total_timeout_s") or TOTAL_TIMEOUT_S

    def changed(self, *, platforms: tuple[str, ...], given: TargetFields) -> Self:
        """These options for other platforms, with the `given` fields."""
        return type(self)(platforms, self.platforms_file, cast(TargetFields, {**self.given, **given}))

    def target(self, platform: Platform) -> Target:
        """The requested target for one platform."""
        return Target.of(platform, **self.given)


def add_device_options(add: Callable[..., object], names: Collection[str] = DEVICE_OPTIONS) -> None:
    """Declare the options `names` by `add`, which has the parameters of
    `argparse.ArgumentParser.add_argument`.

    The help of a command shows the first two; `minrpc help devices` shows all.
    """
    for name in names:
        attributes = DEVICE_OPTIONS[name].argparse
        add(f"--{name}", **attributes | ({} if name in _SHOWN else {"help": argparse.SUPPRESS}))


def options_from(parsed: Mapping[str, Any]) -> Options:
    """The options from parsed arguments, by name with "_" for "-"; a missing option was not given.

    Raises ConfigurationError for options that exclude each other.
    """
    said: dict[str, Any] = {
        option.field: option.value(parsed[name.replace("-", "_")])
        for name, option in DEVICE_OPTIONS.items()
        if parsed.get(name.replace("-", "_")) is not None
    }
    given = said.pop("platforms", [])
    names = split_names(given)
    if given and not names:
        raise ConfigurationError("--platform is empty", next_step="name a platform, or leave it out")
    options = Options(names, said.pop("platforms_file", None), cast(TargetFields, said))
    _check(options)
    return options


def split_names(values: list[str]) -> tuple[str, ...]:
    """`["a,b", "c"]` as `("a", "b", "c")`, each name once."""
    names = (name.strip() for value in values for name in value.split(","))
    return tuple(dict.fromkeys(name for name in names if name))


def check_seconds(option: str, seconds: object) -> None:
    """Raise ConfigurationError unless this value of an option is a time above 0 that a thread can wait."""
    try:
        require_seconds(option, seconds)
    except ValueError as error:
        raise ConfigurationError(str(error), next_step="leave it out") from error


def _check(options: Options) -> None:
    given = options.given
    elf = given.get("elf")
    if elf is not None and not Path(elf).is_file():
        raise ConfigurationError(f"--elf: there is no file {elf}", next_step="correct the path")
    for name, option in DEVICE_OPTIONS.items():
        if option.type is float:
            check_seconds(f"--{name}", given.get(option.field, 1.0))
    mapped, at_port = given.get("hardware_map") is not None, given.get("serial_port") is not None
    if not mapped and not at_port:
        return
    timing, flashes = given.get("timing"), given.get("flash", "never") != "never"
    has_build = given.get("build_dir") is not None
    way = "--hardware-map" if mapped else "--serial-port"
    clashes = {
        "--serial-port and --hardware-map both choose a board": mapped and at_port,
        f"--timing {timing} is not available over {way}": timing not in (None, "board"),
        "--elf and --build-dir both name the program that runs there": elf is not None and has_build,
        "--elf names the program that runs there, and --flash replaces it": elf is not None and flashes,
    }
    for message, clash in clashes.items():
        if clash:
            raise ConfigurationError(message, next_step="leave one of the two options out")
    if given.get("baud") is not None and has_build:
        message = "--baud has no effect with --build-dir: the build's devicetree has the rate"
        raise ConfigurationError(message, next_step="leave --baud out")
    if mapped:
        if given.get("baud") is not None:
            message = "--baud is for --serial-port: a hardware map has each board's rate"
            raise ConfigurationError(message, next_step="write baud: N into the board's entry")
        return
    if len(options.platforms) > 1:
        raise ConfigurationError("--serial-port leads to one device", next_step="name one platform, or none")
