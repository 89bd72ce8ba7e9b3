# SPDX-License-Identifier: Apache-2.0
"""A small network as an ONNX file: convolution, relu, a linear layer, softmax on a 16x16 picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np


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
    constants = [numpy_helper.from_array(one.astype(np.float32), name) for name, one in weights.items()]
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
