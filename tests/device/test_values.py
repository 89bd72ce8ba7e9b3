# SPDX-License-Identifier: Apache-2.0
"""Values arrive in C as Python gave them, or are refused. The witness: the same C with a main of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from minrpc import LoadedLibrary

Load = Callable[..., LoadedLibrary]
C = Path(__file__).with_name("c")


def witness(sources: Sequence[Path], directory: Path) -> list[str]:
    """The lines that the sources' own main prints."""
    program = directory / "witness"
    subprocess.run(["gcc", "-DWITNESS", "-w", *sources, "-o", program], check=True, timeout=60)
    ran = subprocess.run([program], check=True, timeout=60, capture_output=True, text=True)
    return ran.stdout.splitlines()


@pytest.fixture
def values(load: Load) -> LoadedLibrary:
    return load(C / "values.c", fakes="zero")


def test_values_that_fit_arrive(values: LoadedLibrary, tmp_path: Path) -> None:
    wide = values.types.wide
    values.fakes.answered.answer = values["next"]
    lines = [
        str(values["sum"]([-128, 127, 1, 0, 0, 0, 0, 3])),
        f"{values['real_plus_twice_imaginary'](1.5 + 2j):g}",
        str(values["bits_of"](np.array([True, False, True]), 3)),
    ]
    for value in (wide.ONE, wide.HALF, wide.MOST):
        assert isinstance(values["next"](value), wide)
        lines.append(f"{int(values['next'](value))} {int(values['asks'](value))}")
    assert lines == witness([C / "values.c"], tmp_path)
    assert values.fakes.answered.calls == [(wide.ONE,), (wide.HALF,), (wide.MOST,)]


TWO = np.array([1, 2, 0], np.uint8)


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("sum", ([300, *[0] * 7],), r"v\[0\]: expected signed char, -128 to 127, got 300"),
        ("sum", (np.array([300, *[0] * 7]),), r"v\[0\]: .* got 300"),
        ("sum", ([0, 1.9, *[0] * 6],), r"v\[1\]: expected signed char, got 1.9"),
        ("sum", ([1] * 7,), "8 elements are expected"),
        ("sum", (np.ones((8, 2), np.int8),), r"v\[0\]: expected signed char, got a list"),
        ("real_plus_twice_imaginary", (1e300,), "got 1e.300, which is out of its range"),
        ("real_plus_twice_imaginary", (complex(0, 1e300),), "got 1e.300, which is out of its range"),
        ("real_plus_twice_imaginary", ("3+1j",), "expected complex float, got '3.1j'"),
        ("real_plus_twice_imaginary", (True,), "expected complex float, got True"),
        ("bits_of", (TWO.view(bool), 3), "got a byte 2: a bool is 0 or 1"),
        ("bits_of", (bytearray(TWO), 3), "got a byte 2: a bool is 0 or 1"),
        ("bits_of", (memoryview(TWO.tobytes()).cast("?"), 3), "got a byte 2: a bool is 0 or 1"),
    ],
)
def test_values_that_numpy_would_convert_are_refused(
    values: LoadedLibrary, name: str, given: tuple[object, ...], told: str
) -> None:
    if name == "bits_of":
        values[name](np.zeros(3, bool), 3)  # The second call has a known layout.
    with pytest.raises((TypeError, ValueError), match=told):
        values[name](*given)
