# SPDX-License-Identifier: Apache-2.0
"""A target: its platform, sources, options, place and limits. A value."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, Self, TypedDict, TypeVar, Unpack, cast, get_type_hints

from minrpc.errors import ConfigurationError
from minrpc.host.time_limits import BOARD_SESSION_TIMEOUT_S, CALL_TIMEOUT_S, SESSION_TIMEOUT_S
from minrpc.names import did_you_mean, text_name
from minrpc.targets.config import find_platform, load_platforms, option_value
from minrpc.targets.hardware_map import HardwareBoard
from minrpc.targets.libraries import NamedLibrary
from minrpc.targets.option_table import DEVICE_OPTIONS
from minrpc.targets.project import define_text
from minrpc.targets.table import Platform, ResetLine
from minrpc.timing.clock import Mode

Link = Literal["pty", "socket"]
Timing = Mode
FlashMode = Literal["never", "auto", "always"]
Check = Literal["memory"]

T = TypeVar("T")

UNKNOWN_BOARD: Final = "board"
"""The platform's name of a board for which the user named none."""


class SessionFields(TypedDict, total=False):
    """The fields of a target that can be set while it runs; each as in `Target`."""

    resend: bool | None
    direct: bool
    session_timeout_s: float
    call_timeout_s: float


class StartFields(SessionFields, total=False):
    """The fields of a target that can be set after its firmware is built; each as in `Target`."""

    icount_shift: int | None
    icount_sleep: bool
    link: Link
    timing: Timing | None
    total_timeout_s: float | None
    core: str
    flash_wait_states: int
    flash_width: int
    counters: bool
    check: Check | None
    wave: str | Path | None


class TargetFields(StartFields, total=False):
    """The fields of a target beside its platform's name; each as in `Platform` or `Target`.

    Lists are added to the platform's own, and paths are relative to the working directory.
    libraries_as: all named libraries are linked into the firmware, or loaded when they are used.
    """

    sources: Sequence[str | Path]
    include_dirs: Sequence[str | Path]
    defines: Sequence[str] | Mapping[str, object]
    libraries: Sequence[str | Path]
    named_libraries: Sequence[NamedLibrary]
    libraries_as: Literal["linked", "loaded"]
    cmake_options: Sequence[str]
    baud: int
    reset_command: str
    reset_line: ResetLine
    flash_command: str
    serial_port: str | None
    build_dir: str | Path | None
    elf: str | Path | None
    flash_arguments: tuple[str, ...]
    hardware_map: str | Path | None
    wait_board_s: float
    flash: FlashMode


@dataclass(frozen=True, slots=True)
class Target:
    """The description of a device: its build, the way to start it or to attach to it, and its limits.

    platform: its build and boot, with the user's own sources and options.
    serial_port: attach to the firmware that runs there already, and build nothing: a path, or a USB device as
        `find_port` knows it.
    build_dir: a finished build of Zephyr, used unchanged: nothing is built.
    elf: the program that runs at the serial port, if the harness did not build it: loaded code is linked
        against it, and its functions are known by name.
    flash_arguments: as `west flash` takes them. With a build and a serial port the board is flashed first.
    hardware_map: twister's map of boards, of which a free one of the platform's kind is used.
    board: the chosen board of the map.
    wait_board_s: seconds to wait for a board that others use.
    flash: "auto" builds the firmware and flashes a board that runs another build, "always" flashes first.
    link: the kind of link to an emulator or a process.
    timing: "exact" counts instructions (QEMU only, and the default there), "wall" follows the host's clock.
    icount_sleep: False lets virtual time jump while the guest idles, which may stall the link meanwhile.
    direct: share the emulator's memory if it can be shared, so that arrays don't go over the link.
    resend: send lost messages again; None for serial ports only: links inside a machine lose nothing.
    session_timeout_s, call_timeout_s: limits in seconds for the start of a session and for each call, without
        the time for which a busy host kept the emulator waiting.
    total_timeout_s: limit in seconds of wall time for all waits together; None for no limit.
    counters: under QEMU, instructions, branches and accesses to memory are counted in timed functions, and
        cycles estimated.
    check: "memory" records each call under QEMU, and judges its accesses to memory.
    wave: on RTL, the file for the waveform of a recorded call.
    """

    platform: Platform
    serial_port: str | None = None
    build_dir: Path | None = None
    elf: Path | None = None
    flash_arguments: tuple[str, ...] = ()
    hardware_map: Path | None = None
    board: HardwareBoard | None = None
    wait_board_s: float = 0.0
    flash: FlashMode = "never"
    link: Link = "pty"
    timing: Timing | None = None
    icount_sleep: bool = True
    direct: bool = True
    resend: bool | None = None
    session_timeout_s: float = SESSION_TIMEOUT_S
    call_timeout_s: float = CALL_TIMEOUT_S
    total_timeout_s: float | None = None
    counters: bool = False
    check: Check | None = None
    wave: Path | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.platform, Platform):
            message = f"a target's platform is a Platform, not {self.platform!r}; Target.named takes its name"
            raise TypeError(message)

    @classmethod
    def named(
        cls,
        name: str | None = None,
        *,
        platforms_file: str | Path | None = None,
        **given: Unpack[TargetFields],
    ) -> Self:
        """The platform `name` of the table or a TOML file, with the `given` fields.

        name: with a serial port it may be any text or None, since a board need not be in the table.

        Raises ConfigurationError, TypeError for a name that is no text.
        """
        if name is not None:
            text_name(name, "platform")
        platforms = load_platforms(platforms_file)
        attached = given.get("serial_port") is not None or given.get("hardware_map") is not None
        if attached and name not in platforms:
            built = given.get("hardware_map") is not None or given.get("flash", "never") != "never"
            board = name if name and built else ""
            platform = replace(platforms.new, name=name or UNKNOWN_BOARD, zephyr_board=board)
            return cls.of(platform, **given)
        return cls.of(find_platform(platforms, name or UNKNOWN_BOARD), **given)

    @classmethod
    def of(cls, platform: Platform, **given: Unpack[TargetFields]) -> Self:
        """The platform with its options from minrpc.toml, and the `given` fields over them."""
        target = cls(platform)
        if given.get("serial_port") is not None or given.get("hardware_map") is not None:
            target = target.changed(session_timeout_s=BOARD_SESSION_TIMEOUT_S)
        return target.changed(**cast(TargetFields, dict(platform.device_options))).changed(**given)

    @property
    def attached(self) -> bool:
        """True if the target is a device that already runs: at a link, or a board of a hardware map."""
        return self.serial_port is not None or self.hardware_map is not None

    @property
    def in_qemu(self) -> bool:
        """True if the target is started here, under QEMU."""
        return self.platform.starts == "qemu" and not self.attached

    @property
    def name(self) -> str:
        """The platform's name."""
        return self.platform.name

    def changed(self, **given: Unpack[TargetFields]) -> Self:
        """The same target with `given`: lists are extended, other fields are replaced.

        Raises TypeError for an unknown field, ConfigurationError for a value that the field can't have.
        """
        require(given, TargetFields, "a target has no")
        values = {name: _value(name, value) for name, value in given.items()}
        own: dict[str, Any] = {name: value for name, value in values.items() if name in _OWN}
        others: dict[str, Any] = {
            name: _merged(self.platform, name, value)
            for name, value in values.items()
            if name not in _OWN and name != "libraries_as"
        }
        platform = replace(self.platform, **others)
        if "libraries_as" in given:
            platform = _with_libraries(platform, linked=given["libraries_as"] == "linked")
        return replace(self, platform=platform, **own)


def _value(name: str, value: object) -> object:
    if name == "counters" and not isinstance(value, bool):
        raise ConfigurationError(
            f"counters: must be true or false, not {value!r}",
            next_step="name counters where they are measured: lib.measure(name, counters=[...])",
        )
    if name not in _OPTIONS or (value is None and name in _MAY_BE_NONE):
        return value
    return option_value(_OPTIONS[name], value, name)


def elf_without_port() -> ConfigurationError:
    """The error when a program is named, but no port at which it runs."""
    return ConfigurationError(
        "an ELF file (--elf, elf=) names the program at a serial port, which is not started",
        next_step="name the port as well, or start the program from Python: open_device(Firmware(...)), "
        "see docs/c-library.md",
    )


def require(given: Mapping[str, object], known: type[T], problem: str) -> T:
    """`given`, checked to have only keys of `known`. Raises TypeError, which begins with `problem`."""
    names = _names(cast(Hashable, known))
    for name in given:
        if name not in names:
            near = did_you_mean(name, names)
            raise TypeError(f"{problem} {name!r}; {near or 'there is ' + ', '.join(names)}")
    return cast(T, given)


@cache
def _names(known: Hashable) -> tuple[str, ...]:
    return tuple(get_type_hints(known))


def _with_libraries(platform: Platform, *, linked: bool) -> Platform:
    libraries = tuple(library._replace(linked=linked) for library in platform.named_libraries)
    return replace(platform, named_libraries=libraries)


_OWN: Final = frozenset(field.name for field in fields(Target))
_MAY_BE_NONE: Final = frozenset(field.name for field in fields(Target) if field.default is None)
_OPTIONS: Final = {option.field: option for option in DEVICE_OPTIONS.values()}
_PATHS: Final = frozenset({"sources", "include_dirs", "libraries"})


def _merged(platform: Platform, name: str, value: Any) -> object:  # noqa: ANN401 - of a field known by name
    before = getattr(platform, name)
    if not isinstance(before, tuple):
        return value
    if isinstance(value, str | Path):
        message = f"{name} is a list, not {value!r}"
        raise ConfigurationError(message, next_step=f"write {name}=[{str(value)!r}]")
    if isinstance(value, Mapping):
        value = [define_text(*item) for item in value.items()]
    return (*before, *(str(Path(item).absolute()) if name in _PATHS else item for item in value))
