# SPDX-License-Identifier: Apache-2.0
"""The origin of a run's numbers: firmware, compiler, emulator, machine."""

from __future__ import annotations

import platform as machine
import subprocess

from minrpc.firmware import Firmware
from minrpc.library.compiling import Compiled
from minrpc.program.compiler import Compiler, compiler_of, compiler_of_object
from minrpc.program.elf import Elf
from minrpc.reports.document import package_version
from minrpc.sizes import program_sizes
from minrpc.timing.record import FirmwareRecord


def firmware_record(firmware: Firmware, *, symbols: bool = False) -> FirmwareRecord:
    """The record of a firmware. symbols: True to include its symbols."""
    compiler, sizes = compiler_of(firmware.elf), firmware.sizes
    return FirmwareRecord(
        content_hash=firmware.content_hash,
        compiler=compiler.name,
        flags=compiler.flags,
        flash=sizes.flash,
        ram=sizes.ram,
        floating_point=firmware.floating_point,
        symbols=program_sizes(firmware.elf, files=False).by_symbol() if symbols else {},
    )


def code_compiler(compiled: Compiled) -> Compiler:
    """The compiler of loaded code, from its first source's debug information, with the caller's options."""
    first = next((object_file for object_file in compiled.own_objects if object_file.suffix == ".o"), None)
    if first is None:
        return Compiler("", " ".join(compiled.options))
    found = compiler_of_object(Elf(first.read_bytes()))
    given = [
        option
        for option in compiled.options
        if option not in found.flags.split() and not option.startswith("-O")
    ]
    return Compiler(found.name, " ".join([found.flags, *given]).strip())


def platform_facts(firmware: Firmware) -> dict[str, str]:
    """A platform's facts for a report's readers."""
    platform, compiler = firmware.platform, compiler_of(firmware.elf)
    emulator = {"emulator": qemu_version(platform.qemu)} if platform.starts == "qemu" else {}
    return {
        "description": platform.description,
        **emulator,
        "compiler": compiler.name,
        "flags": compiler.flags,
        "floating point": firmware.floating_point,
        "firmware": firmware.content_hash[:16],
    }


def qemu_version(program: str) -> str:
    """The first line of QEMU's version; "" if the program can't be run."""
    try:
        ran = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return next(iter(ran.stdout.splitlines()), "")


def about_here() -> dict[str, str]:
    """Facts about this program and this machine."""
    return {
        "minrpc": package_version(),
        "Python": machine.python_version(),
        "machine": machine.platform(),
    }
