# SPDX-License-Identifier: Apache-2.0
"""Types are compared by their names and whole structure; files may have different types of one name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from minrpc import Address, LoadedLibrary

from tests.device.test_values import C, Load, witness

FILES = [C / "shapes.c", C / "shapes_too.c"]


@pytest.fixture
def shapes(load: Load) -> LoadedLibrary:
    return load(*FILES)


def test_each_file_s_types_are_reached(shapes: LoadedLibrary, tmp_path: Path) -> None:
    types = shapes.types
    here, there = types["shapes.c:colour"], types["shapes_too.c:colour"]
    assert [
        f"{shapes['whole_x'](types.whole(1, 2))} {shapes['chars_sum'](types.chars(-56, 100))}",
        f"{shapes['pt_here'](types['shapes.c:pt'](1, 2))} "
        f"{shapes['pt_there'](types['shapes_too.c:pt'](1, 2)):g}",
        f"{shapes['colour_here'](here.GREEN)} {shapes['colour_there'](there.GREEN)}",
        f"{shapes['opaque_value'](shapes['opaque_same'](shapes['opaque_new']()))}",
    ] == witness(FILES, tmp_path)
    assert shapes["opaque_value"](types.opaque(5)) == 5
    for name in ("pt", "colour"):
        both = rf"several types .{name}.: .*shapes.c:{name}.*shapes_too.c:{name}"
        with pytest.raises(AttributeError, match=both):
            getattr(types, name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("whole_x", lambda lib: lib.types.real(1, 2)),
        ("whole_at", lambda lib: lib.types.real(1, 2)),
        ("whole_at", lambda lib: [lib.types.real(1, 2)]),
        ("whole_at", lambda lib: lib.place(lib.types.real(1, 2))),
        ("whole_at", lambda lib: lib.variables["kept_real"]),
        ("chars_sum", lambda lib: lib.types.bytes(200, 100)),
        ("words_x", lambda lib: lib.types.places(np.zeros(2, np.uint8))),
        ("mine_x", lambda lib: lib.types.yours(1, 2)),
        ("mine_x", lambda lib: lib["yours_at"]()),
        ("mine_x", lambda lib: lib.variables["kept"]),
        ("pt_here", lambda lib: lib.types["shapes_too.c:pt"](1, 2)),
        ("pt_there", lambda lib: lib.types["shapes.c:pt"](1, 2)),
        ("colour_there", lambda lib: lib.types["shapes.c:colour"].GREEN),
        ("number", lambda lib: lib["yours_at"]()),
        ("number", lambda _: Address(0x1000)),
    ],
)
def test_another_type_is_refused(
    shapes: LoadedLibrary, name: str, value: Callable[[LoadedLibrary], Any]
) -> None:
    with pytest.raises(TypeError, match=f"{name}: .*expected .*, got "):
        shapes[name](value(shapes))


def test_a_variable_takes_its_type_alone(shapes: LoadedLibrary) -> None:
    with pytest.raises(TypeError, match="kept: expected yours, got mine"):
        shapes.variables.kept = shapes.types.mine(1, 2)
    shapes.variables.kept = shapes.types.yours(1, 2)
    assert shapes.variables.kept == shapes.types.yours(1, 2) != shapes.types.mine(1, 2)
