# SPDX-License-Identifier: Apache-2.0
"""Operators whose results are indices, for which TVM has no loops: NonZero of constants, TopK of few."""

from __future__ import annotations

from typing import Final

import numpy as np
from onnx import NodeProto, TensorProto

from minrpc_models.errors import ModelError
from minrpc_models.formats.onnx_graph import Graph, attributes

MOST_OF_THE_TOP: Final = 64
"""Each element that TopK selects needs its own operators, over all elements."""


def rewrite_non_zero(graph: Graph, node: NodeProto) -> None:
    """The indices of a constant's elements that are not 0."""
    value = graph.value(node.input[0])
    if value is None:
        raise ModelError(
            f"the operator NonZero {node.name} has a result whose size depends on the inputs' values",
            next_step="end the model before it, and select in C or on the host",
        )
    indices = np.array(np.nonzero(value)) if value.ndim else np.zeros((0, int(value != 0)))
    graph.node("Identity", graph.constant(indices, np.int64), gives=node.output[0])


def rewrite_top_k(graph: Graph, node: NodeProto) -> None:
    """Selects the largest element, then the largest of the rest, and so on; the first of equal elements.

    If fewer elements than wanted are finite, the remaining indices differ from ONNX's.
    """
    given = attributes(node)
    shape = graph.shape(node.input[0])
    axis = given.get("axis", -1) % len(shape)
    wanted = graph.value(node.input[1]) if len(node.input) > 1 else np.array([given["k"]])
    count = int(wanted[0]) if wanted is not None else -1
    if not 0 < count <= MOST_OF_THE_TOP:
        raise ModelError(
            f"the operator TopK {node.name} selects {count if count > 0 else 'unknown'} elements: the number "
            f"has to be a constant, {MOST_OF_THE_TOP} at the most",
            next_step="end the model before it, and sort in C or on the host",
        )
    if graph.dtype(node.input[0]) != TensorProto.FLOAT:
        raise ModelError(f"the operator TopK {node.name} selects of a type other than float32")
    largest = given.get("largest", 1)
    find, select = ("ArgMax", "ReduceMax") if largest else ("ArgMin", "ReduceMin")
    places = graph.constant(np.arange(shape[axis]).reshape([-1] + [1] * (len(shape) - axis - 1)), np.int64)
    waiting = node.input[0]
    last = graph.constant(-np.inf if largest else np.inf, np.float32)
    values, indices = [], []
    for _ in range(count):
        indices.append(graph.node(find, waiting, axis=axis, keepdims=1))
        values.append(graph.reduced(select, waiting, axis))
        waiting = graph.node("Where", graph.node("Equal", places, indices[-1]), last, waiting)
    outputs = [*node.output, ""]
    for names, output in ((values, outputs[0]), (indices, outputs[1])):
        if output:
            graph.node("Concat", *names, gives=output, axis=axis)
