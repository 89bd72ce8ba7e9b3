# SPDX-License-Identifier: Apache-2.0
"""Selects the devices that a run tests, with the reasons for those left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from minrpc.errors import ConfigurationError, MissingError
from minrpc.firmware.zephyr_boards import resolved
from minrpc.pipeline.requirements import Requirement, commands_for, lacking
from minrpc.targets import Platform, Target, Timing, find_platform, load_platforms
from minrpc.targets.hardware_map import boards_for, load_hardware_map
from minrpc.targets.options import Options
from minrpc.targets.table import Port
from minrpc.targets.target import TargetFields, elf_without_port

GROUPS: Final[Mapping[str, frozenset[Port]]] = MappingProxyType(
    {
        "all": frozenset({"posix", "baremetal", "zephyr"}),
        "bare": frozenset({"baremetal"}),
        "zephyr": frozenset({"zephyr"}),
    }
)
"""Names for the platforms of some ports that can run here; used like a platform's name."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The targets that a run tests, and the reason for each platform left out."""

    targets: tuple[Target, ...]
    left_out: Mapping[str, str]


def select(options: Options, missing: Callable[[Platform], list[Requirement]] = lacking) -> Selection:
    """The selection that `options` request.

    Raises ConfigurationError for an unknown platform, and for a named platform that can't run here: a
    requested test is never left out silently.
    """
    selection = _selected(options, missing)
    if selection.targets and not any(target.attached for target in selection.targets):
        _check_started(selection.targets[0].name, options.given)
    return selection


def _check_started(name: str, given: TargetFields) -> None:
    """Raise ConfigurationError for options of attached devices; the target `name` is started here."""
    if given.get("elf") is not None:
        raise elf_without_port()
    flash = given.get("flash", "never")
    of_boards = {
        f"--flash {flash}": flash != "never",
        "--timing board": given.get("timing") == "board",
        "--wait-board": given.get("wait_board_s") is not None,
        "--baud": given.get("baud") is not None,
    }
    option = next((option for option, is_given in of_boards.items() if is_given), None)
    if option is not None:
        message = f"{option} is for a board: {name} is started anew with its firmware"
        step = "leave it out, or name the board with --serial-port or --hardware-map"
        raise ConfigurationError(message, next_step=step)


def _selected(options: Options, missing: Callable[[Platform], list[Requirement]]) -> Selection:
    given = options.given
    if given.get("build_dir") is not None:
        return Selection((_of_build(options),), {})
    if given.get("hardware_map") is not None:
        return Selection(tuple(_in_map(options)), {})
    if given.get("serial_port") is not None:
        return Selection((_at_port(options),), {})
    platforms = load_platforms(options.platforms_file)
    named = [resolved(find_platform(platforms, name)) for name in options.platforms if name not in GROUPS]
    timing = given.get("timing")
    for platform in named:
        _require(platform, timing, missing)
    chosen = {platform.name: platform for platform in (*named, *_able(platforms, options))}
    reasons = {
        name: "" if platform in named else reason(platform, timing, missing(platform))
        for name, platform in chosen.items()
    }
    targets = tuple(options.target(platform) for name, platform in chosen.items() if not reasons[name])
    return Selection(targets, {name: why for name, why in reasons.items() if why})


def select_runnable(
    options: Options, missing: Callable[[Platform], list[Requirement]] = lacking
) -> Selection:
    """Selects at least one target. Raises as `select`, and MissingError with the reason for each platform."""
    selection = select(options, missing)
    if not selection.targets:
        raise MissingError(
            "no platform can run here", details=[f"{name}: {why}" for name, why in selection.left_out.items()]
        )
    return selection


def _able(platforms: Mapping[str, Platform], options: Options) -> list[Platform]:
    """The platforms of the named groups, else the default platforms. RTL has no group: it is slow."""
    if not options.platforms:
        return [platform for platform in platforms.values() if platform.default]
    ports = frozenset[Port]().union(*(GROUPS.get(name, frozenset()) for name in options.platforms))
    return [item for item in platforms.values() if item.port in ports and item.starts != "rtl"]


def reason(platform: Platform, timing: Timing | None, lacks: list[Requirement]) -> str:
    """The reason why `platform` can't be tested here, with the command that helps; "" if it can."""
    if timing == "exact" and platform.starts not in ("qemu", "rtl"):
        return "it does not run under QEMU, so its times can't be exact"
    problems = "; ".join(f"{need.name}: {need.problem}" for need in lacks)
    return f"{problems} ({'; '.join(commands_for(lacks))})" if lacks else ""


def _require(
    platform: Platform, timing: Timing | None, missing: Callable[[Platform], list[Requirement]]
) -> None:
    why = reason(platform, timing, [])
    if why:
        raise ConfigurationError(f"{platform.name}: {why}", next_step="leave --timing out, or test it alone")
    lacks = missing(platform)
    if lacks:
        details = [f"{requirement.name}: {requirement.problem}" for requirement in lacks]
        step = "; then ".join(commands_for(lacks))
        raise ConfigurationError(f"{platform.name} can't run here", details=details, next_step=step)


def _at_port(options: Options) -> Target:
    """The target of a board at a serial port; the name of a board outside the table is only a label."""
    name = options.platforms[0] if options.platforms else None
    return Target.named(name, platforms_file=options.platforms_file, **options.given)


def _in_map(options: Options) -> Iterator[Target]:
    """A target for each named platform, else for each kind of board in the hardware map."""
    file = options.given["hardware_map"]
    assert file is not None
    boards = load_hardware_map(Path(file))
    kinds = dict.fromkeys(board.platforms[0] for board in boards)
    for name in options.platforms or kinds:
        target = Target.named(name, platforms_file=options.platforms_file, **options.given)
        boards_for(boards, target.name, target.platform.zephyr_board)
        yield target


def _of_build(options: Options) -> Target:
    """The target of a finished build. Its name is the one that the user gave, else the directory's."""
    build_dir = options.given["build_dir"]
    assert build_dir is not None
    if len(options.platforms) > 1:
        raise ConfigurationError("--build-dir has one firmware", next_step="name one platform, or none")
    name = options.platforms[0] if options.platforms else Path(build_dir).resolve().name
    about = f"the firmware in {build_dir}"
    platforms = load_platforms(options.platforms_file)
    own = platforms.get(name, platforms.new).device_options
    return options.target(
        Platform(name, port="zephyr", starts="board", description=about, device_options=own)
    )
