# SPDX-License-Identifier: Apache-2.0
"""Size and stack of the firmware's runtime, source by source, as Cortex-M3 code optimised for size.

The compiler is Debian's arm-none-eabi-gcc; what it makes of each file is read from the object's sections (as
`size` counts: text holds constants too) and from GCC's own account of stack frames (-fstack-usage).
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from minrpc.errors import BuildError
from minrpc.firmware.sources import firmware_root
from minrpc.firmware.toolchain import find_tool
from minrpc.program import Elf

from minrpc_bench.rows import Goal, Row, SourceSize

COMPILER: Final = "arm-none-eabi-gcc"
_FLAGS: Final = (
    *("-std=c11", "-mcpu=cortex-m3", "-mthumb", "-Os", "-ffunction-sections", "-fdata-sections"),
    *("-fstack-usage", "-c", "--specs=picolibc.specs"),
)
_TEXT_GOAL: Final = Goal("at most", 8191, "value")
_TIMER_GOAL: Final = Goal("at most", 550, "value")
_RAM_GOAL: Final = Goal("at most", 767, "value")
_PLATFORM: Final = "Cortex-M3, -Os"
# TVM's runtime, which the goal was set against, leaves the timer to the port.
_TIMER: Final = "timer.c"
_REFERENCE_TEXT: Final = {"v0.8.0": 14250, "v0.18.0": 16106}
_OPTION: Final = re.compile(r"^#define MINRPC_(\w+) ([01])$", re.MULTILINE)

# What a port must hold of the runtime, beside the receive buffer and the arena.
_STATE: Final = """#include <minrpc/server.h>
struct minrpc_server server;
struct minrpc_config config;
"""


class Sizes(NamedTuple):
    """What the runtime takes.

    sources: each of its files as it is built when nothing is said.
    state: bytes of RAM of its own state, the server and its configuration.
    bare: bytes of text without any option, and without the timer.
    options: what each option adds to the text of a build that has the others' defaults.
    """

    sources: list[SourceSize]
    state: int
    bare: int
    options: dict[str, int]


def measure() -> Sizes:
    """Compiles the runtime with its options on and off. Raises ToolchainMissingError, BuildError."""
    runtime = firmware_root() / "zephyr-app" / "runtime"
    defaults = default_options((runtime / "include/minrpc/minrpc_config.h").read_text())
    with TemporaryDirectory(prefix="minrpc-sizes-") as directory:
        there = Path(directory)
        sources = _compile(runtime, there, {})
        state = there / "state.c"
        state.write_text(_STATE)
        usual = _text(sources)
        changed = {
            name: _text(_compile(runtime, there, {name: 1 - value})) for name, value in defaults.items()
        }
        return Sizes(
            sources,
            _measure(state, runtime, there, {}).bss,
            _text(_compile(runtime, there, dict.fromkeys(defaults, 0))),
            {name: abs(text - usual) for name, text in changed.items()},
        )


def default_options(header: str) -> dict[str, int]:
    """The options of minrpc/minrpc_config.h, 0 or 1, that make a difference to the runtime itself."""
    return {name: int(value) for name, value in _OPTION.findall(header) if name != "TESTING"}


def _text(sources: Sequence[SourceSize]) -> int:
    return sum(source.text for source in sources if source.file != _TIMER)


def _compile(runtime: Path, directory: Path, options: Mapping[str, int]) -> list[SourceSize]:
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        found = [
            threads.submit(_measure, source, runtime, directory, options)
            for source in sorted(runtime.glob("*.c"))
        ]
        return [item.result() for item in found]


def _measure(source: Path, runtime: Path, directory: Path, options: Mapping[str, int]) -> SourceSize:
    target = directory / f"{source.stem}.o"
    given = [f"-DMINRPC_{name}={value}" for name, value in options.items()]
    include = f"-I{runtime / 'include'}"
    command = [find_tool(COMPILER), *_FLAGS, *given, include, str(source), "-o", str(target)]
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
    for section in Elf(file.read_bytes()).sections:
        if not section.allocated:
            continue
        if not section.stored:
            bss += section.size
        elif section.writable:
            data += section.size
        else:
            text += section.size
    return text, data, bss


def stack_frames(usage: str) -> dict[str, int]:
    """Bytes of each function's frame, from the text of a .su file: "file.c:12:5:name<tab>16<tab>static"."""
    found = re.findall(r"^[^\t\n]*:([^:\t\n]+)\t(\d+)\t", usage, re.MULTILINE)
    return {name: int(frame) for name, frame in found}


def rows(sizes: Sizes) -> list[Row]:
    """The sums, with their goals."""
    timer = sum(source.text for source in sizes.sources if source.file == _TIMER)
    ram = sizes.state + sum(source.data + source.bss for source in sizes.sources)
    reference = " and ".join(f"{size} ({version})" for version, size in _REFERENCE_TEXT.items())
    return [
        _row("text without options", sizes.bare, _TEXT_GOAL, f"all files but the timer; TVM's: {reference}"),
        _row("text with the defaults", _text(sizes.sources), None, "all files but the timer"),
        *(
            _row(f"text of {name.lower()}", size, None, "the option of minrpc_config.h")
            for name, size in sizes.options.items()
        ),
        _row("text of the timer", timer, _TIMER_GOAL, "TVM leaves it to the port"),
        _row("RAM beside receive buffer and arena", ram, _RAM_GOAL, "server, configuration, static data"),
    ]


def _row(name: str, size: int, goal: Goal | None, note: str) -> Row:
    return Row(group="size", name=name, platform=_PLATFORM, unit="bytes", value=size, goal=goal, note=note)
