# SPDX-License-Identifier: Apache-2.0
"""Branches whose condition constants decide are replaced by their nodes, one level deep.

onnxruntime does the same, but gives up on a branch within a branch that uses tensors of the outer branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, helper
from onnx.reference import ReferenceEvaluator

from minrpc_models.formats.onnx_graph import attributes


def with_branches(model: ModelProto) -> ModelProto:
    """The model with the chosen branch in place of each If that constants decide."""
    if not any(node.op_type == "If" for node in model.graph.node):
        return model
    changed = deepcopy(model)
    nodes: list[NodeProto] = []
    for number, node in enumerate(model.graph.node):
        decided = _decided(model, node.input[0]) if node.op_type == "If" else None
        if decided is None:
            nodes.append(node)
            continue
        branch: GraphProto = attributes(node)["then_branch" if decided else "else_branch"]
        outputs = dict(zip((item.name for item in branch.output), node.output, strict=True))
        nodes.extend(_inlined(branch, outputs, f"minrpc_branch{number}_", changed.graph))
    del changed.graph.node[:]
    changed.graph.node.extend(nodes)
    return changed


def _inlined(
    branch: GraphProto, outputs: Mapping[str, str], prefix: str, graph: GraphProto
) -> Iterator[NodeProto]:
    """The nodes of a branch. Its names get the prefix, so that each branch of the model has its own."""
    own = [item.name for item in branch.initializer]
    own += [name for node in branch.node for name in node.output if name]
    names = {name: outputs.get(name, f"{prefix}{name}") for name in own}
    for item in branch.initializer:
        copied = graph.initializer.add()
        copied.CopyFrom(item)
        copied.name = names[item.name]
    yield from (_renamed(node, names) for node in branch.node)
    yield from (
        helper.make_node("Identity", [outer], [to]) for outer, to in outputs.items() if outer not in names
    )


def _renamed(node: NodeProto, names: Mapping[str, str]) -> NodeProto:
    """A copy of a node, and of the graphs within it, with other names of tensors."""
    made = deepcopy(node)
    made.input[:] = [names.get(name, name) for name in node.input]
    made.output[:] = [names.get(name, name) for name in node.output]
    for attribute in made.attribute:
        if attribute.type == AttributeProto.GRAPH:
            inner = [_renamed(item, names) for item in attribute.g.node]
            del attribute.g.node[:]
            attribute.g.node.extend(inner)
            for output in attribute.g.output:
                output.name = names.get(output.name, output.name)
    return made


def _decided(model: ModelProto, condition: str) -> bool | None:
    """The value of a condition that is computed from constants alone; None for another."""
    made = {output: node for node in model.graph.node for output in node.output}
    constants = {item.name: item for item in model.graph.initializer}
    nodes: list[NodeProto] = []
    waiting, seen = [condition], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen or name in constants or not name:
            continue
        seen.add(name)
        if name not in made or made[name].op_type in ("If", "Loop", "Scan"):
            return None
        if made[name] not in nodes:
            nodes.append(made[name])
            waiting += made[name].input
    ordered = [node for node in model.graph.node if node in nodes]
    return bool(np.all(_evaluated(model, ordered, condition, list(constants.values()))))


def _evaluated(model: ModelProto, nodes: Sequence[NodeProto], name: str, constants: Sequence[Any]) -> Any:  # noqa: ANN401
    result = helper.make_empty_tensor_value_info(name)
    graph = helper.make_graph(nodes, "condition", [], [result], constants)
    made = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    (value,) = ReferenceEvaluator(made).run(None, {})
    return value
