# SPDX-License-Identifier: Apache-2.0
"""ONNX files as TVM's importer can read them: shapes fixed, constants folded, missing operators rewritten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnx
from minrpc.errors import ConfigurationError
from onnx import ModelProto, NodeProto, ValueInfoProto, numpy_helper

from minrpc_models.formats.onnx_branches import with_branches
from minrpc_models.formats.onnx_broadcast import rewrite_expand, rewrite_prelu, rewrite_slice
from minrpc_models.formats.onnx_classical import CLASSICAL
from minrpc_models.formats.onnx_graph import Graph, Rewriting, known
from minrpc_models.formats.onnx_indices import rewrite_non_zero, rewrite_top_k
from minrpc_models.formats.onnx_recurrent import rewrite_gru, rewrite_lstm, rewrite_rnn
from minrpc_models.formats.onnx_runtime import NOT_INSTALLED, folded
from minrpc_models.formats.onnx_sequences import SEQUENCES

Shapes = Mapping[str, Sequence[int]]
"""Shapes of inputs by name; also extents of named dimensions, as one number."""

REWRITTEN: Final[dict[str, Rewriting]] = {
    "LSTM": rewrite_lstm,
    "GRU": rewrite_gru,
    "RNN": rewrite_rnn,
    "Expand": rewrite_expand,
    "NonZero": rewrite_non_zero,
    "PRelu": rewrite_prelu,
    "Slice": rewrite_slice,
    "TopK": rewrite_top_k,
    **CLASSICAL,
    **SEQUENCES,
}
"""Operators that are rewritten, by name."""

_LEAST_OPSET: Final = 10
"""Older operators take some numbers as attributes; the rewritten nodes have these numbers as inputs."""


def fixed(model: ModelProto, shapes: Shapes, constants: Mapping[str, npt.NDArray[Any]]) -> ModelProto:
    """A copy of the model with constants in place of some inputs, and known shapes of the others.

    shapes: of inputs that have none, or extents of named dimensions. An unknown extent is 1 if it is the
        first of its input, the batch. constants: by input; of any type.

    Raises ConfigurationError for a name that is no input, and a shape or type that does not fit; for a shape
    that stays unknown, the next step names the option to give.
    """
    model = deepcopy(model)
    bound = {item.name for item in model.graph.initializer}
    given = {item.name: item for item in model.graph.input if item.name not in bound}
    del model.graph.input[:]  # Inputs with a value, which a caller could replace, are constants here, too.
    model.graph.input.extend(given.values())
    given = {item.name: item for item in model.graph.input}
    for name, value in constants.items():
        _bind(model, _input(given, name, "--constant"), value)
        del given[name]
    extents = _extents(given, shapes)
    for name, item in given.items():
        if item.type.HasField("tensor_type"):
            _fix(item, shapes.get(name), extents)
    del model.graph.value_info[:]
    for output in model.graph.output:
        if output.type.HasField("tensor_type"):
            output.type.tensor_type.ClearField("shape")
    return model


def _input(given: Mapping[str, ValueInfoProto], name: str, option: str) -> ValueInfoProto:
    if name not in given:
        raise ConfigurationError(
            f"the model has no input {name}, but {', '.join(given) or 'none'}",
            next_step=f"correct the name after {option}",
        )
    return given[name]


def _bind(model: ModelProto, item: ValueInfoProto, value: npt.NDArray[Any]) -> None:
    """Make an input a constant."""
    kind = item.type.tensor_type
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    made = np.asarray(value).astype(dtype)
    due = tuple(extent.dim_value if known(extent) else None for extent in kind.shape.dim)
    if made.size == 1 and all(extent in (1, None) for extent in due):
        made = made.reshape([1] * len(due))
    fits = len(due) == made.ndim and all(
        extent in (None, size) for extent, size in zip(due, made.shape, strict=True)
    )
    if not fits or not np.array_equal(made.ravel(), np.ravel(value)):
        raise ConfigurationError(
            f"the constant {item.name} is {dtype.name}{_shown(item)}, not {np.asarray(value).tolist()}",
            next_step="correct the value after --constant",
        )
    model.graph.initializer.append(numpy_helper.from_array(made, item.name))
    model.graph.input.remove(item)


def _extents(given: Mapping[str, ValueInfoProto], shapes: Shapes) -> dict[str, int]:
    """The extents of named dimensions: the extents that `shapes` names, the extents in its shapes, and 1 for
    a batch."""
    named = {
        extent.dim_param
        for item in given.values()
        for extent in item.type.tensor_type.shape.dim
        if extent.dim_param
    }
    batches = [item.type.tensor_type.shape.dim[:1] for item in given.values()]
    extents = {extent.dim_param: 1 for first in batches for extent in first if extent.dim_param}
    for name, shape in shapes.items():
        if name not in given and name in named and len(shape) == 1:
            extents[name] = shape[0]
            continue
        dimensions = _input(given, name, "--shape").type.tensor_type.shape.dim
        if len(dimensions) == len(shape):
            extents |= {
                extent.dim_param: size
                for extent, size in zip(dimensions, shape, strict=True)
                if extent.dim_param
            }
    return extents


def _fix(item: ValueInfoProto, shape: Sequence[int] | None, extents: Mapping[str, int]) -> None:
    """Give an input its shape. Raises ConfigurationError for a shape that does not fit, or stays unknown."""
    shown, dimensions = _shown(item), item.type.tensor_type.shape.dim
    if not item.type.tensor_type.HasField("shape"):
        if shape is None:
            raise ConfigurationError(
                f"the input {item.name} has no shape", next_step=f"give it: --shape {item.name}=1,EXTENT,..."
            )
        for _ in shape:
            dimensions.add()
    if shape is not None and len(shape) != len(dimensions):
        raise ConfigurationError(
            f"the input {item.name} has {len(dimensions)} dimensions, {shown}, not {len(shape)}",
            next_step=f"give {len(dimensions)} numbers after --shape {item.name}=",
        )
    for number, extent in enumerate(dimensions):
        size = shape[number] if shape is not None else extents.get(extent.dim_param)
        if known(extent):
            if size not in (None, extent.dim_value):
                raise ConfigurationError(
                    f"the input {item.name} is {shown}: dimension {number} can't be {size}",
                    next_step="correct --shape: it can't change the model's own numbers",
                )
            continue
        if size is None and number > 0:
            raise ConfigurationError(
                f"the shape of the input {item.name} is not known before the model runs: {shown}",
                next_step=f"give it: --shape {item.name}={_template(item)}",
            )
        extent.Clear()
        extent.dim_value = 1 if size is None else size


def _shown(item: ValueInfoProto) -> str:
    extents = item.type.tensor_type.shape.dim
    return "[" + ", ".join(str(e.dim_value) if known(e) else e.dim_param or "?" for e in extents) + "]"


def _template(item: ValueInfoProto) -> str:
    """The value of --shape with the known shapes, and words for the others."""
    extents = item.type.tensor_type.shape.dim
    words = [
        str(extent.dim_value) if known(extent) else "1" if not number else f"N{number}"
        for number, extent in enumerate(extents)
    ]
    return ",".join(words)


def prepared(model: ModelProto) -> tuple[ModelProto, str]:
    """The folded model without operators of `REWRITTEN`; and the reason why it was not folded, "" if it was.

    Raises ModelError for a layer that can't be rewritten, ConfigurationError if the cache can't be written.
    """
    model, why = folded(with_branches(model))
    operators = {node.op_type for node in model.graph.node} & set(REWRITTEN)
    if not operators:
        return model, why
    model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    if Graph(model).opset < _LEAST_OPSET and operators - {"PRelu", "Slice"}:
        model, why = folded(onnx.version_converter.convert_version(model, 13))
        model = onnx.shape_inference.infer_shapes(model)
    Graph(model).rewrite(REWRITTEN)
    model, why_again = folded(model)
    return model, why or why_again


def way_round(model: ModelProto, why: str) -> str:
    """Advice for a prepared model that TVM's importer does not take, with a command to type.

    why: the reason why its constants were not folded, "" if they were.
    """
    if why == NOT_INSTALLED:
        return "pip install onnxruntime: it folds constants, shapes and branches before TVM reads the model"
    made = {output: node for node in model.graph.node for output in node.output}
    inputs = {item.name for item in model.graph.input}
    operators = {node.op_type for node in model.graph.node}
    for node in model.graph.node:
        if node.op_type in ("If", "Loop"):
            name = _origin(node.input[:1] if node.op_type == "If" else node.input[:2], made, inputs)
            if name:
                return f"--constant {name}=VALUE: {node.op_type} {node.name} depends on this input"
        for number in _SHAPES_OF.get(node.op_type, ()):
            name = _origin(node.input[number : number + 1], made, inputs)
            if name:
                return (
                    f"--constant {name}=N,...: the shape that {node.op_type} {node.name} makes depends on it"
                )
    for name in sorted(operators & set(_WAYS)):
        return f"{name}: {_WAYS[name]}"
    return "leave the operator out when the model is exported, or compute it in C before or after the model"


_SHAPES_OF: Final = {
    "Expand": (1,),
    "Reshape": (1,),
    "Tile": (1,),
    "ConstantOfShape": (0,),
    "Range": (0, 1, 2),
}
"""Inputs that make the shape of a result, by operator."""

_QDQ: Final = (
    "quantize in the QDQ format: onnxruntime.quantization.quantize_static(..., quant_format=QuantFormat.QDQ)"
)
_TEXT: Final = "text is no tensor of a device: turn it into numbers first, and give them as the input"
_WAYS: Final = {
    **dict.fromkeys(("QLinearConv", "QLinearMatMul", "ConvInteger"), _QDQ),
    **dict.fromkeys(("StringNormalizer", "StringSplit", "TfIdfVectorizer", "LabelEncoder"), _TEXT),
    "SVMClassifier": "train sklearn.svm.LinearSVC, or sklearn.linear_model.SGDClassifier, in its place",
    "Gradient": "export the model for inference, not for training",
}
"""Advice for operators that TVM's importer lacks."""


def _origin(names: Sequence[str], made: Mapping[str, NodeProto], inputs: set[str]) -> str:
    """The first input that some tensors are computed from, "" if there is no such input."""
    waiting, seen = list(names), set[str]()
    while waiting:
        name = waiting.pop()
        if name in inputs:
            return name
        if name in made and name not in seen:
            seen.add(name)
            waiting += made[name].input
    return ""
