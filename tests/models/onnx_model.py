# SPDX-License-Identifier: Apache-2.0
"""A small network as an ONNX file: convolution, relu, a linear layer, softmax on a 16x16 picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest


def write_kinds(path: Path) -> Path:
    """float16 and booleans: y is x * x + x where x is at least 1, else x; flags mark these."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes = [
        helper.make_node("Less", ["x", "one"], ["small"]),
        helper.make_node("Mul", ["x", "x"], ["square"]),
        helper.make_node("Add", ["square", "x"], ["sum"]),
        helper.make_node("Where", ["small", "x", "sum"], ["y"]),
        helper.make_node("Not", ["small"], ["flags"]),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT16, [1, 16]) for name in "xy")
    flags = helper.make_tensor_value_info("flags", TensorProto.BOOL, [1, 16])
    item = numpy_helper.from_array(np.ones(1, np.float16), "one")
    graph = helper.make_graph(nodes, "kinds", [x], [y, flags], [item])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, str(path))
    return path


def write_onnx(path: Path) -> Path:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(3)
    weights = {
        "kernel": rng.standard_normal((4, 1, 3, 3)),
        "bias": rng.standard_normal(4),
        "matrix": rng.standard_normal((1024, 5)),
        "offset": rng.standard_normal(5),
    }
    constants = [numpy_helper.from_array(weight.astype(np.float32), name) for name, weight in weights.items()]
    nodes = [
        helper.make_node("Conv", ["x", "kernel", "bias"], ["filtered"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["filtered"], ["positive"]),
        helper.make_node("Flatten", ["positive"], ["flat"]),
        helper.make_node("Gemm", ["flat", "matrix", "offset"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 16, 16])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 5])
    graph = helper.make_graph(nodes, "net", [x], [y], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, str(path))
    return path


def write_nodes(
    path: Path,
    *operators: tuple[str, list[tuple[str, str, list[int]]]],
    constants: dict[str, Any] | None = None,
    **attributes: Any,  # noqa: ANN401 - of the last operator
) -> Path:
    """Operators in a row: each takes its named inputs, (name, dtype, shape), after the previous node's
    output.

    Names in `constants` are no inputs. The output is "y".
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    given = constants or {}
    inputs: dict[str, Any] = {}
    nodes: list[Any] = []
    for number, (operator, tensors) in enumerate(operators):
        last = number == len(operators) - 1
        names = [*(nodes[-1].output if nodes else ()), *(name for name, _, _ in tensors)]
        for name, dtype, shape in tensors:
            if name not in given:
                kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
                inputs[name] = helper.make_tensor_value_info(name, kind, shape)
        nodes.append(
            helper.make_node(
                operator, names, ["y" if last else f"between{number}"], **(attributes if last else {})
            )
        )
    weights = [numpy_helper.from_array(np.asarray(value), name) for name, value in given.items()]
    y = helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)
    graph = helper.make_graph(nodes, "net", list(inputs.values()), [y], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    model = onnx.shape_inference.infer_shapes(model)
    onnx.save(model, str(path))
    return path


def need_gather() -> None:
    """Skip the test with TVM before 0.26, which finds a shape of ONNX's Gather only when the model runs."""
    import tvm

    if tuple(map(int, tvm.__version__.split(".")[:2])) < (0, 26):
        pytest.skip(f"TVM {tvm.__version__} can't lower ONNX's Gather")
