# SPDX-License-Identifier: Apache-2.0
"""Size and stack of the firmware's runtime, source by source, as Cortex-M3 code optimised for size.

The compiler is Debian's arm-none-eabi-gcc; what it makes of each file is read from the object's sections (as
`size` counts: text holds constants too) and from GCC's own account of stack frames (-fstack-usage).
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile

from minrpc.bench.rows import Goal, Row, SourceSize
from minrpc.errors import BuildError
from minrpc.firmware.sources import firmware_root
from minrpc.firmware.toolchain import find_tool

COMPILER: Final = "arm-none-eabi-gcc"
_FLAGS: Final = (
    *("-std=c11", "-mcpu=cortex-m3", "-mthumb", "-Os", "-ffunction-sections", "-fdata-sections"),
    *("-fstack-usage", "-c"),
)
_TEXT_GOAL: Final = Goal("at most", 8191, "value")
_RAM_GOAL: Final = Goal("at most", 767, "value")
_PLATFORM: Final = "Cortex-M3, -Os"
# TVM's runtime, which the goal was set against, leaves the timer to the port, and has nothing like these
# additions: device_info, numbered requests, copies longer than the receive buffer, their CRC-32, checks of
# guards and of the configuration, the end of what nobody waits for, code loading. Random fill is an option.
_TIMER: Final = frozenset({"timer.c"})
_ADDITIONS: Final = frozenset(
    {
        *("abandon.c", "code.c", "config.c", "crc32.c", "guard.c", "info.c", "random.c"),
        *("resend.c", "stream.c"),
    }
)
_REFERENCE_TEXT: Final = {"v0.8.0": 14250, "v0.18.0": 16106}

# What a port must hold of the runtime, beside the receive buffer and the arena.
_STATE: Final = """#include <minrpc/server.h>
struct minrpc_server server;
struct minrpc_config config;
"""


def measure() -> list[SourceSize]:
    """Every source of the runtime, by name. Raises ToolchainMissingError, BuildError."""
    runtime = firmware_root() / "zephyr-app" / "runtime"
    with TemporaryDirectory(prefix="minrpc-sizes-") as directory:
        return [_measure(source, runtime, Path(directory)) for source in sorted(runtime.glob("*.c"))]


def state_bytes() -> int:
    """RAM of the runtime's own state: the server and its configuration."""
    runtime = firmware_root() / "zephyr-app" / "runtime"
    with TemporaryDirectory(prefix="minrpc-sizes-") as directory:
        source = Path(directory) / "state.c"
        source.write_text(_STATE)
        return _measure(source, runtime, Path(directory)).bss


def _measure(source: Path, runtime: Path, directory: Path) -> SourceSize:
    target = directory / f"{source.stem}.o"
    include = f"-I{runtime / 'include'}"
    command = [find_tool(COMPILER), *_FLAGS, include, str(source), "-o", str(target)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise BuildError(f"{source.name} did not compile", details=ran.stderr.splitlines()[:6])
    text, data, bss = object_sizes(target)
    functions = stack_frames(target.with_suffix(".su").read_text())
    deepest = max(functions, key=lambda name: functions[name], default="")
    return SourceSize(source.name, text, data, bss, functions.get(deepest, 0), deepest, functions)


def object_sizes(file: Path) -> tuple[int, int, int]:
    """Bytes of text, data and bss in an object file."""
    text = data = bss = 0
    with file.open("rb") as stream:
        for section in ELFFile(stream).iter_sections():
            flags, size = section["sh_flags"], section["sh_size"]
            if not flags & SH_FLAGS.SHF_ALLOC:
                continue
            if section["sh_type"] == "SHT_NOBITS":
                bss += size
            elif flags & SH_FLAGS.SHF_WRITE:
                data += size
            else:
                text += size
    return text, data, bss


def stack_frames(usage: str) -> dict[str, int]:
    """Bytes of each function's frame, from the text of a .su file: "file.c:12:5:name<tab>16<tab>static"."""
    found = re.findall(r"^[^\t\n]*:([^:\t\n]+)\t(\d+)\t", usage, re.MULTILINE)
    return {name: int(frame) for name, frame in found}


def rows(sizes: Sequence[SourceSize], state: int) -> list[Row]:
    """The sums, with their goals."""
    timer = sum(one.text for one in sizes if one.file in _TIMER)
    additions = sum(one.text for one in sizes if one.file in _ADDITIONS)
    common = sum(one.text for one in sizes) - timer - additions
    ram = state + sum(one.data + one.bss for one in sizes)
    reference = " and ".join(f"{size} ({version})" for version, size in _REFERENCE_TEXT.items())
    return [
        _row("text of what TVM's runtime has too", common, _TEXT_GOAL, f"TVM's: {reference}"),
        _row("text of what it has not", additions, None, ", ".join(sorted(_ADDITIONS))),
        _row("text of the timer", timer, None, "TVM leaves it to the port"),
        _row("RAM beside receive buffer and arena", ram, _RAM_GOAL, "server, configuration, static data"),
    ]


def _row(name: str, size: int, goal: Goal | None, note: str) -> Row:
    return Row(group="size", name=name, platform=_PLATFORM, unit="bytes", value=size, goal=goal, note=note)
