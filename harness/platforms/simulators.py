# SPDX-License-Identifier: Apache-2.0
"""Starts firmware that is a program of this machine: the posix port, and Zephyr's native_sim."""

from __future__ import annotations

import subprocess
from typing import Final, Literal

from harness.deadline import Deadline, ProcessClock
from harness.platforms.device import RunningDevice, exited_error
from harness.platforms.firmware import Firmware
from harness.platforms.links import open_pair
from harness.platforms.process import TextTail, output_tail, spawn, stop_group
from harness.transport import Transport, open_terminal

_START_S: Final = 30.0
# As Zephyr's driver prints it, once for each UART: "uart_1 connected to pseudotty: /dev/pts/7".
_PTY_LINE: Final = r"connected to pseudotty: (\S+)\s"


def start_process(firmware: Firmware, link: Literal["pty", "socket"]) -> RunningDevice:
    """Run the posix port, which inherits its end of the link; see `launch`."""
    pair = open_pair(link)
    try:
        process = spawn([str(firmware.elf), "--fd", str(pair.device_fd)], pass_fds=(pair.device_fd,))
    except BaseException:
        pair.close()
        raise
    pair.release_device_end()
    return _device(firmware, pair.transport, process, output_tail(process, "console"))


def start_native(firmware: Firmware, total: Deadline | None) -> RunningDevice:
    """Run native_sim, which makes the pty itself and says on its output where; see `launch`."""
    process = spawn([str(firmware.elf)])
    console = output_tail(process, "console")
    clock = ProcessClock(process.pid)
    try:
        path = _wait_for_pty(firmware, process, console, Deadline("start native_sim", _START_S, clock, total))
        transport = open_terminal(path)
    except BaseException:
        stop_group(process)
        console.close()
        raise
    return _device(firmware, transport, process, console)


def _wait_for_pty(
    firmware: Firmware, process: subprocess.Popen[bytes], console: TextTail, deadline: Deadline
) -> str:
    """The path of the pty of the UART that carries RPC: native_sim lists its UARTs in order."""
    uart = firmware.platform.link_uart
    match = console.wait_for(r"(?s)" + r".*?".join([_PTY_LINE] * (uart + 1)), deadline)
    if match is None:
        raise exited_error(firmware.platform.name, stop_group(process), console.text())
    return match.group(uart + 1)


def _device(
    firmware: Firmware, transport: Transport, process: subprocess.Popen[bytes], console: TextTail
) -> RunningDevice:
    return RunningDevice(
        name=firmware.platform.name,
        transport=transport,
        clock=ProcessClock(process.pid),
        timing="wall",
        process=process,
        console_tail=console,
    )
