# SPDX-License-Identifier: Apache-2.0
"""The options that say which devices are meant: one list, for the command line and for pytest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from minrpc.errors import ConfigurationError
from minrpc.targets.option_table import CALL_S, DEVICE_OPTIONS, SESSION_S, TOTAL_S
from minrpc.targets.table import Platform
from minrpc.targets.target import Link, Target, Timing, elf_without_port


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for.

    platforms: names in the order given; empty for every default platform that runs here.
    serial_port: attach to this port instead of starting anything.
    build_dir: a finished build of Zephyr's, used as it is.
    elf: the program that runs at the serial port.
    flash_arguments: with both: how the board is flashed, as `west flash` takes it.
    flash_command: with both: what flashes it in place of that, as in minrpc.toml.
    baud: bits per second of the serial port; None for the platform's own.
    platforms_file: a TOML file that is merged over the table of platforms.
    libraries: "linked" or "loaded" for all that are named; None for what each says.
    timing: None for what fits the platform, "exact" under QEMU.
    total_s: limit of the whole run, seconds of wall time.
    session_s, call_s: seconds for a session to come about, and for each call.
    resend: send again what the link loses; None for serial ports only.
    direct: share an emulator's memory with it where that can be had.
    """

    platforms: tuple[str, ...] = ()
    serial_port: str | None = None
    build_dir: Path | None = None
    elf: Path | None = None
    flash_arguments: tuple[str, ...] = ()
    flash_command: str = ""
    baud: int | None = None
    platforms_file: Path | None = None
    libraries: Literal["linked", "loaded"] | None = None
    timing: Timing | None = None
    link: Link = "pty"
    total_s: float = TOTAL_S
    session_s: float = SESSION_S
    call_s: float = CALL_S
    resend: bool | None = None
    direct: bool = True

    def target(self, platform: Platform) -> Target:
        """What is asked for of one platform."""
        if self.libraries is not None:
            linked = self.libraries == "linked"
            named = tuple(one._replace(linked=linked) for one in platform.named_libraries)
            platform = replace(platform, named_libraries=named)
        target = Target(
            platform,
            serial_port=self.serial_port,
            build_dir=self.build_dir,
            elf=self.elf,
            flash_arguments=self.flash_arguments,
            link=self.link,
            timing=self.timing,
            resend=self.resend,
            direct=self.direct,
            session_timeout_s=self.session_s,
            call_timeout_s=self.call_s,
        )
        if self.flash_command:
            target = target.changed(flash_command=self.flash_command)
        return target if self.baud is None else target.changed(baud=self.baud)


def add_device_options(add: Callable[..., object]) -> None:
    """Declare them by `add`, which is `argparse.ArgumentParser.add_argument` or does the same."""
    for name, attributes in DEVICE_OPTIONS.items():
        add(f"--{name}", **attributes)


def options_from(given: Mapping[str, Any]) -> Options:
    """From the parsed options, by name. Raises ConfigurationError where they don't fit together."""
    options = Options(
        platforms=split_names(given["platform"]),
        serial_port=given["serial_port"],
        build_dir=given["build_dir"],
        elf=given["elf"],
        baud=given["baud"],
        platforms_file=given["platforms_file"],
        libraries=given["libraries"],
        timing=given["timing"],
        link=given["link"],
        total_s=given["total_timeout"],
        session_s=given["session_timeout"],
        call_s=given["call_timeout"],
        resend=None if given["resend"] is None else given["resend"] == "on",
        direct=given["direct"] == "on",
    )
    _check(options)
    return options


def split_names(values: list[str]) -> tuple[str, ...]:
    """`["a,b", "c"]` as `("a", "b", "c")`, each name once."""
    names = (name.strip() for value in values for name in value.split(","))
    return tuple(dict.fromkeys(name for name in names if name))


def _check(options: Options) -> None:
    if options.elf is not None and not options.elf.is_file():
        raise ConfigurationError(f"--elf: there is no file {options.elf}", next_step="correct the path")
    limits = {"total": options.total_s, "session": options.session_s, "call": options.call_s}
    for name, seconds in limits.items():
        if not seconds > 0:
            message = f"--{name}-timeout must be more than 0 seconds"
            raise ConfigurationError(message, next_step="leave it out")
    if options.serial_port is None:
        _check_without_port(options)
        return
    if len(options.platforms) > 1:
        raise ConfigurationError("--serial-port leads to one device", next_step="name one platform, or none")
    if options.timing not in (None, "board"):
        message = f"--timing {options.timing} can't be had over --serial-port"
        raise ConfigurationError(message, next_step="leave one of the two options out")


def _check_without_port(options: Options) -> None:
    if options.baud is not None:
        raise ConfigurationError("--baud is for a serial port", next_step="name it with --serial-port")
    if options.elf is not None:
        raise elf_without_port()
    if options.timing == "board":
        raise ConfigurationError("--timing board is for a board", next_step="name it with --serial-port")
