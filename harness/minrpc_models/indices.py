# SPDX-License-Identifier: Apache-2.0
"""Finds the inputs of a Relax module that are indices into other tensors, and their bounds."""

from __future__ import annotations

from math import prod
from typing import Any, Final

from minrpc_models.errors import ModelError
from minrpc_models.relax import entry_of, is_relax, shape_of

# Operators whose first argument is the data and whose second is the indices.
_ALONG_AN_AXIS: Final = ("relax.take", "relax.gather_elements", "relax.scatter_elements")
_ALL_AXES: Final = ("relax.gather_nd", "relax.scatter_nd", "relax.index_tensor", "relax.index_put")


def index_bounds(module: Any) -> dict[int, int]:  # noqa: ANN401 - TVM has no types
    """The smallest extent that each input indexes, directly or through other operators, by input number.

    Arithmetic on an index is ignored.
    """
    function = module[entry_of(module)]
    if not is_relax(function):
        return {}
    origins = {param: {number} for number, param in enumerate(function.params)}
    bounds: dict[int, int] = {}
    for block in function.body.blocks:
        for binding in block.bindings:
            value = binding.value
            extent = _extent(value)
            if extent is not None:
                for number in _origins(value.args[1], origins):
                    bounds[number] = min(extent, bounds.get(number, extent))
            # A looked-up value is no index, unless its table holds indices.
            of = value.args[0] if extent is not None else value
            origins[binding.var] = _origins(of, origins)
    return bounds


def _origins(value: Any, known: dict[Any, set[int]]) -> set[int]:  # noqa: ANN401
    """The numbers of the inputs that a value is computed from."""
    if type(value).__name__ in ("Var", "DataflowVar"):
        return known.get(value, set())
    if _name(value) == "relax.shape_of":  # A shape does not contain the elements.
        return set()
    parts = [*getattr(value, "args", ()), *getattr(value, "fields", ())]
    if hasattr(value, "tuple_value"):
        parts.append(value.tuple_value)
    return set[int]().union(*(_origins(part, known) for part in parts))


def _extent(value: Any) -> int | None:  # noqa: ANN401
    """Number of elements that this call's index chooses among; None for a call without an index."""
    name = _name(value)
    if name not in (*_ALONG_AN_AXIS, *_ALL_AXES):
        return None
    try:
        shape = shape_of(value.args[0])
    except (ModelError, AttributeError):
        return None
    axis = getattr(value.attrs, "axis", None)
    if name in _ALL_AXES:
        return min(shape, default=1)
    return shape[int(axis)] if axis is not None else prod(shape)


def _name(value: Any) -> str:  # noqa: ANN401
    return str(getattr(getattr(value, "op", None), "name", ""))
