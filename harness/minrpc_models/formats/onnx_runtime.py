# SPDX-License-Identifier: Apache-2.0
"""onnxruntime on this machine: folds a model's constants, and is a second witness of its outputs.

Its basic optimizations leave ONNX's own operators only. Without onnxruntime a model is imported unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnx
from minrpc.extension import scratch
from onnx import ModelProto, NodeProto

NOT_INSTALLED: Final = "onnxruntime is not installed"


def folded(model: ModelProto) -> tuple[ModelProto, str]:
    """The model after onnxruntime's basic optimizations; if they fail, the unchanged model and the reason.

    Raises ConfigurationError if the cache can't be written.
    """
    try:
        runtime = import_module("onnxruntime")
    except ImportError:
        return model, NOT_INSTALLED
    with scratch() as directory:
        file = directory / "folded.onnx"
        options = runtime.SessionOptions()
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = str(file)
        try:
            _session(model, options)
        except Exception as error:  # onnxruntime's errors have no common class.
            return model, f"onnxruntime can't fold its constants: {_first_line(error)}"
        return onnx.load(str(file)), ""


def outputs_of(model: ModelProto, inputs: Mapping[str, npt.NDArray[Any]]) -> list[Any]:
    """onnxruntime's outputs of a model that is not optimized; empty if onnxruntime is not installed, or can't
    run the model.

    inputs: by name; inputs that the model does not have are left out.
    """
    try:
        runtime = import_module("onnxruntime")
    except ImportError:
        return []
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = _session(model, options)
        taken = {item.name for item in session.get_inputs()}
        given = {name: array for name, array in inputs.items() if name in taken}
        labels = {name: _labels(node) for node in model.graph.node for name in node.output}
        names = [item.name for item in session.get_outputs()]
        results = zip(names, session.run(None, given), strict=True)
        return [_array(output, labels.get(name, ())) for name, output in results]
    except Exception:  # onnxruntime's errors have no common class; it is a witness only.
        return []


def inputs_of(model: ModelProto) -> list[str]:
    """The names of a model's inputs, without those that have a value."""
    bound = {item.name for item in model.graph.initializer}
    return [item.name for item in model.graph.input if item.name not in bound]


def _session(model: ModelProto, options: Any) -> Any:  # noqa: ANN401 - onnxruntime has no types
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = import_module("onnxruntime").InferenceSession
    return session(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _labels(node: NodeProto) -> Sequence[Any]:
    """The labels of a ZipMap, in the order of its input; empty for another operator."""
    lists = (item.ints or [text.decode() for text in item.strings] for item in node.attribute)
    return next((list(labels) for labels in lists if labels), []) if node.op_type == "ZipMap" else []


def _array(output: Any, labels: Sequence[Any]) -> Any:  # noqa: ANN401
    """Scores by label, as ZipMap gives them for each row, are an array in the order of `labels`."""
    if isinstance(output, list) and labels:
        return np.array([[row[label] for label in labels] for row in output], np.float32)
    return output


def _first_line(error: Exception) -> str:
    """An error's text without the places in onnxruntime's sources at its end."""
    lines = str(error).partition(" /onnxruntime_src/")[0].strip().splitlines()
    return lines[0] if lines else type(error).__name__
