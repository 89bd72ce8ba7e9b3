# SPDX-License-Identifier: Apache-2.0
"""Trees of decisions as steps over all trees at a time: look up, compare, go left or right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from onnx import NodeProto

from minrpc_models.errors import ModelError
from minrpc_models.formats.onnx_graph import Graph

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]

# Comparison, and whether the children change places.
_MODES: Final = {
    "BRANCH_LEQ": ("LessOrEqual", False),
    "BRANCH_LT": ("Less", False),
    "BRANCH_GT": ("LessOrEqual", True),
    "BRANCH_GTE": ("Less", True),
}


@dataclass(frozen=True)
class Trees:
    """All nodes of all trees in one table; a leaf is its own child.

    features, thresholds, left, right: of each node. weights: [nodes, scores], 0 but for leaves. roots: the
    first node of each tree. depth: the most steps from a root to a leaf. comparison: ONNX's operator.
    """

    features: Ints
    thresholds: Floats
    left: Ints
    right: Ints
    weights: Floats
    roots: Ints
    depth: int
    comparison: str

    @classmethod
    def of(cls, node: NodeProto, given: Mapping[str, Any], kind: str, scores: int) -> Trees:
        """Trees of a node's attributes. kind: "class" or "target", of the weights. Raises ModelError."""
        comparison = _comparison(node, given)
        ids = list(zip(given["nodes_treeids"], given["nodes_nodeids"], strict=True))
        place = {key: number for number, key in enumerate(ids)}
        left, right = np.arange(len(ids)), np.arange(len(ids))
        for number, mode in enumerate(given["nodes_modes"]):
            if mode == "LEAF":
                continue
            tree = ids[number][0]
            children = [place[tree, given[f"nodes_{side}nodeids"][number]] for side in ("true", "false")]
            left[number], right[number] = children[::-1] if _MODES[mode][1] else children
        weights = np.zeros((len(ids), scores), np.float32)
        columns = zip(given[f"{kind}_treeids"], given[f"{kind}_nodeids"], given[f"{kind}_ids"], strict=True)
        for (tree, leaf, score), weight in zip(columns, given[f"{kind}_weights"], strict=True):
            weights[place[tree, leaf], score] += np.float32(weight)
        called = set(left[left != np.arange(len(ids))]) | set(right[right != np.arange(len(ids))])
        roots = np.array([number for number in range(len(ids)) if number not in called], np.int32)
        return cls(
            np.asarray(given["nodes_featureids"], np.int32),
            np.asarray(given["nodes_values"], np.float32),
            left.astype(np.int32),
            right.astype(np.int32),
            weights,
            roots,
            _depth(roots, left, right),
            comparison,
        )

    def sums(self, graph: Graph, data: str, rows: int) -> str:
        """[rows, scores]: the weights of the leaves that each row of `data` reaches, added up."""
        tables = [
            graph.constant(table, table.dtype)
            for table in (self.features, self.thresholds, self.left, self.right)
        ]
        at = graph.constant(np.tile(self.roots, (rows, 1)), np.int32)
        for _ in range(self.depth):
            feature, threshold, left, right = (graph.node("Gather", table, at, axis=0) for table in tables)
            value = graph.node("GatherElements", data, feature, axis=1)
            at = graph.node("Where", graph.node(self.comparison, value, threshold), left, right)
        leaves = graph.node("Gather", graph.constant(self.weights, np.float32), at, axis=0)
        return graph.reduced("ReduceSum", leaves, 1, keepdims=0)


def _comparison(node: NodeProto, given: Mapping[str, Any]) -> str:
    modes = set(given["nodes_modes"]) - {"LEAF"}
    comparisons = {_MODES[mode][0] for mode in modes if mode in _MODES}
    if modes - set(_MODES) or len(comparisons) > 1 or any(given.get("nodes_missing_value_tracks_true", ())):
        raise ModelError(
            f"{node.op_type} {node.name} has several comparisons, or a branch for missing values: "
            f"{', '.join(sorted(modes))}"
        )
    return comparisons.pop() if comparisons else "LessOrEqual"


def _depth(roots: Ints, left: npt.NDArray[Any], right: npt.NDArray[Any]) -> int:
    """The most steps from a root to a leaf. A level at a time."""
    depth, level = 0, roots[left[roots] != roots]
    while level.size:
        children = np.unique(np.concatenate([left[level], right[level]]))
        depth, level = depth + 1, children[left[children] != children]
    return depth
