# SPDX-License-Identifier: Apache-2.0
"""Starts firmware that is a program of this machine: the posix port, and Zephyr's native_sim."""

from __future__ import annotations

import os
from contextlib import ExitStack
from functools import partial
from typing import Final

from minrpc.errors import ConfigurationError
from minrpc.firmware.firmware import Firmware
from minrpc.host.deadline import ProcessClock
from minrpc.host.process import output_tail, spawn
from minrpc.host.sandbox import is_up, program_of
from minrpc.running.links import LinkPair, pair_for_process, starting
from minrpc.running.running_device import RunningDevice, Started
from minrpc.running.shared_memory import SharedMemory

_PARENT: Final = "{parent}"


def start_process(firmware: Firmware) -> RunningDevice:
    """Run `firmware`; see `start`.

    The program inherits its end of the link even if it opens the link by path. So the link is open from the
    start, stays open when the program restarts itself, and closes when the program ends.
    """
    platform = firmware.platform
    with ExitStack() as undo:
        memory = None
        if firmware.target.direct and platform.memory_at is not None:
            memory = SharedMemory(platform.memory_at, platform.memory_size)
            undo.callback(memory.close)
        process, link, *_ = _spawn(firmware, memory)
        undo.pop_all()
    return RunningDevice(
        name=platform.name,
        target=firmware.target,
        firmware=firmware,
        transport=link,
        clock=ProcessClock(program_of(process)),
        timing="wall",
        process=process,
        console_tail=output_tail(process, "console"),
        memory=memory,
        spawn_again=partial(_spawn, firmware, memory),
    )


def _spawn(firmware: Firmware, memory: SharedMemory | None) -> Started:
    """A new process of the program, and the link to it."""
    platform = firmware.platform
    with pair_for_process(firmware.target.link) as pair:
        argv, descriptors = [str(firmware.elf), *_arguments(firmware, pair)], [pair.device_fd]
        if memory is not None:
            argv += ["--memory", f"{memory.descriptor}@{memory.base:#x}"]
            descriptors.append(memory.descriptor)
        with starting(platform.name, argv[0]):
            process = spawn(
                argv, pass_fds=descriptors, ends_itself=_PARENT in platform.arguments, foreign=True
            )
    return Started(process, pair.transport)


def _arguments(firmware: Firmware, pair: LinkPair) -> list[str]:
    words = firmware.platform.arguments
    if not pair.device_path and any("{path}" in word for word in words):
        message = f"{firmware.platform.name} opens its link by path: it can't be a socket"
        raise ConfigurationError(message, next_step="use the default link, a pty")
    parent = 0 if is_up() else os.getpid()  # The first process of a namespace has no parent in it.
    values = {"{fd}": str(pair.device_fd), "{path}": pair.device_path, _PARENT: str(parent)}
    for name, value in values.items():
        words = tuple(word.replace(name, value) for word in words)
    return list(words)
