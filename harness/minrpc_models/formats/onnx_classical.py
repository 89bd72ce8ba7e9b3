# SPDX-License-Identifier: Apache-2.0
"""Operators of the domain ai.onnx.ml, as skl2onnx writes scikit-learn's models, by ONNX's own operators.

Labels that are text become their numbers in the model's list of labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from onnx import NodeProto, TensorProto

from minrpc_models.errors import ModelError
from minrpc_models.formats.onnx_graph import Graph, Rewriting, attributes
from minrpc_models.formats.onnx_trees import Trees


def _scaler(graph: Graph, node: NodeProto) -> None:
    given = attributes(node)
    moved = graph.node("Sub", _float(graph, node), graph.constant(given.get("offset", [0.0]), np.float32))
    graph.node("Mul", moved, graph.constant(given.get("scale", [1.0]), np.float32), gives=node.output[0])


def _normalizer(graph: Graph, node: NodeProto) -> None:
    operator = {"L1": "ReduceL1", "L2": "ReduceL2", "MAX": "ReduceMax"}[attributes(node).get("norm", "MAX")]
    value = _float(graph, node)
    size = graph.reduced(operator, value, 1)
    zero = graph.node("Equal", size, graph.constant([0.0], np.float32))
    divisor = graph.node("Where", zero, graph.constant([1.0], np.float32), size)
    graph.node("Div", value, divisor, gives=node.output[0])


def _binarizer(graph: Graph, node: NodeProto) -> None:
    threshold = graph.constant([attributes(node).get("threshold", 0.0)], np.float32)
    larger = graph.node("Greater", _float(graph, node), threshold)
    graph.cast(larger, TensorProto.FLOAT, gives=node.output[0])


def _zip_map(graph: Graph, node: NodeProto) -> None:
    """Scores by label become a tensor, in the order of the labels."""
    graph.node("Identity", node.input[0], gives=node.output[0])
    graph.set_output(node.output[0], TensorProto.FLOAT)


def _array_feature_extractor(graph: Graph, node: NodeProto) -> None:
    data, chosen = node.input
    text = graph.value(data)
    if text is not None and text.dtype.kind in "OSU":
        data = graph.constant(np.arange(text.size), np.int64)
        graph.set_output(node.output[0], TensorProto.INT64)
    shape = graph.shape(node.input[0])
    rows = data if len(shape) > 1 else graph.reshaped(data, (1, shape[0]))
    axis = max(1, len(shape) - 1)
    graph.node("Gather", rows, graph.reshaped(chosen, (-1,)), gives=node.output[0], axis=axis)


def _linear_regressor(graph: Graph, node: NodeProto) -> None:
    given = attributes(node)
    scores = _linear(graph, node, given, given.get("targets", 1))
    _transformed(graph, node, given, scores, node.output[0])


def _linear_classifier(graph: Graph, node: NodeProto) -> None:
    given = attributes(node)
    count = len(given.get("intercepts") or _labels(given))
    scores = _linear(graph, node, given, count)
    if count == 1:
        _two_classes(graph, node, given, scores, 0.0)
    else:
        _classes(graph, node, given, scores)


def _linear(graph: Graph, node: NodeProto, given: Mapping[str, Any], rows: int) -> str:
    weights = np.asarray(given["coefficients"], np.float32).reshape(rows, -1)
    offsets = np.asarray(given.get("intercepts") or np.zeros(rows), np.float32)
    product = graph.node("MatMul", _float(graph, node), graph.constant(weights.T, np.float32))
    return graph.node("Add", product, graph.constant(offsets, np.float32))


def _tree_regressor(graph: Graph, node: NodeProto) -> None:
    given = attributes(node)
    trees = Trees.of(node, given, "target", given.get("n_targets", 1))
    scores = trees.sums(graph, _float(graph, node), graph.shape(node.input[0])[0])
    match given.get("aggregate_function", "SUM"):
        case "SUM":
            pass
        case "AVERAGE":
            scores = graph.node("Mul", scores, graph.constant([1 / len(trees.roots)], np.float32))
        case other:
            raise ModelError(f"the operator {node.op_type} {node.name} takes the {other} of its trees")
    if given.get("base_values"):
        scores = graph.node("Add", scores, graph.constant(given["base_values"], np.float32))
    _transformed(graph, node, given, scores, node.output[0])


def _tree_classifier(graph: Graph, node: NodeProto) -> None:
    """Trees of two classes may have weights of the first only, which are then the score of the second."""
    given = attributes(node)
    labels = _labels(given)
    both = len(labels) == 2 and set(given["class_ids"]) == {0}
    trees = Trees.of(node, given, "class", 1 if both else len(labels))
    scores = trees.sums(graph, _float(graph, node), graph.shape(node.input[0])[0])
    base = given.get("base_values")
    if base:
        scores = graph.node("Add", scores, graph.constant(base[-1:] if both else base, np.float32))
    if both:
        _two_classes(graph, node, given, scores, 0.5 if min(given["class_weights"]) >= 0 else 0.0)
    else:
        _classes(graph, node, given, scores)


def _classes(graph: Graph, node: NodeProto, given: Mapping[str, Any], scores: str) -> None:
    """Outputs of a classifier with a score for each label."""
    _labelled(graph, node, given, graph.node("ArgMax", scores, axis=1, keepdims=0))
    _transformed(graph, node, given, scores, node.output[1])


def _two_classes(graph: Graph, node: NodeProto, given: Mapping[str, Any], score: str, bound: float) -> None:
    """Outputs of a classifier with one score for two labels: above `bound` it means the second."""
    above = graph.node("Greater", score, graph.constant([bound], np.float32))
    _labelled(graph, node, given, graph.reshaped(graph.cast(above, TensorProto.INT64), (-1,)))
    if given.get("post_transform", "NONE") == "NONE" and bound:
        other = graph.node("Sub", graph.constant([1.0], np.float32), score)
    else:
        other = graph.node("Neg", score)
    _transformed(graph, node, given, graph.node("Concat", other, score, axis=1), node.output[1])


def _labels(given: Mapping[str, Any]) -> list[Any]:
    names = ("classlabels_int64s", "classlabels_ints", "classlabels_strings")
    return next((list(given[name]) for name in names if given.get(name)), [])


def _labelled(graph: Graph, node: NodeProto, given: Mapping[str, Any], numbers: str) -> None:
    labels = _labels(given)
    if not isinstance(labels[0], int) or labels == list(range(len(labels))):
        graph.node("Identity", numbers, gives=node.output[0])
    else:
        graph.node("Gather", graph.constant(labels, np.int64), numbers, gives=node.output[0], axis=0)
    graph.set_output(node.output[0], TensorProto.INT64)


def _transformed(graph: Graph, node: NodeProto, given: Mapping[str, Any], scores: str, to: str) -> None:
    match given.get("post_transform", "NONE"):
        case "NONE":
            graph.node("Identity", scores, gives=to)
        case "LOGISTIC":
            graph.node("Sigmoid", scores, gives=to)
        case "SOFTMAX":
            graph.node("Softmax", scores, gives=to, axis=1)
        case other:
            raise ModelError(
                f"the operator {node.op_type} {node.name} ends with {other}, which is not rewritten"
            )


def _float(graph: Graph, node: NodeProto) -> str:
    return graph.cast(node.input[0], TensorProto.FLOAT)


CLASSICAL: Final[dict[str, Rewriting]] = {
    "ArrayFeatureExtractor": _array_feature_extractor,
    "Binarizer": _binarizer,
    "LinearClassifier": _linear_classifier,
    "LinearRegressor": _linear_regressor,
    "Normalizer": _normalizer,
    "Scaler": _scaler,
    "TreeEnsembleClassifier": _tree_classifier,
    "TreeEnsembleRegressor": _tree_regressor,
    "ZipMap": _zip_map,
}
"""The rewriting functions, by the name of the operator."""
