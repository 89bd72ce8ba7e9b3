# SPDX-License-Identifier: Apache-2.0
"""Where a device has crashed: the addresses of its last words, as functions and lines of its firmware."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import Final

from minrpc.counters.image import Image
from minrpc.firmware.firmware import Firmware

# As the ports say it: "fatal: HardFault at pc 0x1a2c, lr 0x17e1, ...".
_LAST_WORDS: Final = re.compile(r"fatal: .*")
_ADDRESS: Final = re.compile(r"\b(pc|lr|ra|sepc|mepc|epc) (0x[0-9a-f]+)")
# Older words are of another crash: they are not near the end.
_LINES: Final = 12
# QEMU's registers of an Arm core that has locked up.
_STACK_POINTER: Final = re.compile(r"\bR13=([0-9a-f]{8})\b")
_RISCV_STACK_POINTER: Final = re.compile(r"\bx2/sp +([0-9a-f]+)\b")
_WHY: Final = "endless recursion, or arrays on the stack that are too large"


def crash_places(firmware: Firmware, console: str) -> list[str]:
    """What the addresses in a crash's last words are: "pc 0x1a2c is in crash, at testing.c:41".

    console: what the device printed; a crash that is not near its end is not looked at.
    """
    addresses = last_addresses(console)
    if not addresses:
        return []
    image = Image(firmware.elf)
    found = []
    for register, address in addresses:
        # A return address is behind its call; its lowest bit says Thumb on Arm.
        looked_up = (address & ~1 if image.shift else address) - (register != "pc" and register != "mepc")
        function = image.function_at(looked_up)
        if function is not None:
            line = image.program.line_at(looked_up)
            at = f", at {_shown(firmware.source(line.file))}:{line.number}" if line else ""
            found.append(f"{register} 0x{address:x} is in {function.name}{at}")
    return found


def last_addresses(console: str) -> list[tuple[str, int]]:
    """The registers that a crash's last words name, with what was in them; none when that is far up."""
    words = _LAST_WORDS.findall("\n".join(console.splitlines()[-_LINES:]))
    return [(register, int(text, 16)) for register, text in _ADDRESS.findall(words[-1])] if words else []


def stack_overflow(firmware: Firmware, output: str, status: int | None) -> list[str]:
    """Whether the stack has run out, as what an emulator prints at its end tells; or a process may have died.

    output: what QEMU printed: "R13=1ed31e68". status: with which the process ended.
    """
    pointer = _STACK_POINTER.search(output)
    if pointer is not None:
        low, high = Image(firmware.elf).stack
        at = int(pointer[1], 16)
        if high and not low <= at <= high:
            return [f"the stack ran out: its pointer is 0x{at:x}, the stack 0x{low:x} to 0x{high:x}: {_WHY}"]
    if status == -signal.SIGSEGV:
        return [f"a wrong address was used, or the stack ran out: {_WHY}"]
    return []


def below_memory(firmware: Firmware, registers: str) -> list[str]:
    """Whether a stack has run through all of the memory: its pointer is below whatever the program writes.

    registers: as QEMU's `info registers` prints them. A processor that takes faults on the same stack, as
    RISC-V does, can't say so itself.
    """
    pointer = _RISCV_STACK_POINTER.search(registers)
    if pointer is None:
        return []
    at = int(pointer[1], 16)
    lowest = min((one.base for one in Image(firmware.elf).regions if one.kind == "ram"), default=0)
    if at >= lowest:
        return []
    return [f"the stack ran out: its pointer is 0x{at:x}, the memory begins at 0x{lowest:x}: {_WHY}"]


def _shown(path: Path) -> Path:
    """Short where it lies below the working directory."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
