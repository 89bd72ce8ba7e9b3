# SPDX-License-Identifier: Apache-2.0
"""Starts QEMU paused, opens the link, then lets the machine run.

QEMU gets its link, its console and its monitor as inherited descriptors: there is no socket file to wait for
or to remove. For a link over a pty, this process makes the pair and QEMU opens the slave as a host serial
port. QEMU's `-chardev pty` drops the guest's output while no process listens, and sometimes polls the pty
only once a second.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import IO, Final

from minrpc.counters import QemuCounters, step_after_refusal
from minrpc.counters.plugin_memory import PluginMemory
from minrpc.errors import HarnessError, QemuMissingError
from minrpc.firmware.firmware import Firmware
from minrpc.host.deadline import Deadline, ProcessClock
from minrpc.host.process import TextTail, output_tail, spawn
from minrpc.host.sandbox import program_of
from minrpc.replay import MemoryCheck
from minrpc.running.links import LinkPair, limit_reads, open_pair, starting
from minrpc.running.qemu_monitor import QemuMonitor
from minrpc.running.running_device import RunningDevice, Started
from minrpc.running.shared_memory import SharedMemory, memory_size, qemu_arguments
from minrpc.targets.qemu_command import Icount, Wiring, log_of_strays, processors_of, wire
from minrpc.targets.table import Platform
from minrpc.transport import FdTransport

_START_S: Final = 30.0
# The longest read of a guest with semihosting.
_READ_TENTHS: Final = 1


def start_qemu(
    firmware: Firmware,
    icount: Icount | None,
    counters: QemuCounters | None,
    check: MemoryCheck | None,
    total: Deadline | None,
) -> RunningDevice:
    """Run `firmware` in QEMU; see `start`."""
    argv, platform = machine(firmware), firmware.platform
    plugins = [item for item in (counters, check.recorder if check else None) if item is not None]
    with ExitStack() as undo:
        memory = _shared_memory(firmware, argv)
        if memory is not None:
            undo.callback(memory.close)
        begin = partial(_spawn, firmware, argv=argv, icount=icount, plugins=plugins, memory=memory)
        started = begin()
        device = RunningDevice(
            name=platform.name,
            target=firmware.target,
            firmware=firmware,
            transport=started.link,
            clock=ProcessClock(program_of(started.process)),
            timing="exact" if icount else "wall",
            icount=icount,
            process=started.process,
            console_tail=TextTail(started.console, "console") if started.console else None,
            output_tail=output_tail(started.process, "emulator"),
            qemu=started.qemu,
            memory=memory,
            counters=counters,
            access_check=check,
            spawn_again=begin,
            tells_strays=bool(log_of_strays(argv)),
        )
        undo.callback(device.stop)
        _run(device, argv[0], started, Deadline("start QEMU", _START_S, device.clock, total))
        undo.pop_all()
    return device


def machine(firmware: Firmware) -> list[str]:
    """QEMU's command line without link and console: Zephyr's own with the platform's program, else the
    platform's."""
    platform = firmware.platform
    own = [platform.qemu, *platform.qemu_args, "-kernel", str(firmware.elf)]
    name, *words = firmware.qemu_argv or own
    # A bare name of a Zephyr platform is the one that Zephyr gives the path of, which a build can outlive.
    is_named = platform.qemu not in ("", Path(name).name)
    program = shutil.which(platform.qemu) if is_named else shutil.which(name) or shutil.which(platform.qemu)
    if program is None:
        raise QemuMissingError(f"{platform.qemu or name} is not installed", stage="start QEMU")
    return [program, *words]


def _spawn(
    firmware: Firmware,
    argv: list[str],
    icount: Icount | None,
    plugins: Sequence[PluginMemory],
    memory: SharedMemory | None,
) -> Started:
    """A new QEMU, which is paused, with this process's ends."""
    platform = firmware.platform
    extra = [word for plugin in plugins for word in plugin.arguments(argv[0])]
    descriptors = [number for plugin in plugins for number in plugin.descriptors]
    if memory is not None:
        extra += qemu_arguments(memory)
        descriptors.append(memory.descriptor)
    with ExitStack() as undo:
        pair = open_pair(firmware.target.link)
        undo.callback(pair.close)
        ours, theirs = socket.socketpair()
        undo.callback(ours.close)
        console_read, console_write = os.pipe()
        undo.callback(os.close, console_read)
        by_uart = platform.firmware_link == "uart"
        with theirs, os.fdopen(console_write, "wb", buffering=0), starting(platform.name, argv[0]):
            wiring = Wiring(
                link=_backend(pair) if by_uart else "null",
                link_uart=platform.link_uart if by_uart else None,
                console=f"file,path=/dev/fd/{console_write}",
                console_uart=platform.console_uart,
                monitor_fd=theirs.fileno(),
            )
            # Each byte on the link passes between two threads, of QEMU's main loop and of its virtual CPU: on
            # one host CPU this takes a third to a half of the time.
            process = spawn(
                [*wire(argv, wiring, icount), *log_of_strays(argv), *extra],
                link=None if by_uart else pair.device_fd,
                pass_fds=(pair.device_fd, console_write, theirs.fileno(), *descriptors),
                on_one_cpu=processors_of(argv) == 1,
                foreign=True,
            )
        undo.pop_all()
    return Started(
        process,
        pair.transport,
        QemuMonitor(ours, nullcontext if by_uart else partial(_short_reads, pair.transport)),
        _console(console_read, platform),
        pair.release_device_end,
    )


@contextmanager
def _short_reads(link: FdTransport) -> Iterator[None]:
    """For the block: reads of the guest, during which QEMU's monitor does not answer, return at once."""
    limit_reads(link, 0)
    try:
        yield
    finally:
        limit_reads(link, _READ_TENTHS)


def _backend(pair: LinkPair) -> str:
    return f"serial,path={pair.device_path}" if pair.device_path else f"socket,fd={pair.device_fd}"


def _shared_memory(firmware: Firmware, argv: list[str]) -> SharedMemory | None:
    """The machine's main memory, if the platform's table allows sharing it."""
    platform = firmware.platform
    size = platform.memory_size or memory_size(argv)
    if not firmware.target.direct or platform.memory_at is None or not size:
        return None
    return SharedMemory(platform.memory_at, size)


def _console(descriptor: int, platform: Platform) -> IO[bytes] | None:
    """The console's output; None for a machine whose text comes over the link."""
    console = os.fdopen(descriptor, "rb", buffering=0)
    if platform.console_uart is None:
        console.close()
        return None
    return console


def _run(device: RunningDevice, program: str, started: Started, deadline: Deadline) -> None:
    """Lets the paused machine of `program`, QEMU, run."""
    try:
        device.run(started, deadline)
    except HarnessError as error:
        told = device.diagnose(error).add_context(stage=deadline.stage)
        told.next_step = step_after_refusal(device.output, program) or told.next_step
        raise told from error
