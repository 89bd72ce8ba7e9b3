# SPDX-License-Identifier: Apache-2.0
"""Types are compared by their names and whole structure; files may have different types of one name."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from minrpc import Address, Device, GuardError, LoadedLibrary

from tests.device.test_values import C, Load, witness

FILES = [C / "shapes.c", C / "shapes_too.c"]


@pytest.fixture
def shapes(load: Load) -> LoadedLibrary:
    return load(*FILES)


def test_each_file_s_types_are_reached(shapes: LoadedLibrary, tmp_path: Path) -> None:
    types = shapes.types
    here, there = types["shapes.c:colour"], types["shapes_too.c:colour"]
    turned: list[Any] = [np.full(1, value, np.int32) for value in (1, 2, 3)]
    second = turned[1]
    shapes["turn"](turned)
    assert turned[0] is second
    assert [
        f"{shapes['whole_x'](types.whole(1, 2))} {shapes['chars_sum'](types.chars(-56, 100))}",
        f"{shapes['pt_here'](types['shapes.c:pt'](1, 2))} "
        f"{shapes['pt_there'](types['shapes_too.c:pt'](1, 2)):g}",
        f"{shapes['colour_here'](here.GREEN)} {shapes['colour_there'](there.GREEN)}",
        f"{turned[0][0]} {shapes.read(turned[1])} {turned[2] is None:d}",
        f"{shapes['counted_here']()} {shapes['counted_there']()}",
        f"{shapes['odd_sum'](types.odd(0, 1, 2, 3, 4), 'mro')}",
        f"{shapes['opaque_value'](shapes['opaque_same'](shapes['opaque_new']()))}",
    ] == witness(FILES, tmp_path)
    assert shapes["opaque_value"](types.opaque(5)) == 5
    for name in ("pt", "colour"):
        both = rf"several types .{name}.: .*shapes.c:{name}.*shapes_too.c:{name}"
        with pytest.raises(AttributeError, match=both):
            getattr(types, name)


def test_numbers_on_the_device_are_a_struct_s_memory_if_it_has_room(
    shapes: LoadedLibrary, device: Device
) -> None:
    expected = shapes["whole_at"](shapes.types.whole(7, 2))
    assert shapes["whole_at"](device.array(np.array([7, 2], np.int32))) == expected
    assert shapes["whole_at"](device.array(np.array([7, 2, 1], np.int32))) == expected
    with pytest.raises(TypeError, match=r"is a pointer to 8 bytes, .* has 4"):
        shapes["whole_at"](device.array(np.array([7], np.int32)))


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


def test_pointers_that_c_writes_are_seen_or_refused(shapes: LoadedLibrary) -> None:
    values = tuple(np.full(1, value, np.int32) for value in (1, 2, 3))
    with pytest.raises(GuardError, match="turn wrote to p: a tuple can't change"):
        shapes["turn"](values)
    with pytest.raises(GuardError, match=r"turn_const wrote .* of p .3 pointers., which it may only read"):
        shapes["turn_const"](list(values))


def test_static_variables_of_one_name_are_variables_of_their_files(shapes: LoadedLibrary) -> None:
    variables = shapes.variables
    with pytest.raises(
        AttributeError, match=r"several variables 'count': .*shapes.c:count.*shapes_too.c:count"
    ):
        variables.count = 5
    first = shapes["counted_here"](), shapes["counted_there"]()
    here, there = variables["shapes.c:count"], variables["shapes_too.c:count"]
    assert (here.read(), there.read()) == (first[0] + 1, first[1] + 1)
    here.write(7)
    there.write(8)
    assert (shapes["counted_here"](), shapes["counted_there"]()) == (7, 8)


def test_names_of_c_meet_none_of_ours(shapes: LoadedLibrary) -> None:
    odd, names = shapes.types.odd, shapes.types.odd_names
    made = odd(_offset=1, self=2, __x=3)
    setattr(made, "__x", 4)
    made._offset, made._minrpc = 5, 6
    assert (made._offset, getattr(made, "__x"), made.self, made._minrpc) == (5, 4, 2, 6)
    assert repr(made) == "odd(_minrpc=6, _offset=5, __x=4, self=2, read=0)"
    assert (copy.copy(made), copy.deepcopy(made)) == (made, made)
    assert shapes["odd_sum"](made, names["__y"]) == 50245
    assert [constant.name for constant in names] == ["_RUN_", "mro", "__y"]
    assert (names._RUN_, names.mro, names(5)) == (3, 4, names["__y"])
    placed = shapes.place(made)
    placed._offset = 7
    assert (placed._offset, placed.read().read) == (7, 0)
    with pytest.raises(AttributeError, match="'read' is the placed object's own"):
        setattr(placed, "read", 1)  # noqa: B010
