# SPDX-License-Identifier: Apache-2.0
"""A network like MobileNet, with random weights: depthwise and pointwise convolutions in turn.

Float as an ONNX file, int8 as a Relax module, and numpy's results for both.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

SIZE, CHANNELS, BLOCKS, SHIFT = 8, 8, 10, 6
SHAPE = (1, CHANNELS, SIZE, SIZE)

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Layer:
    """A convolution with a bias and a relu. weight: by output channel, input channel of its group, y, x."""

    weight: Array
    bias: Array

    @property
    def groups(self) -> int:
        return CHANNELS if self.weight.shape[1] == 1 and self.weight.shape[2] == 3 else 1

    @property
    def pad(self) -> int:
        return int(self.weight.shape[2]) // 2


def layers(dtype: type[np.floating[Any]] | type[np.integer[Any]], seed: int = 7) -> list[Layer]:
    """Twenty layers of eight channels each."""
    rng = np.random.default_rng(seed)
    shapes = [(CHANNELS, 1, 3, 3), (CHANNELS, CHANNELS, 1, 1)] * BLOCKS
    made = []
    for shape in shapes:
        if np.issubdtype(dtype, np.integer):
            weight, bias = rng.integers(-60, 60, shape), rng.integers(-500, 500, CHANNELS)
            made.append(Layer(weight.astype(np.int8), bias.astype(np.int32)))
        else:
            scale = np.sqrt(2 / np.prod(shape[1:]))
            made.append(
                Layer((scale * rng.standard_normal(shape)).astype(dtype), np.full(CHANNELS, 0.1, dtype))
            )
    return made


def convolved(x: Array, layer: Layer) -> Array:
    """The layer's output, in double precision, or exactly in int32."""
    wide = np.float64 if x.dtype.kind == "f" else np.int32
    pad = layer.pad
    padded = np.pad(x.astype(wide), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows: Any = np.lib.stride_tricks.sliding_window_view(padded, layer.weight.shape[2:], axis=(2, 3))
    weight: Any = layer.weight.astype(wide)
    bias: Array = layer.bias.astype(wide)[None, :, None, None]
    if layer.groups == 1:
        sums: Array = np.einsum("ncyxvu,fcvu->nfyx", windows, weight)
    else:
        sums = np.einsum("ncyxvu,cvu->ncyx", windows, weight[:, 0])
    return sums + bias


def expected(x: Array, net: list[Layer]) -> Array:
    """The network's output for an input of eight channels."""
    for layer in net:
        x = convolved(x, layer)
        x = np.maximum(x, 0) if x.dtype.kind == "f" else np.clip(x >> SHIFT, 0, 127).astype(np.int8)
    return x.mean(axis=(2, 3)) if x.dtype.kind == "f" else x


def write_onnx(path: Path, net: list[Layer]) -> Path:
    """x: float32[1, 8, 8, 8]; y: the means of the last layer's channels."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    constants, nodes, at = [], [], "x"
    for number, layer in enumerate(net):
        names = [at, f"w{number}", f"b{number}"]
        constants += [
            numpy_helper.from_array(layer.weight, names[1]),
            numpy_helper.from_array(layer.bias, names[2]),
        ]
        nodes.append(
            helper.make_node("Conv", names, [f"c{number}"], pads=[layer.pad] * 4, group=layer.groups)
        )
        at = f"r{number}"
        nodes.append(helper.make_node("Relu", [f"c{number}"], [at]))
    nodes.append(helper.make_node("GlobalAveragePool", [at], ["means"]))
    nodes.append(helper.make_node("Flatten", ["means"], ["y"]))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, list(SHAPE))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, CHANNELS])
    graph = helper.make_graph(nodes, "mobile", [x], [y], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, str(path))
    return path


def int8_module(net: list[Layer]) -> Any:  # noqa: ANN401
    """x: int8[1, 8, 8, 8]; the last layer's channels come out, int8 too."""
    from tvm import relax

    made = getattr(relax, "TensorStructInfo", None) or relax.TensorType
    x = relax.Var("x", made(SHAPE, "int8"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        at = x
        for layer in net:
            sums = relax.op.nn.conv2d(
                at, relax.const(layer.weight), padding=layer.pad, groups=layer.groups, out_dtype="int32"
            )
            biased = relax.op.add(sums, relax.const(layer.bias.reshape(1, CHANNELS, 1, 1)))
            shifted = builder.emit(relax.op.right_shift(biased, relax.const(np.array(SHIFT, np.int32))))
            at = builder.emit(relax.op.astype(relax.op.clip(shifted, 0, 127), "int8"))
        builder.emit_func_output(at)
    return builder.finalize()
