# SPDX-License-Identifier: Apache-2.0
"""Which devices a run tests, and why others are left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from minrpc.errors import ConfigurationError
from minrpc.options import Options
from minrpc.requirements import Requirement, lacking
from minrpc.running import Timing
from minrpc.targets import Platform, find_platform, load_platforms

DEFAULT_BAUD = 115200


@dataclass(frozen=True, slots=True)
class Target:
    """One device to test.

    name: the platform's, or "board" when only a port was named.
    platform: None for a port whose platform is not in the table.
    serial_port: attach there; None to build and start `platform`.
    baud: of the serial port, bits per second.
    """

    name: str
    platform: Platform | None
    serial_port: str | None = None
    baud: int = DEFAULT_BAUD


@dataclass(frozen=True, slots=True)
class Selection:
    """What a run tests, and what it leaves out: the reason by platform."""

    targets: tuple[Target, ...]
    left_out: Mapping[str, str]


def select(options: Options, missing: Callable[[Platform], list[Requirement]] = lacking) -> Selection:
    """What `options` ask for.

    Raises ConfigurationError for an unknown platform, and for one that was named and can't run here: a test
    that was asked for is never left out in silence.
    """
    platforms = load_platforms(options.platforms_file)
    if options.serial_port is not None:
        return Selection((_at_port(options, options.serial_port, platforms),), {})
    if options.platforms:
        chosen = [find_platform(platforms, name) for name in options.platforms]
        return Selection(tuple(_named(platform, options.timing, missing) for platform in chosen), {})
    return _defaults(platforms, options.timing, missing)


def reason(platform: Platform, timing: Timing | None, lacks: list[Requirement]) -> str:
    """Why `platform` can't be tested here, with the command that helps; "" when it can."""
    if timing == "exact" and platform.starts != "qemu":
        return "it does not run under QEMU, so its times can't be exact"
    return "; ".join(f"{one.name}: {one.problem} ({one.command})" for one in lacks)


def _named(
    platform: Platform, timing: Timing | None, missing: Callable[[Platform], list[Requirement]]
) -> Target:
    lacks = missing(platform)
    why = reason(platform, timing, [])
    if why:
        raise ConfigurationError(f"{platform.name}: {why}", next_step="leave --timing out, or test it alone")
    if lacks:
        details = [f"{one.name}: {one.problem}" for one in lacks]
        step = "; then ".join(dict.fromkeys(one.command for one in lacks))
        raise ConfigurationError(f"{platform.name} can't run here", details=details, next_step=step)
    return Target(platform.name, platform)


def _defaults(
    platforms: Mapping[str, Platform], timing: Timing | None, missing: Callable[[Platform], list[Requirement]]
) -> Selection:
    defaults = [platform for platform in platforms.values() if platform.default]
    reasons = {platform.name: reason(platform, timing, missing(platform)) for platform in defaults}
    targets = tuple(Target(platform.name, platform) for platform in defaults if not reasons[platform.name])
    return Selection(targets, {name: why for name, why in reasons.items() if why})


def _at_port(options: Options, port: str, platforms: Mapping[str, Platform]) -> Target:
    """A board that the table does not know is tested too: its name is a label then."""
    name = options.platforms[0] if options.platforms else "board"
    platform = platforms.get(name)
    baud = options.baud or (platform.baud if platform else DEFAULT_BAUD)
    return Target(name, platform, port, baud)
