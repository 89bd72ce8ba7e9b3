# SPDX-License-Identifier: Apache-2.0
"""Flashes a board: by its platform's own command, or by `west flash` with Zephyr's runner."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from minrpc.errors import ConfigurationError, FlashError
from minrpc.firmware.firmware import Firmware
from minrpc.firmware.sources import firmware_root
from minrpc.firmware.zephyr_workspace import find_workspace
from minrpc.host.process import describe_status, exited_within, spawn_logged, stop_session
from minrpc.targets import Platform

_FLASH_S: Final = 10 * 60.0
_LAST_LINES: Final = 8


def flash(firmware: Firmware, runner_args: Sequence[str] = (), limit_s: float | None = None) -> None:
    """Flash `firmware` to the connected board, by its platform's flash_command, or as a Zephyr board.

    runner_args: as `west flash` takes them: ("--runner", "pyocd", "--dev-id", "066A...").
    limit_s: the limit in seconds; 10 minutes by default.

    Raises FlashError with the runner's last lines, ZephyrMissingError, ConfigurationError for other ports.
    """
    check_flashable(firmware.platform)
    log = firmware.build_dir / "flash.log"
    if firmware.platform.flash_command:
        places = {"{elf}": str(firmware.elf), "{build}": str(firmware.build_dir)}
        words = [*shlex.split(firmware.platform.flash_command), *runner_args]
        run_runner([_filled(word, places) for word in words], log, Path.cwd(), limit_s)
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


def _filled(word: str, places: Mapping[str, str]) -> str:
    for place, value in places.items():
        word = word.replace(place, value)
    return word


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
