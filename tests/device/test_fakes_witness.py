# SPDX-License-Identifier: Apache-2.0
"""Fakes in Python against fakes in C: the same sources, compiled for this machine, make the same calls."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from minrpc import LoadedLibrary, fake

HAL = Path(__file__).with_name("c") / "hal.c"


@pytest.fixture(scope="module")
def from_c(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The lines that the program with a hardware layer in C prints."""
    program = tmp_path_factory.mktemp("witness") / "hal"
    sources = [HAL, HAL.with_name("hal_in_c.c")]
    subprocess.run(["gcc", "-O2", "-Wall", "-Werror", "-o", program, *sources], check=True, timeout=60)
    ran = subprocess.run([program], check=True, timeout=60, capture_output=True, text=True)
    return ran.stdout.splitlines()


class Layer:
    """The hardware layer in Python. lines: each call and each result, as the program in C prints them."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._calls = 0

    def note(self, *words: object) -> None:
        self.lines.append(" ".join(str(word) for word in words))

    def fakes(self) -> dict[str, Any]:
        return {
            "hal_millis": self.millis,
            "hal_write": fake(self.write, "fd, data[n], n"),
            "hal_read": fake(self.read, "data[n], n"),
            "hal_gain": self.gain,
            "hal_turn": self.turn,
            "hal_adjust": self.adjust,
            "hal_is_ready": self.is_ready,
            "hal_port": self.port,
            "hal_log": fake(lambda text: self.note("hal_log", text), "text[]"),
        }

    def millis(self) -> int:
        self.note("hal_millis")
        self._calls += 1
        return 3000000000 + self._calls - 1

    def write(self, fd: int, data: bytes, n: int) -> int:
        self.note("hal_write", fd, data.hex(), n)
        return n - 70

    def read(self, data: np.ndarray[Any, np.dtype[np.uint8]], n: int) -> int:
        self.note("hal_read", data.tobytes().hex(), n)
        data[:] = [(3 * i + n) & 255 for i in range(n)]
        return n

    def gain(self, f: float, d: float) -> float:
        self.note("hal_gain", f"{f:.9g}", f"{d:.17g}")
        with np.errstate(over="ignore"):
            return float(np.float32(f * d))

    def turn(self, r: Any) -> dict[str, int]:  # noqa: ANN401 - a struct
        self.note("hal_turn", r.x, r.y, int(r.state))
        return {"x": -r.y, "y": r.x, "state": 5}

    def adjust(self, r: Any) -> None:  # noqa: ANN401
        self.note("hal_adjust", r.x, r.y, int(r.state))
        r.x = ((2 * r.x + 0x8000) & 0xFFFF) - 0x8000

    def is_ready(self) -> bool:
        self.note("hal_is_ready")
        self._calls += 1
        return self._calls % 7 == 0

    def port(self, port: int, mask: int, bias: int) -> int:
        self.note("hal_port", port, mask, bias)
        return ((mask >> 3) * port - bias) & ((1 << 64) - 1)


def test_calls_and_results_are_those_of_fakes_in_c(
    load: Callable[..., LoadedLibrary], from_c: list[str]
) -> None:
    layer, data = Layer(), np.zeros(40, np.uint8)
    lib = load(HAL, fakes=layer.fakes())

    def result(value: object) -> None:
        layer.note("=", f"{value:.17g}" if isinstance(value, float) else value)

    result(lib["elapsed"](2999999990))
    result(lib["elapsed"](4000000000))
    result(lib["send"](0))
    result(lib["send"](64))
    result(lib["receive"](data, 33))
    layer.note(data.tobytes().hex())
    result(lib["scaled"](np.float32(0.1), -3.7e-3))
    result(lib["scaled"](3e38, 1.1))
    result(lib["turned"](-32768, 32767))
    result(lib["turned"](12, -34))
    result(lib["polled"](3))
    result(lib["polled"](100))
    result(lib["summed"](21))
    lib["noted"]("")
    lib["noted"]("a longer text than a piece of what is read at once is")
    assert layer.lines == from_c
    assert len(lib.fakes.hal_port.calls) == 21
