# SPDX-License-Identifier: Apache-2.0
"""Names of a library's types and variables, and keys that are not names."""

from __future__ import annotations

from typing import Any, cast

import pytest
from minrpc import CLibrary
from minrpc.library.namespaces import Types, Variables


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
