# SPDX-License-Identifier: Apache-2.0
"""The firmware on a board: flashed if the board runs another build."""

from __future__ import annotations

from typing import Final

from minrpc.client import Session
from minrpc.errors import FlashError, HarnessError
from minrpc.firmware import Firmware
from minrpc.firmware.flash import flash
from minrpc.program.program import read_program
from minrpc.running.board import open_port
from minrpc.running.lease import run_script
from minrpc.targets import Target

# Seconds to wait for an answer: a running device answers at once; a device that does not answer is flashed.
_ANSWER_S: Final = 3.0
_AFTER_FLASH_S: Final = 30.0


def put_firmware(firmware: Firmware, target: Target) -> None:
    """Flash the board at the target's link, with `flash="auto"` only if it does not run `firmware`.

    Raises FlashError with the runner's output and the command, or when the board still runs another build.
    """
    wanted = read_program(firmware.elf).build_id
    if target.flash == "auto" and wanted and build_on(target, _ANSWER_S) == wanted:
        return
    limit_s = target.board.flash_timeout if target.board else None
    flash(firmware, target.flash_arguments, limit_s)
    if target.board is not None:
        run_script(target.board, "post_flash_script", target.board.post_flash_script)
    runs = build_on(target, _AFTER_FLASH_S)
    if wanted and runs and runs != wanted:
        raise FlashError(
            f"{target.serial_port} runs build {runs[:16]} after flashing, not {wanted[:16]}",
            stage="flash",
            next_step="check that the probe (--dev-id) and the serial port belong to the same board",
        )


def build_on(target: Target, limit_s: float) -> str:
    """The build id of the firmware at the target's link; "" if no firmware answers, or it does not report its
    id."""
    try:
        with Session(open_port(target), session_timeout_s=limit_s, call_timeout_s=limit_s) as session:
            return session.info().build_id
    except HarnessError:
        return ""
