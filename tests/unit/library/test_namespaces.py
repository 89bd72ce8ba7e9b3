# SPDX-License-Identifier: Apache-2.0
"""Names of a library's types and variables, and keys that are not names."""

from __future__ import annotations

from typing import Any, cast

import pytest
from minrpc import CLibrary
from minrpc.library.namespaces import Types, Variables
from minrpc.library.scalars import int_value
from minrpc.program.c_types import Enumeration, Qualified, Typedef


@pytest.mark.parametrize(
    ("items", "kind"),
    [
        (Types("lib", {}), "type"),
        (Variables(cast(Any, None), {}), "variable"),
        (CLibrary.__new__(CLibrary), "function"),
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
