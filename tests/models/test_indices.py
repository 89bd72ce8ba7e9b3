# SPDX-License-Identifier: Apache-2.0
"""Inputs that are indices are found, with their bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.models.onnx_model import need_gather, write_nodes

pytestmark = pytest.mark.extra("tvm")

Tensor = tuple[str, str, list[int]]
TABLE: Tensor = ("t", "float32", [6, 4])


@pytest.mark.parametrize(
    ("operators", "attributes", "bounds"),
    [
        ([("Gather", [TABLE, ("i", "int64", [3])])], {}, {1: 6}),
        ([("Gather", [TABLE, ("i", "int64", [3])])], {"axis": 1}, {1: 4}),
        ([("GatherElements", [TABLE, ("i", "int64", [6, 4])])], {"axis": 1}, {1: 4}),
        ([("GatherND", [TABLE, ("i", "int64", [3, 2])])], {}, {1: 4}),
        ([("ScatterElements", [TABLE, ("i", "int64", [2, 4]), ("u", "float32", [2, 4])])], {}, {1: 6}),
        ([("Gather", [TABLE, ("i", "int64", [3])]), ("Mul", [("f", "float32", [4])])], {}, {1: 6}),
        ([("Add", [("a", "int64", [3]), ("b", "int64", [3])])], {}, {}),
    ],
    ids=lambda name: name[0][0] if isinstance(name, list) else None,
)
def test_bounds(operators: Any, attributes: Any, bounds: dict[int, int], tmp_path: Path) -> None:  # noqa: ANN401
    from minrpc_models import model_of
    from minrpc_models.indices import index_bounds

    if operators[0][0] == "Gather":
        need_gather()
    model = model_of(write_nodes(tmp_path / "net.onnx", *operators, **attributes))
    assert index_bounds(model.module) == bounds
    inputs = list(model.random_inputs(5).values())
    for number, bound in bounds.items():
        assert inputs[number].min() >= 0
        assert inputs[number].max() < bound
        assert inputs[number].max() == bound - 1 or inputs[number].size < 20
    assert all(array.min() < 0 for number, array in enumerate(inputs) if number not in bounds)


def test_types_that_are_small() -> None:
    from minrpc_models.inputs import _random

    rng = np.random.default_rng(1)
    for dtype, least, most in [("uint8", 0, 127), ("int8", -128, 127), ("int64", -128, 127), ("bool", 0, 1)]:
        made = _random(rng, (5000,), np.dtype(dtype), None)
        assert (made.dtype, made.min(), made.max()) == (np.dtype(dtype), least, most)
    assert _random(rng, (5000,), np.dtype("int8"), 1000).max() < 127
    assert not _random(rng, (5000,), np.dtype("int64"), 1).any()
