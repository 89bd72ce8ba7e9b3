# SPDX-License-Identifier: Apache-2.0
"""Sequences of tensors, with positions that are constants: each operator then only renames tensors.

TVM's importer silently uses another position for a position that it does not know.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from onnx import NodeProto

from minrpc_models.errors import ModelError
from minrpc_models.formats.onnx_graph import Graph, Rewriting, attributes


def _construct(graph: Graph, node: NodeProto) -> None:
    graph.sequences[node.output[0]] = list(node.input)


def _insert(graph: Graph, node: NodeProto) -> None:
    elements = list(_elements(graph, node))
    count = len(elements)
    at = _position(graph, node, 2, count, count + 1) if len(node.input) > 2 else count
    graph.sequences[node.output[0]] = [*elements[:at], node.input[1], *elements[at:]]


def _erase(graph: Graph, node: NodeProto) -> None:
    elements = _elements(graph, node)
    at = _position(graph, node, 1, len(elements)) if len(node.input) > 1 else len(elements) - 1
    graph.sequences[node.output[0]] = elements[:at] + elements[at + 1 :]


def _at(graph: Graph, node: NodeProto) -> None:
    elements = _elements(graph, node)
    graph.node("Identity", elements[_position(graph, node, 1, len(elements))], gives=node.output[0])


def _length(graph: Graph, node: NodeProto) -> None:
    count = graph.constant(len(_elements(graph, node)), np.int64)
    graph.node("Identity", count, gives=node.output[0])


def _joined(graph: Graph, node: NodeProto) -> None:
    given, elements = attributes(node), _elements(graph, node)
    axis = given["axis"]
    if given.get("new_axis"):
        shape = list(graph.shape(elements[0]))
        axis %= len(shape) + 1
        shape.insert(axis, 1)
        elements = [graph.reshaped(element, shape) for element in elements]
    graph.node("Concat", *elements, gives=node.output[0], axis=axis)


def _split(graph: Graph, node: NodeProto) -> None:
    given, value = attributes(node), node.input[0]
    shape = list(graph.shape(value))
    axis = given.get("axis", 0) % len(shape)
    sizes, single = [1] * shape[axis], len(node.input) < 2
    if not single:
        wanted = graph.value(node.input[1])
        if wanted is None:
            raise ModelError(
                f"the operator {node.op_type} {node.name} splits at positions from the model's inputs"
            )
        whole, rest = divmod(shape[axis], int(wanted)) if wanted.ndim == 0 else (0, 0)
        sizes = wanted.tolist() if wanted.ndim else [int(wanted)] * whole + [rest] * bool(rest)
    ends = np.cumsum(sizes).tolist()
    pieces = [graph.part(value, end - size, end, axis) for size, end in zip(sizes, ends, strict=True)]
    if single and not given.get("keepdims", 1):
        pieces = [graph.reshaped(piece, shape[:axis] + shape[axis + 1 :]) for piece in pieces]
    graph.sequences[node.output[0]] = pieces


def _elements(graph: Graph, node: NodeProto) -> list[str]:
    elements = graph.sequences.get(node.input[0])
    if elements is None:
        raise ModelError(
            f"the operator {node.op_type} {node.name} takes a sequence that depends on the model's inputs"
        )
    return elements


def _position(graph: Graph, node: NodeProto, number: int, count: int, end: int | None = None) -> int:
    """A position among `count` elements, below `end` (default: count); -1 is the last element's."""
    value = graph.value(node.input[number])
    if value is None or not -count <= int(value) < (count if end is None else end):
        name = node.input[number]
        raise ModelError(
            f"the operator {node.op_type} {node.name} takes the position {name}, no constant in range",
            next_step=f"--constant {name}=N makes it a constant, if it is an input",
        )
    return int(value) + (count if value < 0 else 0)


SEQUENCES: Final[dict[str, Rewriting]] = {
    "ConcatFromSequence": _joined,
    "SequenceAt": _at,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _construct,
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": _length,
    "SplitToSequence": _split,
}
"""The rewriting functions, by the name of the operator."""
