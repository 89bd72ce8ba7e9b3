# SPDX-License-Identifier: Apache-2.0
"""The origin of a run's numbers: firmware, compiler, emulator, machine."""

from __future__ import annotations

import platform as machine
from functools import cache

from minrpc.errors import MissingError
from minrpc.firmware import Firmware
from minrpc.host.process import ask_tool
from minrpc.program.compiler import compiler_of
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
        ran = ask_tool([program, "--version"])
    except MissingError:
        return ""
    return next(iter(ran.stdout.splitlines()), "")


@cache
def commit() -> str:
    """The commit of this directory's work tree, with "+" if a file differs from it; "" if there is none."""
    command = ["git", "describe", "--always", "--exclude=*", "--abbrev=12", "--dirty=+"]
    try:
        ran = ask_tool(command)
    except MissingError:
        return ""
    return ran.stdout.strip() if ran.returncode == 0 else ""


def about_here() -> dict[str, str]:
    """Facts about this program and this machine."""
    return {
        "minrpc": package_version(),
        "Python": machine.python_version(),
        "machine": machine.platform(),
    }
