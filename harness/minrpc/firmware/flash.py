# SPDX-License-Identifier: Apache-2.0
"""Flashes a board: by its platform's own command, or by `west flash` with Zephyr's runner."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from minrpc.errors import ConfigurationError, FlashError
from minrpc.firmware.firmware import Firmware
from minrpc.firmware.sources import firmware_root
from minrpc.firmware.zephyr_workspace import find_workspace
from minrpc.host.process import describe_status, exited_within, shell_words, spawn_logged, stop_session
from minrpc.targets import Platform, Target
from minrpc.transport import port_of

_FLASH_S: Final = 10 * 60.0
_LAST_LINES: Final = 8
_PLACE: Final = re.compile(r"\{(\w+)\}")


def flash(firmware: Firmware, runner_args: Sequence[str] = (), limit_s: float | None = None) -> None:
    """Flash `firmware` to the connected board, by its platform's flash_command, or as a Zephyr board.

    The command's {port} and {id} are those of the firmware's target.
    runner_args: as `west flash` takes them: ("--runner", "pyocd", "--dev-id", "066A...").
    limit_s: the limit in seconds; 10 minutes by default.

    Raises FlashError with the runner's last lines, ZephyrMissingError, ConfigurationError for other ports.
    """
    check_flashable(firmware.platform)
    log = firmware.build_dir / "flash.log"
    if command := firmware.platform.flash_command:
        built = {"elf": str(firmware.elf), "build": str(firmware.build_dir)}
        words = filled_words(command, firmware.target, built)
        run_runner([*words, *runner_args], log, Path.cwd(), limit_s)
        return
    workspace = find_workspace(firmware_root())
    # Sysbuild's directory has other images, too, such as a bootloader: all are flashed.
    build_dir = (firmware.target.build_dir or firmware.build_dir).absolute()
    # West 4.5 does not know the old name, West up to 4.2 not the new.
    as_built = "--no-rebuild" if workspace.number >= (4, 3) else "--skip-rebuild"
    west = [sys.executable, "-m", "west", "flash", as_built, "-d", str(build_dir)]
    run_runner([*west, *runner_args], log, workspace.base, limit_s, ZEPHYR_BASE=str(workspace.base))


def check_flashable(platform: Platform) -> None:
    """Raise ConfigurationError for a platform that is not flashed, before it is built."""
    if platform.flash_command:
        return
    why = {"process": "it is a process of this machine", "qemu": "it runs under QEMU"}.get(
        platform.starts, ""
    )
    if not why and platform.port != "zephyr":
        why = "it is no Zephyr board and has no flash_command"
    if why:
        step = f"run it: `minrpc check --platform {platform.name}`" if platform.starts != "board" else ""
        raise ConfigurationError(
            f"{platform.name} is not flashed: {why}",
            next_step=step or 'set its command in minrpc.toml: flash_command = "..."',
        )


def filled_words(command: str, target: Target, built: Mapping[str, str] = {}) -> list[str]:
    """The words of a command of the target's board: {port} and {id} are the board's.

    built: the texts for further names in braces; other braces stay.
    Raises ConfigurationError for a port or id that is not known, PortGoneError for a port that is not there.
    """
    places = dict(built)
    if "{port}" in command:
        places["port"] = port_of(
            _known("port", target.serial_port, command, "--serial-port or a hardware map")
        )
    if "{id}" in command:
        places["id"] = _known("id", target.board.id if target.board else "", command, "a hardware map")
    return [_PLACE.sub(lambda match: places.get(match[1], match[0]), word) for word in shell_words(command)]


def _known(name: str, text: str | None, command: str, giver: str) -> str:
    if not text:
        message = f"`{command}` takes the board's {name}, and none is known"
        raise ConfigurationError(message, next_step=f"{giver} names it")
    return text


def run_runner(
    argv: Sequence[str], log: Path, cwd: Path, limit_s: float | None = None, **variables: str
) -> None:
    """Run the command `argv` with the environment's `variables`, its output in `log`. Raises FlashError."""
    log.unlink(missing_ok=True)
    try:
        process = spawn_logged(argv, log, cwd=cwd, env={**os.environ, **variables})
    except OSError as error:
        raise FlashError(f"{argv[0]} can't be run: {error.strerror}", stage="flash") from error
    try:
        status = exited_within(process, limit_s or _FLASH_S)
    finally:
        stop_session(process)
    if status is None:
        message = f"flashing did not end within {limit_s or _FLASH_S:g} s"
        step = f"run `{shlex.join(argv)}` by hand in {cwd}; its whole output is in {log}"
        raise FlashError(message, stage="flash", details=_last_lines(log), next_step=step)
    if status != 0:
        raise FlashError(
            f"the flash runner failed: {describe_status(status)}",
            stage="flash",
            details=_last_lines(log),
            next_step=f"run `{shlex.join(argv)}` by hand in {cwd}; its whole output is in {log}",
        )


def _last_lines(log: Path) -> list[str]:
    lines = log.read_text(errors="backslashreplace").splitlines()[1:]
    return [line for line in lines if line.strip()][-_LAST_LINES:]
