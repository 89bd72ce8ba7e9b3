# SPDX-License-Identifier: Apache-2.0
"""The options of devices, each declared once: for the command line, pytest, minrpc.toml and Python.

This module imports almost nothing, so that it costs a pytest run without devices almost no time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from minrpc.host.time_limits import CALL_TIMEOUT_S, SESSION_TIMEOUT_S, TOTAL_TIMEOUT_S

SWITCH: Final = MappingProxyType({"on": True, "off": False})


@dataclass(frozen=True, slots=True)
class Option:
    """One option.

    name: on the command line `--NAME`, in pytest `--minrpc-NAME`.
    field: its keyword in `open_device` and `Target.named`, and its key in minrpc.toml.
    help: one sentence.
    type: type of its value: Path, int, float, bool (on, off), or str.
    metavar: the value's name in the help.
    choices: the allowed values; () for any.
    several: the option can be repeated, and a value can be a list with commas.
    in_file: minrpc.toml can set it: in [device] for all platforms, in [platforms.NAME] for one platform.
    """

    name: str
    field: str
    help: str
    type: Callable[[str], Any] = str
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    several: bool = False
    in_file: bool = False

    @property
    def argparse(self) -> dict[str, Any]:
        """Keywords of `argparse.ArgumentParser.add_argument`; without a default, so that a missing option is
        known."""
        if self.several:
            return {"action": "append", "default": [], "metavar": self.metavar, "help": self.help}
        if self.type is bool:
            return {"choices": list(SWITCH), "help": self.help}
        if self.choices:
            return {"choices": list(self.choices), "help": self.help}
        return {"type": self.type, "metavar": self.metavar, "help": self.help}

    def value(self, given: Any) -> Any:  # noqa: ANN401 - of the option's type
        """The Python value of a command line's value."""
        return SWITCH[given] if self.type is bool else given


def seconds_of(text: str) -> float:
    """Seconds of "90", "90s", "10m", "1h". Raises ValueError."""
    unit = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(text[-1:], 0.0)
    seconds = float(text[:-1]) * unit if unit else float(text)
    if not 0 <= seconds < float("inf"):
        raise ValueError(text)
    return seconds


def _limit(name: str, default: float, what: str, *, in_file: bool = True) -> Option:
    field = f"{name.replace('-', '_')}_s"
    return Option(name, field, f"{what} (default {default:g})", float, "SECONDS", in_file=in_file)


_OPTIONS: Final = (
    Option(
        "platform",
        "platforms",
        "platforms to use; or the groups all, bare, zephyr: those that can run here (default: the platforms "
        "that `minrpc platforms` calls default and that can run here)",
        metavar="NAME[,NAME...]",
        several=True,
    ),
    Option(
        "serial-port",
        "serial_port",
        "use the device that already runs there: a port's path, a USB serial number or VID:PID, "
        "hwgrep://REGEX, rfc2217://HOST:PORT, socket://HOST:PORT, unix://PATH, exec:COMMAND, labgrid:PLACE",
        metavar="LINK",
    ),
    Option(
        "hardware-map",
        "hardware_map",
        "use a free board of the platform's kind in this map of twister's, as `minrpc board scan` writes it",
        Path,
        "FILE",
    ),
    Option(
        "wait-board",
        "wait_board_s",
        "time to wait for a board that another user has: 90s, 10m, 1h (default 0)",
        seconds_of,
        "TIME",
    ),
    Option(
        "flash",
        "flash",
        "build the firmware and flash the board: auto if it runs another build (default never)",
        choices=("never", "auto", "always"),
        in_file=True,
    ),
    Option(
        "build-dir",
        "build_dir",
        "use the firmware of a finished `west build`, and build nothing",
        Path,
        "DIR",
    ),
    Option(
        "elf",
        "elf",
        "with --serial-port: the program that runs there: code is linked against it",
        Path,
        "FILE",
    ),
    Option("baud", "baud", "bits per second of the serial port", int, "N"),
    Option("platforms-file", "platforms_file", "TOML file in place of minrpc.toml", Path, "FILE"),
    Option(
        "libraries-as",
        "libraries_as",
        "how the libraries of minrpc.toml get onto the device: in its firmware, or loaded when they are used "
        "(default: as each says)",
        choices=("linked", "loaded"),
    ),
    Option(
        "timing",
        "timing",
        "clock that times follow: exact (instructions counted, the default under QEMU), wall (the host's "
        "time), board",
        choices=("exact", "wall", "board"),
        in_file=True,
    ),
    Option(
        "check",
        "check",
        "memory: under QEMU, judge each access of a called function to memory",
        choices=("memory",),
        in_file=True,
    ),
    Option(
        "core",
        "core",
        "the core whose cycles are estimated: a name, such as cortex-m4, or your file, NAME.toml "
        "(default: the platform's)",
        metavar="NAME",
    ),
    Option(
        "flash-wait-states",
        "flash_wait_states",
        "wait states of flash, for code and constants, in estimated cycles (default 0)",
        int,
        "N",
    ),
    Option(
        "flash-width",
        "flash_width",
        "with --flash-wait-states: bits of flash that are read at once, and ahead (default 64)",
        int,
        "BITS",
    ),
    Option(
        "link",
        "link",
        "the carrier of RPC to a device started here (default pty)",
        choices=("pty", "socket"),
        in_file=True,
    ),
    Option(
        "resend",
        "resend",
        "send lost messages again, if the device can (default: on for a serial port)",
        bool,
        in_file=True,
    ),
    Option(
        "direct",
        "direct",
        "copy arrays through memory shared with the emulator if possible, not over the link (default on)",
        bool,
        in_file=True,
    ),
    _limit(
        "session-timeout",
        SESSION_TIMEOUT_S,
        "limit for a session to start, of the device's time; at a port or a board 5",
    ),
    _limit("call-timeout", CALL_TIMEOUT_S, "limit for each call, of the device's time"),
    _limit("total-timeout", TOTAL_TIMEOUT_S, "limit for everything, of plain time", in_file=False),
)

DEVICE_OPTIONS: Final[Mapping[str, Option]] = MappingProxyType({option.name: option for option in _OPTIONS})
"""All options, by name."""

FILE_OPTIONS: Final[Mapping[str, Option]] = MappingProxyType(
    {option.field: option for option in _OPTIONS if option.in_file}
)
"""The options that minrpc.toml can set, by key."""
