# SPDX-License-Identifier: Apache-2.0
"""The part of the user's environment that a build sees. No I/O here.

Each variable that can change the result must be part of the firmware's identity. So a build gets only the
variables listed here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

# Places of programs and their caches; the files found there are inputs of the firmware.
_NOT_COUNTED: Final = frozenset(
    {
        "HOME",
        "LOGNAME",
        "PATH",
        "SHELL",
        "TMPDIR",
        "USER",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
    }
)
_NOT_COUNTED_PREFIX: Final = "CCACHE_"
# Variables that compilers, CMake and Zephyr read and that people set for all their builds.
_COUNTED: Final = frozenset(
    {
        *("CC", "CXX", "CFLAGS", "CXXFLAGS", "ASMFLAGS", "LDFLAGS"),
        *(
            "CPATH",
            "C_INCLUDE_PATH",
            "CPLUS_INCLUDE_PATH",
            "LIBRARY_PATH",
            "COMPILER_PATH",
            "GCC_EXEC_PREFIX",
        ),
        *("LD_LIBRARY_PATH", "PYTHONPATH", "SOURCE_DATE_EPOCH", "CROSS_COMPILE", "EXTRA_ZEPHYR_MODULES"),
        *("ARCH_ROOT", "BOARD_ROOT", "DTS_ROOT", "MODULE_EXT_ROOT", "SNIPPET_ROOT", "SOC_ROOT"),
    }
)
_COUNTED_PREFIXES: Final = ("CMAKE_", "ZEPHYR_")
_COUNTED_SUFFIX: Final = "_TOOLCHAIN_PATH"
# Variables that the build's own command line overrides, or that change only its speed and output.
_DECIDED_HERE: Final = frozenset(
    {
        *(
            "CMAKE_GENERATOR",
            "CMAKE_GENERATOR_PLATFORM",
            "CMAKE_GENERATOR_TOOLSET",
            "CMAKE_GENERATOR_INSTANCE",
        ),
        *("CMAKE_BUILD_PARALLEL_LEVEL", "CMAKE_EXPORT_COMPILE_COMMANDS", "CMAKE_COLOR_DIAGNOSTICS"),
    }
)
_LANGUAGE: Final = {"LC_ALL": "C.UTF-8"}


# Lists of directories that compilers search. An empty element is the working directory.
_SEARCHED: Final = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH")


def searched_from(environ: Mapping[str, str], directory: str) -> dict[str, str]:
    """`environ`, for compilers in any working directory: relative directories start at `directory`."""
    searched = {
        name: ":".join(os.path.join(directory, item) for item in environ[name].split(":"))
        for name in _SEARCHED
        if environ.get(name)
    }
    return {**environ, **searched}


def counted(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that a build gets and that are part of its identity."""
    return {name: environ[name] for name in sorted(environ) if _counts(name)}


def build_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of `environ` that a build gets, with English as the language of its tools."""
    kept = {
        name: value
        for name, value in environ.items()
        if name in _NOT_COUNTED or name.startswith(_NOT_COUNTED_PREFIX)
    }
    return kept | counted(environ) | _LANGUAGE


@lru_cache(maxsize=1024)
def _counts(name: str) -> bool:
    if name in _DECIDED_HERE:
        return False
    return name in _COUNTED or name.startswith(_COUNTED_PREFIXES) or name.endswith(_COUNTED_SUFFIX)
