# SPDX-License-Identifier: Apache-2.0
"""Operators that TVM's importer has, but not with all inputs that ONNX allows: rewritten if it would fail."""

from __future__ import annotations

from typing import Final

import numpy as np
from onnx import NodeProto

from minrpc_models.formats.onnx_graph import Graph, attributes

_NUMPYS_BROADCAST: Final = 7
"""The version of ONNX's operators since which shapes are matched from their ends."""


def rewrite_prelu(graph: Graph, node: NodeProto) -> None:
    """The importer takes a slope for each channel only; ONNX's slope may have any shape that broadcasts."""
    value, slope = node.input
    if graph.opset < _NUMPYS_BROADCAST and len(graph.shape(slope)) == 1:
        slope = graph.reshaped(slope, [-1] + [1] * (len(graph.shape(value)) - 2))
    positive = graph.node("Relu", value)
    negative = graph.node("Neg", graph.node("Relu", graph.node("Neg", value)))
    graph.node("Add", positive, graph.node("Mul", slope, negative), gives=node.output[0])


def rewrite_expand(graph: Graph, node: NodeProto) -> None:
    """The importer takes no shape with fewer dimensions than the tensor: ones are missing before them."""
    value, shape = node.input
    extents, rank = graph.value(shape), len(graph.shape(value))
    if extents is not None and len(extents) < rank:
        shape = graph.constant([1] * (rank - len(extents)) + extents.tolist(), np.int64)
    graph.copy(node, [value, shape])


def rewrite_slice(graph: Graph, node: NodeProto) -> None:
    """The importer takes bounds as inputs only, and no name "" for axes that are left out before steps."""
    inputs = list(node.input)
    if len(inputs) == 1:
        given = attributes(node)
        axes = given.get("axes", range(len(given["starts"])))
        bounds = (
            graph.constant(list(numbers), np.int64) for numbers in (given["starts"], given["ends"], axes)
        )
        graph.node("Slice", *inputs, *bounds, gives=node.output[0])
        return
    if len(inputs) > 3 and not inputs[3]:
        (count,) = graph.shape(inputs[1])
        inputs[3] = graph.constant(np.arange(count), np.int64)
    graph.copy(node, inputs)
