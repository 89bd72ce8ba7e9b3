# SPDX-License-Identifier: Apache-2.0
"""ONNX's recurrent layers as products, sums and activations, step by step: TVM's importer lacks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from onnx import NodeProto

from minrpc_models.errors import ModelError
from minrpc_models.formats.onnx_graph import Graph, attributes

MOST_STEPS: Final = 512
"""Each step needs its own operators."""

_ACTIVATIONS: Final = ("Sigmoid", "Tanh", "Relu", "Softsign", "Softplus")


class _Layer(NamedTuple):
    """One direction of a layer. Weights are transposed: [inputs, gates * hidden], [hidden, gates * hidden].

    projected: names of x @ weights + biases, one for each step, of the shape [1, batch, gates * hidden].
    recurrent: name of the other weights. bias: name of the biases that belong to them, "" if they are added
        to `projected`.
    reset_last: a GRU's reset gate is applied after the product, ONNX's linear_before_reset.
    """

    projected: Sequence[str]
    recurrent: str
    bias: str
    hidden: int
    activations: Sequence[str]
    reset_last: bool

    def part(self, graph: Graph, first: int, end: int) -> str:
        """The recurrent weights of gates `first` to `end`."""
        return graph.part(self.recurrent, first * self.hidden, end * self.hidden, 1)


def rewrite_lstm(graph: Graph, node: NodeProto) -> None:
    """Gates i, o, f, c; two states."""
    _rewrite(graph, node, gates=4, default=("Sigmoid", "Tanh", "Tanh"))


def rewrite_gru(graph: Graph, node: NodeProto) -> None:
    """Gates z, r, h; one state."""
    _rewrite(graph, node, gates=3, default=("Sigmoid", "Tanh"))


def rewrite_rnn(graph: Graph, node: NodeProto) -> None:
    """One gate, one state."""
    _rewrite(graph, node, gates=1, default=("Tanh",))


def _rewrite(graph: Graph, node: NodeProto, gates: int, default: Sequence[str]) -> None:
    given = attributes(node)
    inputs = [*node.input, *[""] * (8 - len(node.input))]
    steps, batch, _ = graph.shape(inputs[0])
    directions, width, _ = graph.shape(inputs[1])
    hidden = width // gates
    _refuse(graph, node, given, inputs, steps)
    chosen = _activations(node, given, default, directions)
    reset_last = gates == 3 and bool(given.get("linear_before_reset"))
    states = [
        _initial(graph, name, (directions, batch, hidden)) for name in inputs[5 : 7 if gates == 4 else 6]
    ]
    backward = given.get("direction", "forward") == "reverse"
    all_hidden, last = [], []
    for direction in range(directions):
        order = list(range(steps))
        if backward or direction == 1:
            order.reverse()
        layer = _layer(graph, inputs, direction, order, chosen[direction], reset_last)
        begin = [graph.part(state, direction, direction + 1, 0) for state in states]
        outputs, end = _run(graph, layer, begin, gates)
        by_time = dict(zip(order, outputs, strict=True))
        sequence = _joined(graph, [by_time[step] for step in range(steps)], 0)
        all_hidden.append(graph.reshaped(sequence, (steps, 1, batch, hidden)))
        last.append(end)
    outputs = [*node.output, *[""] * (3 - len(node.output))]
    if outputs[0]:
        graph.node("Concat", *all_hidden, gives=outputs[0], axis=1)
    for number, name in enumerate(outputs[1 : 1 + len(states)]):
        if name:
            graph.node("Concat", *(end[number] for end in last), gives=name, axis=0)


def _refuse(graph: Graph, node: NodeProto, given: dict[str, Any], inputs: Sequence[str], steps: int) -> None:
    """Raise ModelError for variants that are not rewritten."""
    lengths = graph.value(inputs[4]) if inputs[4] else None
    because = ""
    if given.get("clip") or given.get("input_forget"):
        because = "it clips its gates, or couples two of them"
    elif given.get("layout"):
        because = "its first axis is the batch (layout=1)"
    elif inputs[4] and (lengths is None or not (lengths == steps).all()):
        because = "its sequences have different lengths"
    elif inputs[7]:
        because = "its gates see the cell's state (input P)"
    elif steps > MOST_STEPS:
        because = f"it takes {steps} steps, and {MOST_STEPS} are the most; --shape makes the sequence shorter"
    if because:
        raise ModelError(f"the layer {node.op_type} {node.name} can't be written as single steps: {because}")


def _activations(
    node: NodeProto, given: dict[str, Any], default: Sequence[str], directions: int
) -> list[list[str]]:
    """The operators of the activations, by direction. Raises ModelError."""
    names = given.get("activations") or list(default) * directions
    known = {name.lower(): name for name in _ACTIVATIONS}
    for name in names:
        if name.lower() not in known:
            raise ModelError(f"the layer {node.op_type} {node.name} has the activation {name}")
    size = len(default)
    return [
        [known[name.lower()] for name in names[size * number : size * (number + 1)]]
        for number in range(directions)
    ]


def _initial(graph: Graph, name: str, shape: tuple[int, ...]) -> str:
    return name or graph.constant(np.zeros(shape), np.float32)


def _layer(
    graph: Graph,
    inputs: Sequence[str],
    direction: int,
    order: Sequence[int],
    activations: Sequence[str],
    reset_last: bool,
) -> _Layer:
    def weights(name: str) -> str:
        _, rows, columns = graph.shape(name)
        one = graph.reshaped(graph.part(name, direction, direction + 1, 0), (rows, columns))
        return graph.node("Transpose", one, perm=[1, 0])

    projected = graph.node("MatMul", inputs[0], weights(inputs[1]))
    bias = ""
    if inputs[3]:
        width = graph.shape(inputs[1])[1]
        both = graph.reshaped(graph.part(inputs[3], direction, direction + 1, 0), (2 * width,))
        ours, bias = (graph.part(both, width * half, width * (half + 1), 0) for half in (0, 1))
        if not reset_last:
            ours, bias = graph.node("Add", ours, bias), ""
        projected = graph.node("Add", projected, ours)
    alone = len(order) == 1
    pieces = [projected if alone else graph.part(projected, step, step + 1, 0) for step in order]
    hidden = graph.shape(inputs[2])[2]
    return _Layer(pieces, weights(inputs[2]), bias, hidden, activations, reset_last)


def _run(graph: Graph, layer: _Layer, states: list[str], gates: int) -> tuple[list[str], list[str]]:
    """The hidden state after each step, and all states after the last. Each is [1, batch, hidden]."""
    step = {4: _lstm, 3: _gru, 1: _rnn}[gates]
    outputs = []
    for projected in layer.projected:
        states = step(graph, layer, projected, states)
        outputs.append(states[0])
    return outputs, states


def _lstm(graph: Graph, layer: _Layer, projected: str, states: list[str]) -> list[str]:
    f, g, h = layer.activations
    gates = graph.node("Add", projected, graph.node("MatMul", states[0], layer.recurrent))
    i, o, forget, c = _gates(graph, gates, layer.hidden, 4)
    kept = graph.node("Mul", graph.node(f, forget), states[1])
    new = graph.node("Mul", graph.node(f, i), graph.node(g, c))
    cell = graph.node("Add", kept, new)
    return [graph.node("Mul", graph.node(f, o), graph.node(h, cell)), cell]


def _gru(graph: Graph, layer: _Layer, projected: str, states: list[str]) -> list[str]:
    f, g = layer.activations
    size, (state,) = layer.hidden, states
    z_x, r_x, h_x = _gates(graph, projected, size, 3)
    if layer.reset_last:
        own = graph.node("MatMul", state, layer.recurrent)
        own = graph.node("Add", own, layer.bias) if layer.bias else own
        z_h, r_h, h_h = _gates(graph, own, size, 3)
    else:
        z_h, r_h = _gates(graph, graph.node("MatMul", state, layer.part(graph, 0, 2)), size, 2)
    z, r = graph.node(f, graph.node("Add", z_x, z_h)), graph.node(f, graph.node("Add", r_x, r_h))
    if layer.reset_last:
        reset = graph.node("Mul", r, h_h)
    else:
        reset = graph.node("MatMul", graph.node("Mul", r, state), layer.part(graph, 2, 3))
    new = graph.node(g, graph.node("Add", h_x, reset))
    difference = graph.node("Sub", state, new)  # (1 - z) * new + z * state
    return [graph.node("Add", new, graph.node("Mul", z, difference))]


def _rnn(graph: Graph, layer: _Layer, projected: str, states: list[str]) -> list[str]:
    sums = graph.node("Add", projected, graph.node("MatMul", states[0], layer.recurrent))
    return [graph.node(layer.activations[0], sums)]


def _gates(graph: Graph, name: str, hidden: int, count: int) -> list[str]:
    return [graph.part(name, hidden * number, hidden * (number + 1), 2) for number in range(count)]


def _joined(graph: Graph, names: Sequence[str], axis: int) -> str:
    return names[0] if len(names) == 1 else graph.node("Concat", *names, axis=axis)
