# SPDX-License-Identifier: Apache-2.0
"""Puts a firmware into a board, by `west flash` with the runner that Zephyr knows for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from minrpc.errors import ConfigurationError, FlashError
from minrpc.firmware.firmware import Firmware
from minrpc.firmware.sources import firmware_root
from minrpc.firmware.zephyr_workspace import find_workspace
from minrpc.host.process import exited_within, spawn_logged, stop_session

_FLASH_S: Final = 10 * 60.0
_LAST_LINES: Final = 8


def flash(firmware: Firmware, runner_args: Sequence[str] = ()) -> None:
    """Flash a Zephyr `firmware` to the board that is connected.

    runner_args: as `west flash` takes them: ("--runner", "pyocd", "--dev-id", "066A...").

    Raises FlashError with the runner's last lines, ZephyrMissingError, ConfigurationError for other ports.
    """
    if firmware.platform.port != "zephyr":
        raise ConfigurationError(f"{firmware.platform.name} is not flashed: it is no Zephyr board")
    workspace = find_workspace(firmware_root())
    west = [sys.executable, "-m", "west", "flash", "--skip-rebuild", "-d", str(firmware.build_dir)]
    run_runner([*west, *runner_args], firmware.build_dir / "flash.log", workspace.base)


def run_runner(argv: Sequence[str], log: Path, zephyr_base: Path) -> None:
    """Run the flash command `argv`, with its output in `log`. Raises FlashError when it fails."""
    log.unlink(missing_ok=True)
    process = spawn_logged(argv, log, cwd=zephyr_base, env={**os.environ, "ZEPHYR_BASE": str(zephyr_base)})
    try:
        status = exited_within(process, _FLASH_S)
    finally:
        stop_session(process)
    if status is None:
        message = f"flashing did not end within {_FLASH_S / 60:.0f} minutes"
        raise FlashError(message, stage="flash", details=_last_lines(log))
    if status != 0:
        raise FlashError("the flash runner failed", stage="flash", details=_last_lines(log))


def _last_lines(log: Path) -> list[str]:
    lines = log.read_text(errors="backslashreplace").splitlines()[1:]
    return [line for line in lines if line.strip()][-_LAST_LINES:]
