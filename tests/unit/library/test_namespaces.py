# SPDX-License-Identifier: Apache-2.0
"""Names of a library's types and variables, and keys that are not names."""

from __future__ import annotations

import copy
from typing import Any, cast

import pytest
from minrpc import CLibrary, fake
from minrpc.library.fake_functions import Fakes
from minrpc.library.namespaces import Types, Variables
from minrpc.library.scalars import int_value
from minrpc.program.c_types import Enumeration, Field, Qualified, RecordType, Scalar, Typedef, Variable

INT = Scalar("int", 4, "int")
POINT = RecordType("struct", "point", 4, complete=True, fields=(Field("x", INT, 0),))
COLOR = Enumeration("color", 4, False, (("RED", 0), ("_x", 1), ("mro", 2)))


@pytest.mark.parametrize(
    ("items", "kind"),
    [
        (Types("lib", {}), "type"),
        (Variables(cast(Any, None), {}), "variable"),
        (CLibrary.__new__(CLibrary), "function"),
        (Fakes("lib", {}), "fake"),
    ],
)
def test_a_name_is_a_text(items: Any, kind: str) -> None:  # noqa: ANN401 - each has items
    vars(items).setdefault("_functions", {})
    with pytest.raises(TypeError, match=f"a {kind}'s name is a text, not 5"):
        items[5]


def test_an_enum_has_its_tag_s_name_or_its_typedef_s() -> None:
    """`<enum.BLUE: 2>` did not tell the type; the class is one, however the type is qualified."""
    colour, mode = Enumeration("", 4, False, (("BLUE", 2),)), Enumeration("mode", 4, False, (("ON", 1),))
    named = Typedef("colour_t", colour)
    assert [repr(int_value(kind, 2)) for kind in (named, colour)] == ["<colour_t.BLUE: 2>", "<enum.BLUE: 2>"]
    assert type(int_value(Qualified(named, "const"), 2)) is type(int_value(named, 2))
    assert repr(int_value(Typedef("mode_t", mode), 1)) == "<mode.ON: 1>"


def test_variables_are_names_to_go_through() -> None:
    variables = Variables(cast(Any, None), {"x": Variable("x", "x", INT)})
    assert (list(variables), "x" in variables, "y" in variables) == (["x"], True, False)


def test_a_type_has_no_members_and_names_those_of_its_values() -> None:
    point = Types("lib", {"point": POINT}).point
    for name in ("members", "x"):
        with pytest.raises(AttributeError, match=f"point is a type without {name!r}; its values have x"):
            getattr(point, name)
    assert copy.copy(point).size == 4


def test_a_constant_that_an_enum_lacks_is_told_with_those_that_it_has() -> None:
    color = Types("lib", {"color": COLOR}).color
    assert [int(color.RED), int(color["_x"]), int(color._x), int(color.mro)] == [0, 1, 1, 2]
    told = "enum color has no constant 'BLUE'; it has RED, _x, mro"
    with pytest.raises(AttributeError, match=told):
        _ = color.BLUE
    with pytest.raises(KeyError, match=told):
        color["BLUE"]


def test_a_fake_is_replaced_by_its_answer() -> None:
    """The assignment set an attribute, and C went on calling the old function."""
    with pytest.raises(AttributeError, match=r"fakes\(lib\)\.get\.answer = \.\.\. sets its function"):
        Fakes("a.c", {}).get = lambda: 1
    with pytest.raises(TypeError, match="the names of the parameters are a text, not 3"):
        fake(int, cast(Any, 3))
