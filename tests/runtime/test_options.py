# SPDX-License-Identifier: Apache-2.0
"""Each option of the runtime on and off: it compiles without a warning, and parts that are off are absent."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.native import need_tools

APP = Path(__file__).parents[2] / "zephyr-app"
SOURCES = sorted([*(APP / "runtime").glob("*.c"), *(APP / "operators").glob("*.c")])

# Each option of minrpc/minrpc_config.h, and the symbols that exist only for this option.
OPTIONS = {
    "NUMBERED": "minrpc_resend_accept",
    "STREAMING": "minrpc_stream",
    "RANDOM_FILL": "minrpc_random_fill",
    "FILL": "minrpc_checksum",
    "ERROR_TEXTS": "minrpc_fail",
    "GUARDS": "minrpc_arena_inspect",
    "DEVICE_INFO": "minrpc_device_info",
    "COUNTING": "minrpc_evaluator_create_counting",
    "ABANDON": "minrpc_is_abandoned",
    "CONFIG_CHECKS": "minrpc_check_config",
    "TESTING": "minrpc_testing_hang",
    "CODE_LOADING": "minrpc_code_load",
    "ASK": "minrpc_ask",
    "LAYOUT": "minrpc_layout",
    "COUNTERS": "minrpc_counters_list",
}


def symbols(directory: Path, **options: int) -> dict[str, str]:
    """Symbols that the runtime built with these options defines (T, R, ...) or needs (U)."""
    need_tools("cc", "nm")
    definitions = [f"-DMINRPC_{name}={value}" for name, value in options.items()]
    includes = [f"-I{APP / 'runtime/include'}", f"-I{APP / 'operators'}"]
    warnings = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-ffunction-sections", "-fdata-sections"]
    for part in ("runtime", "operators"):
        (directory / part).mkdir()
        sources = [str(source) for source in SOURCES if source.parent.name == part]
        command = ["cc", *warnings, *definitions, *includes, "-c", *sources]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=directory / part)
        assert done.returncode == 0, done.stderr
    objects = [str(path) for path in sorted(directory.glob("*/*.o"))]
    # One object, so that symbols of its other files are no longer undefined.
    whole = str(directory / "whole.o")
    subprocess.run(["ld", "-r", *objects, "-o", whole], check=True)
    listed = subprocess.run(["nm", whole], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1]: line.split()[-2] for line in listed.splitlines()}


def test_options_are_the_same_in_c_cmake_kconfig_and_on_the_page() -> None:
    def names(path: Path, pattern: str) -> set[str]:
        return set(re.findall(pattern, path.read_text(), re.MULTILINE)) - {"TESTING"}

    root = APP.parent
    header = names(APP / "runtime/include/minrpc/minrpc_config.h", r"^#define MINRPC_(\w+) [01]$")
    assert header == set(OPTIONS) - {"TESTING"}
    assert names(root / "docs/c-library.md", r"^\| `MINRPC_(\w+)` ") == header
    assert names(root / "zephyr/Kconfig", r"^config MINRPC_(\w+)\n\tbool") >= header
    cmake = (APP / "options.cmake").read_text().partition("set(MINRPC_OPTIONS ")[2].partition(")")[0]
    assert set(cmake.split()) == header


@pytest.mark.slow
@pytest.mark.parametrize("option", OPTIONS)
def test_what_is_off_is_not_there(option: str, tmp_path: Path) -> None:
    off = symbols(tmp_path, **{option: 0})
    assert OPTIONS[option] not in off
    assert not [name for name, kind in off.items() if kind == "U" and name.startswith("minrpc_")]


def test_all_off(tmp_path: Path) -> None:
    off = symbols(tmp_path, **dict.fromkeys(OPTIONS, 0))
    assert not off.keys() & set(OPTIONS.values())
    assert not [name for name, kind in off.items() if kind == "U" and name.startswith("minrpc_")]


def test_all_on(tmp_path: Path) -> None:
    """Every global name has the prefix or is TVM's, so that no name collides with a user's program."""
    on = symbols(tmp_path, **dict.fromkeys(OPTIONS, 1))
    assert {on.get(name) for name in OPTIONS.values()} == {"T"}
    defined = {name for name, kind in on.items() if kind in "TRDBC"}
    assert not [name for name in defined if not name.startswith(("minrpc_", "TVM"))]
