# SPDX-License-Identifier: Apache-2.0
"""Starts firmware on a core's RTL: a Verilated program beside a file that is its memory."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

from minrpc.errors import ConfigurationError
from minrpc.firmware.firmware import Firmware
from minrpc.host.deadline import ProcessClock
from minrpc.host.process import output_tail, spawn
from minrpc.host.sandbox import program_of
from minrpc.program import Program, read_program
from minrpc.rtl import Recording, model_of
from minrpc.running.links import pair_for_process, starting
from minrpc.running.running_device import RunningDevice, Started
from minrpc.running.shared_memory import SharedMemory

_SYMBOLS = ("_start", "_SEGGER_RTT", "__flash_size", "__ram_size")


def start_rtl(firmware: Firmware) -> RunningDevice:
    """Run `firmware` on its platform's core; see `start`. Raises the errors of `model_of`."""
    platform = firmware.platform
    if platform.rtl is None or platform.memory_at is None:
        raise ConfigurationError(f"{platform.name}: rtl and memory_at are missing")
    wave = firmware.target.wave
    model = model_of(platform.rtl, wave=wave is not None)
    program = read_program(firmware.elf)
    with ExitStack() as undo:
        memory = SharedMemory(platform.memory_at, platform.memory_size)
        undo.callback(memory.close)
        recording = Recording()
        undo.callback(recording.close)
        begin = partial(_spawn, firmware, str(model), program, memory, recording)
        process, link, *_ = begin()
        undo.pop_all()
    return RunningDevice(
        name=platform.name,
        target=firmware.target,
        firmware=firmware,
        transport=link,
        clock=ProcessClock(program_of(process)),
        timing="exact",
        process=process,
        output_tail=output_tail(process, "emulator"),
        memory=memory,
        recording=recording,
        spawn_again=begin,
    )


def _spawn(
    firmware: Firmware, model: str, program: Program, memory: SharedMemory, recording: Recording
) -> Started:
    """A new process of the core with the firmware in its memory, and the link to it."""
    put_image(program, memory)
    with pair_for_process(firmware.target.link) as pair:
        numbers = {
            "fd": pair.device_fd,
            "recording": recording.descriptor,
            "waits": firmware.platform.flash_wait_states,
            **_numbers(program, memory),
        }
        words = [word for name, value in numbers.items() for word in (f"--{name}", str(value))]
        wave = [str(firmware.target.wave)] if firmware.target.wave else []
        descriptors = [pair.device_fd, memory.descriptor, recording.descriptor]
        with starting(firmware.platform.name, model):
            process = spawn([model, *words, *wave], pass_fds=descriptors, foreign=True)
    return Started(process, pair.transport)


def put_image(program: Program, memory: SharedMemory) -> None:
    """Writes the program's code, constants and initial data into the memory."""
    for address, content in program.elf.loaded():
        segment = next(item for item in program.elf.segments if 0 <= address - item.address < item.stored)
        memory.write(address - segment.address + segment.loaded_at, content)


def _numbers(program: Program, memory: SharedMemory) -> dict[str, int]:
    """Arguments of the core's program for this firmware."""
    entry, rtt, flash, ram = (
        next(symbol.value for symbol in program.elf.symbols if symbol.name == name) for name in _SYMBOLS
    )
    return {
        "memory": memory.descriptor,
        "base": memory.base,
        "size": memory.size,
        "flash-size": flash,
        "ram-size": ram,
        "entry": entry,
        "rtt": rtt,
    }
