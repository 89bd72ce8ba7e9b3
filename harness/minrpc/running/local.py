# SPDX-License-Identifier: Apache-2.0
"""Starts firmware that is a program of this machine: the posix port, and Zephyr's native_sim."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import Final

from minrpc.errors import ConfigurationError, EmulatorExitedError
from minrpc.firmware.firmware import Firmware
from minrpc.host.deadline import ProcessClock
from minrpc.host.process import output_tail, spawn
from minrpc.running.device import RunningDevice
from minrpc.running.links import LinkPair, open_pair
from minrpc.running.shared_memory import SharedMemory

_PARENT: Final = "{parent}"


def start_process(firmware: Firmware) -> RunningDevice:
    """Run `firmware`; see `start`.

    The program inherits its end of the link even if it opens the link by path. So the link is open from the
    start, stays open when the program restarts itself, and closes when the program ends.
    """
    platform = firmware.platform
    with ExitStack() as undo:
        pair = open_pair(firmware.target.link)
        undo.callback(pair.close)
        argv, descriptors = [str(firmware.elf), *_arguments(firmware, pair)], [pair.device_fd]
        memory = None
        if firmware.target.direct and platform.memory_at is not None:
            memory = SharedMemory(platform.memory_at, platform.memory_size)
            undo.callback(memory.close)
            argv += ["--memory", f"{memory.descriptor}@{memory.base:#x}"]
            descriptors.append(memory.descriptor)
        try:
            process = spawn(argv, pass_fds=descriptors, ends_itself=_PARENT in platform.arguments)
        except OSError as error:
            message = f"{platform.name} can't be started: {firmware.elf}: {error.strerror}"
            raise EmulatorExitedError(message) from error
        undo.pop_all()
    pair.release_device_end()
    return RunningDevice(
        name=firmware.platform.name,
        target=firmware.target,
        firmware=firmware,
        transport=pair.transport,
        clock=ProcessClock(process.pid),
        timing="wall",
        process=process,
        console_tail=output_tail(process, "console"),
        memory=memory,
    )


def _arguments(firmware: Firmware, pair: LinkPair) -> list[str]:
    words = firmware.platform.arguments
    if not pair.device_path and any("{path}" in word for word in words):
        message = f"{firmware.platform.name} opens its link by path: it can't be a socket"
        raise ConfigurationError(message, next_step="use the default link, a pty")
    values = {"{fd}": str(pair.device_fd), "{path}": pair.device_path, _PARENT: str(os.getpid())}
    for name, value in values.items():
        words = tuple(word.replace(name, value) for word in words)
    return list(words)
