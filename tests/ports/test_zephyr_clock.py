# SPDX-License-Identifier: Apache-2.0
"""The rate of the Zephyr port's coarse clock, compiled for this machine."""

from __future__ import annotations

import ctypes
import subprocess
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st
from minrpc.firmware import firmware_root

from tests.native import need_tools

PORT = firmware_root() / "zephyr-app" / "ports" / "zephyr"
SOURCE = '#include "ticks.h"\nuint64_t f(uint64_t c, uint64_t t)\n{\n\treturn minrpc_tick_hz(c, t);\n}\n'


@pytest.fixture(scope="module")
def tick_hz(tmp_path_factory: pytest.TempPathFactory) -> ctypes._NamedFuncPointer:
    need_tools("cc")
    library = tmp_path_factory.mktemp("ticks") / "ticks.so"
    command = ["cc", "-std=c11", "-Wall", "-Werror", "-shared", "-fPIC", f"-I{PORT}", "-x", "c", "-"]
    subprocess.run([*command, "-o", str(library)], input=SOURCE.encode(), check=True)
    function = ctypes.CDLL(str(library)).f
    function.argtypes, function.restype = (ctypes.c_uint64, ctypes.c_uint64), ctypes.c_uint64
    return function


@pytest.mark.parametrize(
    ("ticks_hz", "asked_hz", "real_hz"),
    [
        (32_768, 1_000, 1_024),
        (32_768, 100, 100),
        (32_768, 10_000, 10_923),
        (25_000_000, 100, 100),
        (12_500_000, 10_000, 10_000),
        (100, 1_000, 100),
    ],
)
def test_known_rates(tick_hz: ctypes._NamedFuncPointer, ticks_hz: int, asked_hz: int, real_hz: int) -> None:
    assert tick_hz(ticks_hz, asked_hz) == real_hz


@given(ticks_hz=st.integers(1_000, 10**10), asked_hz=st.integers(1, 100_000))
def test_a_tick_is_whole_cycles(tick_hz: ctypes._NamedFuncPointer, ticks_hz: int, asked_hz: int) -> None:
    """The error is at most half a tick a second, far below the 1/64 from which a counter counts as wrong."""
    cycles = max(ticks_hz // asked_hz, 1)
    assert abs(tick_hz(ticks_hz, asked_hz) - Fraction(ticks_hz, cycles)) <= Fraction(1, 2)
