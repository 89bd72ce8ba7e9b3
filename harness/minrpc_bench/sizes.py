# SPDX-License-Identifier: Apache-2.0
"""Size and stack of the firmware's runtime, source by source, as Cortex-M3 code optimised for size.

The compiler is Debian's arm-none-eabi-gcc. Sizes are sums of the object's sections, as `size` counts: text
holds constants too. GCC reports the frames (-fstack-usage).
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from minrpc.errors import BuildError
from minrpc.firmware.sources import firmware_root
from minrpc.firmware.toolchain import find_tool
from minrpc.library.stack_bound import stack_frames
from minrpc.program.objects import section_sizes

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
# TVM's runtime, on which the goal is based, leaves the timer to the port.
_TIMER: Final = "timer.c"
_REFERENCE_TEXT: Final = {"v0.8.0": 14250, "v0.18.0": 16106}
_OPTION: Final = re.compile(r"^#define MINRPC_(\w+) ([01])$", re.MULTILINE)

# RAM that a port needs for the runtime, without the receive buffer and the arena.
_STATE: Final = """#include <minrpc/server.h>
struct minrpc_server server;
struct minrpc_config config;
"""


class Sizes(NamedTuple):
    """Sizes of the runtime, in bytes.

    sources: each of its files, built with the default options.
    state: RAM of its own state, the server and its configuration.
    bare: text without any option, and without the timer.
    options: text that each option adds to a build with the defaults of all other options.
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
        own = _measure(state, runtime, there, {}).bss
        bare = _text(_compile(runtime, there, dict.fromkeys(defaults, 0)))
        options = {
            name: abs(_text(_compile(runtime, there, {name: 1 - value})) - usual)
            for name, value in defaults.items()
        }
        return Sizes(sources, own, bare, options)


def default_options(header: str) -> dict[str, int]:
    """The options of minrpc/minrpc_config.h, 0 or 1, that change the runtime itself."""
    return {name: int(value) for name, value in _OPTION.findall(header) if name != "TESTING"}


def _text(sources: Sequence[SourceSize]) -> int:
    return sum(source.text for source in sources if source.file != _TIMER)


def _compile(runtime: Path, directory: Path, options: Mapping[str, int]) -> list[SourceSize]:
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        measure_file = partial(_measure, runtime=runtime, directory=directory, options=options)
        return list(threads.map(measure_file, sorted(runtime.glob("*.c"))))


def _measure(source: Path, runtime: Path, directory: Path, options: Mapping[str, int]) -> SourceSize:
    target = directory / f"{source.stem}.o"
    given = [f"-DMINRPC_{name}={value}" for name, value in options.items()]
    include = f"-I{runtime / 'include'}"
    command = [find_tool(COMPILER), *_FLAGS, *given, include, str(source), "-o", str(target)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise BuildError(f"{source.name} did not compile", details=ran.stderr.splitlines()[:6])
    frames = stack_frames(target.with_suffix(".su"))
    deepest = max(frames, key=lambda name: frames[name], default="")
    return SourceSize(source.name, *section_sizes(target), frames.get(deepest, 0), deepest)


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
