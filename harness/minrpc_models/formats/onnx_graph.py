# SPDX-License-Identifier: Apache-2.0
"""Changes the nodes of an ONNX graph: new constants and nodes under new names, and a table of rewritings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, helper, numpy_helper

from minrpc_models.errors import ModelError

Rewriting = Callable[["Graph", NodeProto], None]
"""Adds nodes that compute the outputs of a node, which is then removed. Raises ModelError."""


class Graph:
    """The main graph of a model, while some of its nodes are replaced."""

    def __init__(self, model: ModelProto) -> None:
        self.model = model
        self._constants = {item.name: item for item in model.graph.initializer}
        self._types = {
            item.name: item.type.tensor_type
            for item in (*model.graph.input, *model.graph.value_info, *model.graph.output)
        }
        self.sequences: dict[str, list[str]] = {}
        """The tensors of each sequence that is known, by its name."""
        self._added: list[NodeProto] = []
        self._count = 0

    def rewrite(self, table: dict[str, Rewriting]) -> bool:
        """Replace each node whose operator is in `table`; True if there was any."""
        nodes = list(self.model.graph.node)
        if not any(node.op_type in table for node in nodes):
            return False
        for node in nodes:
            if node.op_type in table:
                table[node.op_type](self, node)
            else:
                self._added.append(node)
        del self.model.graph.node[:]
        self.model.graph.node.extend(self._added)
        return True

    def constant(self, values: npt.ArrayLike, dtype: npt.DTypeLike) -> str:
        """The name of a new constant."""
        name = self._fresh("constant")
        self.model.graph.initializer.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def node(self, operator: str, *inputs: str, gives: str = "", **attributes: Any) -> str:  # noqa: ANN401
        """The name of the output of a new node. gives: the name, if it is prescribed."""
        output = gives or self._fresh(operator)
        self._added.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def copy(self, node: NodeProto, inputs: Iterable[str]) -> None:
        """Add a copy of a node, with these inputs."""
        made = deepcopy(node)
        made.input[:] = inputs
        self._added.append(made)

    def reshaped(self, name: str, shape: Iterable[int], gives: str = "") -> str:
        """`name` with another shape."""
        return self.node("Reshape", name, self.constant(list(shape), np.int64), gives=gives)

    def part(self, name: str, begin: int, end: int, axis: int) -> str:
        """Elements `begin` to `end` along an axis."""
        bounds = (self.constant([value], np.int64) for value in (begin, end, axis))
        return self.node("Slice", name, *bounds)

    def cast(self, name: str, dtype: int, gives: str = "") -> str:
        """`name` as another type, a number of TensorProto's."""
        return self.node("Cast", name, gives=gives, to=dtype)

    def reduced(self, operator: str, name: str, axis: int, keepdims: int = 1) -> str:
        """`name` without an axis, or with an axis of one element. ONNX has changed the place of the axis."""
        since = 13 if operator == "ReduceSum" else 18
        if self.opset < since:
            return self.node(operator, name, axes=[axis], keepdims=keepdims)
        return self.node(operator, name, self.constant([axis], np.int64), keepdims=keepdims)

    @property
    def opset(self) -> int:
        """The version of ONNX's own operators."""
        versions = [item.version for item in self.model.opset_import if item.domain in ("", "ai.onnx")]
        return min(versions, default=1)

    def value(self, name: str) -> npt.NDArray[Any] | None:
        """The elements of a constant; None for a tensor that is computed."""
        constant = self._constants.get(name)
        return None if constant is None else numpy_helper.to_array(constant)

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor. Raises ModelError if it is not known."""
        constant = self._constants.get(name)
        if constant is not None:
            return tuple(constant.dims)
        kind = self._types.get(name)
        if kind is None or not kind.HasField("shape") or not all(map(known, kind.shape.dim)):
            raise ModelError(f"the shape of {name} is not known before the model runs")
        return tuple(extent.dim_value for extent in kind.shape.dim)

    def dtype(self, name: str) -> int:
        """The type of a tensor's elements, a number of TensorProto's; UNDEFINED if it is not known."""
        constant, kind = self._constants.get(name), self._types.get(name)
        return constant.data_type if constant is not None else kind.elem_type if kind is not None else 0

    def set_output(self, name: str, dtype: int) -> None:
        """Declare `name`, if it is an output, as a tensor of `dtype`, a number of TensorProto's."""
        for item in self.model.graph.output:
            if item.name == name:
                item.CopyFrom(helper.make_tensor_value_info(name, dtype, None))

    def _fresh(self, hint: str) -> str:
        self._count += 1
        return f"minrpc_{hint.lower()}{self._count}"


def known(extent: Any) -> bool:  # noqa: ANN401 - a message of protobuf
    """True for an extent of a shape that is a number."""
    return bool(extent.HasField("dim_value") and extent.dim_value >= 0)


def attributes(node: NodeProto) -> dict[str, Any]:
    """The attributes of a node by name; strings are text."""
    by_name = {item.name: helper.get_attribute_value(item) for item in node.attribute}
    return {name: _text(value) for name, value in by_name.items()}


def _text(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, list):
        return [_text(item) for item in value]
    return value
