# SPDX-License-Identifier: Apache-2.0
"""Finds the errors in the log of a failed build: the first real error in full, and advice."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_LINES: Final = 12

# Progress of CMake and ninja, not errors, though it names files such as strerror.c.
_NEWS: Final = re.compile(r"-- |\[\d+/\d+\] |\$ ")
# ninja's messages, and the command that failed, which is long and gives no reason.
_NINJA: Final = re.compile(
    r"FAILED: |ninja: |: && |cd .* && |(?:ccache )?/\S*(?:gcc|cc|g\+\+|clang)(?:-\d+)? "
)
_COMPILER: Final = re.compile(
    r"\S+:\d+(?::\d+)?: (?:fatal )?error: |cc1: (?:\w+ )?error: |\S*gcc: (?:fatal )?error: "
)
_DEVICETREE: Final = re.compile(
    r"devicetree error: |\S+\.(?:dts|dtsi|overlay)\S*:\d+.*(?:error|ERROR)|Error: \S+\.dts"
)
_LINKER: Final = re.compile(
    r"(?:\S*/)?(?:ld(?:\.\w+)?|collect2): "
    r"|.*: (?:undefined reference|multiple definition|relocation truncated)"
    r"|.*region `\S+' overflowed"
)
_NOT_WRONG: Final = re.compile(
    r".*(?:warning: |NOTE: |note: |skipping incompatible )|collect2: error: ld returned"
)
_CMAKE: Final = re.compile(r"CMake Error")
_CMAKE_END: Final = re.compile(r"Call Stack|CMake (?:Error|Warning)|-- Configuring incomplete")
_CMAKE_RAN: Final = re.compile(r"command failed with return code|Command failed")
# Output of Zephyr's configuration before the part that may have an error.
_KCONFIG_NEWS: Final = re.compile(
    r"Parsing |Loaded configuration |Merged configuration |Configuration saved|Kconfig header"
)
# Zephyr treats these warnings as errors, and reports them far below.
_KCONFIG_WARNING: Final = re.compile(r"warning: |\S*(?:Kconfig|\.conf|defconfig)\S*: warning: ")
_KCONFIG_ABORTED: Final = "Aborting due to Kconfig warnings"
_OTHER: Final = re.compile(
    r"FATAL ERROR: |.*\bError: |.*error: |.*: not found|.*No such file|.*cannot find|.*aborting|\w+\.py: "
)

_OVERFLOWED: Final = re.compile(r"region `(\w+)' overflowed by (\d+) bytes")
# A line of the table of memories at the head of a linker's map.
_REGION: Final = re.compile(r"(?m)^(\w+) +0x[0-9a-f]+ +0x([0-9a-f]+)\b")
_ARENA: Final = re.compile(r"(?m)^CONFIG_MINRPC_ARENA_(SIZE|SHARE)=(\d+)$")
_ARENA_STEP: Final = 64

_FLASH_FULL: Final = (
    "options that are on take flash, see docs/c-library.md: the largest are off by "
    "-DCONFIG_MINRPC_CODE_LOADING=n and -DCONFIG_MINRPC_ERROR_TEXTS=n in cmake_options"
)

# CMake's list of the variables given to it that nothing has read.
_UNREAD: Final = re.compile(r"variables were not used by the project:\n\n((?: +\S+\n)+)")

_ADVICE: Final = (
    (
        re.compile(r"VM size is too small"),
        "the memory is full: -DCONFIG_MINRPC_ARENA_SHARE=N gives a smaller percentage to arrays, "
        "-DCONFIG_MINRPC_ARENA_SIZE=N a size in bytes",
    ),
    (
        re.compile(r"multiple definition of [`']"),
        "the firmware has that name itself, such as `main`, or another file has it: with `linked = false` a "
        "library of minrpc.toml is not linked into the firmware, but loaded when it is used",
    ),
    (re.compile(r"GPERF-NOTFOUND"), "gperf is missing: sudo apt-get install gperf"),
    (
        re.compile(r"cannot find -lgcc|libgcc\.a\S* file class ELFCLASS64 incompatible"),
        "this compiler has no libgcc for the processor's word size: use the Zephyr SDK",
    ),
)


def first_errors(log: str, linker_map: str = "", config: str = "") -> list[str]:
    """The lines of a build's log with the first error, else its last lines; then advice, if any.

    linker_map, config: the linker's map and Zephyr's configuration, with the sizes of a memory that is full.
    """
    lines = [line.rstrip() for line in log.splitlines() if line.strip()]
    errors = (
        _block(lines, _COMPILER)
        or _block(lines, _DEVICETREE)[:1]
        or _linker(lines)
        or _configuration(lines)
        or _block(lines, _OTHER)
        or [line for line in lines if not _is_noise(line)][-_LINES // 2 :]
    )
    return (
        errors
        + _too_small(log, linker_map, config)
        + [text for pattern, text in _ADVICE if pattern.search(log)]
    )


def unread_option(log: str, options: Sequence[str]) -> tuple[str, str] | None:
    """The first option without effect, and its variable, which no CMake file has read; None without any.

    log: of CMake's run. options: of CMake's. Kconfig's options are left out: options for all platforms of a
    project may have some, and a platform without Kconfig reads none.
    """
    listed = (name for names in _UNREAD.findall(log) for name in names.split())
    unread = {name for name in listed if not name.startswith("CONFIG_")}
    named = ((option, re.split("[:=]", option.removeprefix("-D").strip())[0]) for option in options)
    return next(((option, name) for option, name in named if name in unread), None)


def _too_small(log: str, linker_map: str, config: str) -> list[str]:
    """For each memory that Zephyr's firmware does not fit into: the sizes, and advice."""
    sizes = {name: int(size, 16) for name, size in _REGION.findall(linker_map)}
    lines: list[str] = []
    for name, bytes_over in dict(_OVERFLOWED.findall(log)).items():
        if name in sizes and config:
            over, size = int(bytes_over), sizes[name]
            lines.append(f"{name} has {size:,} bytes, the firmware needs {size + over:,} bytes")
            lines.append(_ram_advice(over, size, config) if "RAM" in name else _FLASH_FULL)
    return lines


def _ram_advice(over: int, size: int, config: str) -> str:
    given = {name: int(value) for name, value in _ARENA.findall(config)}
    arena = given.get("SIZE") or size // 100 * given.get("SHARE", 0) // _ARENA_STEP * _ARENA_STEP
    left = (arena - over) // _ARENA_STEP * _ARENA_STEP
    if left <= 0:
        return f"arrays take {arena:,} of these bytes: also without arrays the board has too little RAM"
    return f"arrays take {arena:,} of these bytes: -DCONFIG_MINRPC_ARENA_SIZE={left} makes it fit"


def _is_noise(line: str) -> bool:
    return bool(_NEWS.match(line) or _NINJA.match(line))


def _block(lines: Sequence[str], begin: re.Pattern[str]) -> list[str]:
    """The first line that `begin` matches, and the lines after it up to the next progress or error."""
    first = next(
        (index for index, line in enumerate(lines) if not _is_noise(line) and begin.match(line)), None
    )
    if first is None:
        return []
    rest = lines[first + 1 : first + _LINES]
    ends = [index for index, line in enumerate(rest) if _is_noise(line) or begin.match(line)]
    return [lines[first], *(rest[: ends[0]] if ends else rest)]


def _linker(lines: Sequence[str]) -> list[str]:
    """All errors of the linker, each once, without warnings."""
    said = (
        line for line in lines if not _is_noise(line) and _LINKER.match(line) and not _NOT_WRONG.match(line)
    )
    return list(dict.fromkeys(said))[:_LINES]


def _configuration(lines: Sequence[str]) -> list[str]:
    """CMake's first error; for a command that failed, the command's output."""
    first = next((index for index, line in enumerate(lines) if _CMAKE.match(line)), None)
    if first is None:
        return []
    rest = lines[first + 1 :]
    end = next((index for index, line in enumerate(rest) if _CMAKE_END.match(line)), len(rest))
    error = [lines[first], *rest[:end]][:_LINES]
    if not any(_CMAKE_RAN.search(line) for line in error):
        return error
    warned = [line for line in lines[:first] if _KCONFIG_WARNING.match(line)]
    aborted = [line for line in lines[:first] if _KCONFIG_ABORTED in line]
    if warned and aborted:
        return [*warned[:_LINES], *aborted]
    begin = max(
        (i for i in range(first) if _NEWS.match(lines[i]) or _KCONFIG_NEWS.match(lines[i])), default=-1
    )
    return list(lines[begin + 1 : first][:_LINES]) or error
