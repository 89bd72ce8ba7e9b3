# SPDX-License-Identifier: Apache-2.0
"""Connected boards, from a hardware map in twister's format; twister's own maps can be read unchanged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from minrpc.errors import ConfigurationError
from minrpc.names import did_you_mean, same_board

# scripts/schemas/twister/hwmap-schema.yaml, of 3.7 and 4.2.
_TIMEOUTS: Final = ("pre_script_timeout", "post_script_timeout", "post_flash_timeout")
# The debug probes by products: the runner that `scan` writes, and OpenOCD's command that takes the id.
_PROBES: Final = (
    (r"(DAPLink|MBED) CMSIS-DAP", "pyocd", "cmsis_dap_serial"),
    (r"LPC-LINK2 CMSIS-DAP", "", "adapter serial"),
    (r".*CMSIS-DAP", "", "cmsis_dap_serial"),
    (r"J-Link( OB)?$", "jlink", "jlink serial"),
    (r"(STM32 )?ST-?Link", "openocd", "hla_serial"),
    (r"XDS110", "openocd", "xds110_serial"),
    (r"TTL232R-3V3|MCP2200", "dediprog", ""),
)
# West's runners that take a probe's serial number by --dev-id.
_BY_DEV_ID: Final = (
    "ezflashcli",
    "jlink",
    "nrfjprog",
    "nrfutil",
    "nrfutil_next",
    "pyocd",
    "silabs_commander",
)
NO_IDS: Final = frozenset(("", "None", "unknown", None))
_SCRIPTS: Final = ("pre_script", "post_script", "post_flash_script")
_SCRIPT_S: Final = 60.0
_FLASH_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class HardwareBoard:
    """An entry of the map; a field that the map lacks is empty.

    id: of the debug probe or the board; probe_id: of the probe if it differs.
    platforms: names of Zephyr's boards that it can be.
    serial: the link, as `--serial-port` takes it. serial_pty: a command that serves as a serial port.
    pre_script, post_script: run before and after the board's use. post_flash_script: run after flashing.
    script_timeouts: seconds, by the name in the map.
    """

    id: str
    platforms: tuple[str, ...]
    probe_id: str = ""
    product: str = ""
    runner: str = ""
    runner_params: tuple[str, ...] = ()
    serial: str = ""
    serial_pty: str = ""
    baud: int = 0
    pre_script: str = ""
    post_script: str = ""
    post_flash_script: str = ""
    script_timeouts: tuple[tuple[str, float], ...] = ()
    flash_timeout: float = _FLASH_S
    fixtures: tuple[str, ...] = ()
    notes: str = ""

    @property
    def link(self) -> str:
        """The link, as a value of `Target.serial_port`."""
        return self.serial or f"exec:{self.serial_pty}"

    @property
    def name(self) -> str:
        """The board for messages: its id and its link."""
        return f"{self.id} at {self.link}"

    @property
    def flash_arguments(self) -> tuple[str, ...]:
        """The arguments of `west flash`, as twister passes them."""
        if self.runner in ("", "unknown"):
            return self.runner_params
        return ("--runner", self.runner, *self._probe_arguments(), *self.runner_params)

    def _probe_arguments(self) -> tuple[str, ...]:
        """The probe's id, in the way that its runner takes it; none for a runner that takes none."""
        probe = self.probe_id or self.id
        if probe in NO_IDS:
            return ()
        if self.runner == "openocd":
            command = _probe_of(self.product)[1] or ("adapter serial" if self.probe_id else "")
            return ("--cmd-pre-init", f"{command} {probe}") if command else ()
        if self.runner in _BY_DEV_ID:
            return ("--dev-id", probe)
        options = {
            "esp32": ("--esp-device", probe),
            "linkserver": (f"--probe={probe}",),
            "stm32cubeprogrammer": (f"--tool-opt=sn={probe}",),
        }
        return options.get(self.runner, ()) if self.product != "BOOT-SERIAL" else ()

    def script_timeout(self, name: str) -> float:
        """The limit of the script `name`, in seconds."""
        return dict(self.script_timeouts).get(_TIMEOUTS[_SCRIPTS.index(name)], _SCRIPT_S)

    def is_a(self, *names: str) -> bool:
        """True if it can be a board with one of these names."""
        return any(same_board(own, name) for own in self.platforms for name in names if name)


def runner_of(product: str) -> str:
    """The runner for a debug probe by its product; "" for an unknown one."""
    return _probe_of(product)[0]


def _probe_of(product: str) -> tuple[str, str]:
    """The runner, and OpenOCD's command."""
    probes = (probe for probe in _PROBES if re.match(probe[0], product, re.I))
    return next(probes, ("", "", ""))[1:]


def load_hardware_map(path: Path) -> tuple[HardwareBoard, ...]:
    """The connected boards of the file. Raises ConfigurationError, which names the entry."""
    from minrpc.targets.map_file import read_map

    entries = [(f"{path}: entry {number}", entry) for number, entry in enumerate(read_map(path)[1], 1)]
    boards = [_board(where, entry) for where, entry in entries if _is_connected(where, entry)]
    _check_each_its_link(path, boards)
    return tuple(boards)


def boards_for(boards: tuple[HardwareBoard, ...], *names: str) -> tuple[HardwareBoard, ...]:
    """The boards that can be one of the platforms `names`. Raises ConfigurationError when there are none."""
    fitting = tuple(board for board in boards if board.is_a(*names))
    if not fitting:
        kinds = dict.fromkeys(name for board in boards for name in board.platforms)
        step = did_you_mean(names[0], kinds) or f"it has {', '.join(kinds) or 'no connected board'}"
        raise ConfigurationError(f"the hardware map has no {names[0]}", next_step=step)
    return fitting


def _is_connected(where: str, entry: Mapping[str, Any]) -> bool:
    has_link = bool(entry.get("serial") or entry.get("serial_pty"))
    if entry.get("connected") and not has_link:
        step = "name its port, or write connected: false"
        raise ConfigurationError(f"{where} is connected, without serial: or serial_pty:", next_step=step)
    return has_link and bool(entry.get("connected", True))


def _board(where: str, entry: Mapping[str, Any]) -> HardwareBoard:
    known = {item.name for item in fields(HardwareBoard)} - {"platforms", "script_timeouts"}
    others = {"platform", "script_param", "connected", "available", "flash_with_test", "flash_before"}
    for key in entry.keys() - known - others:
        raise ConfigurationError(f"{where}: {key}: unknown key", next_step=did_you_mean(key, known | others))
    values: dict[str, Any] = {key: entry[key] for key in known & entry.keys() if entry[key] is not None}
    for key in ("runner_params", "fixtures"):
        values[key] = tuple(map(str, values.get(key, ())))
    for key in ("id", "probe_id", "product", "serial"):
        values[key] = str(values.get(key, ""))
    return HardwareBoard(
        **values,
        platforms=_platforms(where, entry.get("platform")),
        script_timeouts=_timeouts(where, entry.get("script_param") or {}),
    )


def _platforms(where: str, value: object) -> tuple[str, ...]:
    names = value.split() if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise ConfigurationError(f"{where}: platform: must be a board's name, or a list, not {value!r}")
    return tuple(names)


def _timeouts(where: str, table: object) -> tuple[tuple[str, float], ...]:
    if not isinstance(table, Mapping) or not all(isinstance(value, int | float) for value in table.values()):
        raise ConfigurationError(f"{where}: script_param: must give seconds for {', '.join(_TIMEOUTS)}")
    return tuple((str(name), float(value)) for name, value in table.items())


def _check_each_its_link(path: Path, boards: list[HardwareBoard]) -> None:
    """Refuse two entries with one link, unless both have the same id: they are variants of one board."""
    ids: dict[str, str] = {}
    for board in boards:
        other = ids.setdefault(board.link, board.id)
        if other != board.id:
            message = f"{path}: {other} and {board.id} are both at {board.link}"
            raise ConfigurationError(message, next_step="correct the serial: of one of them")
