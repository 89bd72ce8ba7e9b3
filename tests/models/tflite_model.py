# SPDX-License-Identifier: Apache-2.0
"""Networks as TFLite files, written with flatbuffers: two layers, the first with relu; a sum over runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.models.waveforms import CLASSES, HIDDEN, SAMPLES, Network

# Numbers in TFLite's schema.
_FLOAT32 = 0
_INT8 = 9
_RESOURCE = 13
_FULLY_CONNECTED = 9
_RELU = 1


def write_tflite(path: Path, network: Network) -> Path:
    import flatbuffers

    builder = flatbuffers.Builder(1 << 14)
    arrays = [network.w1.T, network.b1, network.w2.T, network.b2]
    data = [b"", *(np.ascontiguousarray(array).tobytes() for array in arrays)]
    buffers = _vector(builder, "Model", "Buffers", [_buffer(builder, piece) for piece in data])
    shapes = [(1, SAMPLES), (1, HIDDEN), (1, CLASSES), *(array.shape for array in arrays)]
    made = [
        _tensor(builder, f"t{number}", shape, _FLOAT32, max(0, number - 2))
        for number, shape in enumerate(shapes)
    ]
    tensors = _vector(builder, "SubGraph", "Tensors", made)
    calls = [_layer(builder, (0, 3, 4), 1, _RELU), _layer(builder, (1, 5, 6), 2, 0)]
    operators = _vector(builder, "SubGraph", "Operators", calls)
    inputs, outputs = (
        _numbers(builder, "SubGraph", "Inputs", [0]),
        _numbers(builder, "SubGraph", "Outputs", [2]),
    )
    graph = _table(builder, "SubGraph", Tensors=tensors, Inputs=inputs, Outputs=outputs, Operators=operators)
    code = _table(
        builder, "OperatorCode", DeprecatedBuiltinCode=_FULLY_CONNECTED, BuiltinCode=_FULLY_CONNECTED
    )
    codes = _vector(builder, "Model", "OperatorCodes", [code])
    graphs = _vector(builder, "Model", "Subgraphs", [graph])
    model = _table(builder, "Model", Version=3, OperatorCodes=codes, Subgraphs=graphs, Buffers=buffers)
    builder.Finish(model, b"TFL3")
    path.write_bytes(bytes(builder.Output()))
    return path


def write_sum(path: Path, first: list[float], times_read: int = 1) -> Path:
    """y = x + sum, and sum = y for the next run; `first` is its first value. All are float32[1, 4]."""
    import flatbuffers
    import tflite

    builder = flatbuffers.Builder(1 << 12)
    kinds = ("CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ADD", "ASSIGN_VARIABLE")
    numbers = [getattr(tflite.BuiltinOperator, kind) for kind in kinds]
    made = [_table(builder, "OperatorCode", DeprecatedBuiltinCode=0, BuiltinCode=code) for code in numbers]
    codes = _vector(builder, "Model", "OperatorCodes", made)
    data = [b"", np.array(first, np.float32).tobytes()]
    buffers = _vector(builder, "Model", "Buffers", [_buffer(builder, piece) for piece in data])
    name = builder.CreateString("net/sum")
    handle = (1, (), (0,), "VarHandleOptions", _table(builder, "VarHandleOptions", SharedName=name))
    once = (0, (), (), "CallOnceOptions", _table(builder, "CallOnceOptions", InitSubgraphIndex=1))
    plus = (3, (1, 2), (3,), "AddOptions", _table(builder, "AddOptions", FusedActivationFunction=0))
    reads = [(2, (0,), (2 + 2 * number,), "ReadVariableOptions", 0) for number in range(times_read)]
    assign = (4, (0, 3), (), "AssignVariableOptions", 0)
    tensors = [("handle", (), _RESOURCE, 0), *((f"in/{n}:0", (1, 4), _FLOAT32, 0) for n in "abcd")]
    main = _graph(builder, tensors, [1], [3], [once, handle, *reads, plus, assign])
    tensors = [("handle", (), _RESOURCE, 0), ("first", (1, 4), _FLOAT32, 1)]
    start = _graph(builder, tensors, [], [], [handle, (4, (0, 1), (), "AssignVariableOptions", 0)])
    graphs = _vector(builder, "Model", "Subgraphs", [main, start])
    model = _table(builder, "Model", Version=3, OperatorCodes=codes, Subgraphs=graphs, Buffers=buffers)
    builder.Finish(model, b"TFL3")
    path.write_bytes(bytes(builder.Output()))
    return path


def write_average(path: Path, rows: int) -> Path:
    """The mean of each row of four numbers: int8[rows, 2, 2, 1] to int8[rows, 1, 1, 1], pooled."""
    import flatbuffers
    import tflite

    builder = flatbuffers.Builder(1 << 12)
    number = tflite.BuiltinOperator.AVERAGE_POOL_2D
    codes = _vector(
        builder,
        "Model",
        "OperatorCodes",
        [_table(builder, "OperatorCode", DeprecatedBuiltinCode=number, BuiltinCode=number)],
    )
    buffers = _vector(builder, "Model", "Buffers", [_buffer(builder, b"")])
    window = {
        "FilterHeight": 2,
        "FilterWidth": 2,
        "StrideH": 1,
        "StrideW": 1,
        "Padding": tflite.Padding.VALID,
    }
    pool = (0, (0,), (1,), "Pool2DOptions", _table(builder, "Pool2DOptions", **window))
    tensors: list[tuple[str, tuple[int, ...], int, int]] = [
        ("x", (rows, 2, 2, 1), _INT8, 0),
        ("y", (rows, 1, 1, 1), _INT8, 0),
    ]
    graphs = _vector(builder, "Model", "Subgraphs", [_graph(builder, tensors, [0], [1], [pool])])
    model = _table(builder, "Model", Version=3, OperatorCodes=codes, Subgraphs=graphs, Buffers=buffers)
    builder.Finish(model, b"TFL3")
    path.write_bytes(bytes(builder.Output()))
    return path


def write_softmax(path: Path, beta: float) -> Path:
    """float32[1, 4] to float32[1, 4]."""
    import tflite

    number = tflite.BuiltinOperator.SOFTMAX
    return _write_single(path, {"DeprecatedBuiltinCode": number, "BuiltinCode": number}, beta)


def write_custom(path: Path, name: str) -> Path:
    """float32[1, 4] to float32[1, 4], by a custom operator."""
    import tflite

    number = tflite.BuiltinOperator.CUSTOM
    return _write_single(path, {"DeprecatedBuiltinCode": number, "BuiltinCode": number}, None, name)


def _write_single(path: Path, code: dict[str, int], beta: float | None, custom: str = "") -> Path:
    import flatbuffers

    builder = flatbuffers.Builder(1 << 12)
    if custom:
        code |= {"CustomCode": builder.CreateString(custom)}
    codes = _vector(builder, "Model", "OperatorCodes", [_table(builder, "OperatorCode", **code)])
    buffers = _vector(builder, "Model", "Buffers", [_buffer(builder, b"")])
    options = _table(builder, "SoftmaxOptions", Beta=beta) if beta is not None else 0  # type: ignore[arg-type]
    tensors: list[tuple[str, tuple[int, ...], int, int]] = [
        ("x", (1, 4), _FLOAT32, 0),
        ("y", (1, 4), _FLOAT32, 0),
    ]
    graph = _graph(builder, tensors, [0], [1], [(0, (0,), (1,), "SoftmaxOptions", options)])
    graphs = _vector(builder, "Model", "Subgraphs", [graph])
    model = _table(builder, "Model", Version=3, OperatorCodes=codes, Subgraphs=graphs, Buffers=buffers)
    builder.Finish(model, b"TFL3")
    path.write_bytes(bytes(builder.Output()))
    return path


def _quantization(builder: Any) -> int:  # noqa: ANN401
    import tflite

    tflite.QuantizationParametersStartScaleVector(builder, 1)
    builder.PrependFloat32(0.5)
    scale = builder.EndVector()
    tflite.QuantizationParametersStartZeroPointVector(builder, 1)
    builder.PrependInt64(0)
    return _table(builder, "QuantizationParameters", Scale=scale, ZeroPoint=builder.EndVector())


def _graph(
    builder: Any,  # noqa: ANN401
    tensors: list[tuple[str, tuple[int, ...], int, int]],
    inputs: list[int],
    outputs: list[int],
    operators: list[tuple[int, tuple[int, ...], tuple[int, ...], str, int]],
) -> int:
    """tensors: name, shape, type, buffer. operators: code's number, inputs, outputs, options."""
    import tflite

    made = _vector(builder, "SubGraph", "Tensors", [_tensor(builder, *tensor) for tensor in tensors])
    calls = []
    for code, given, gives, kind, options in operators:
        fields = {
            "Inputs": _numbers(builder, "Operator", "Inputs", given),
            "Outputs": _numbers(builder, "Operator", "Outputs", gives),
        }
        if options:
            fields |= {"BuiltinOptionsType": getattr(tflite.BuiltinOptions, kind), "BuiltinOptions": options}
        calls.append(_table(builder, "Operator", OpcodeIndex=code, **fields))
    return _table(
        builder,
        "SubGraph",
        Tensors=made,
        Inputs=_numbers(builder, "SubGraph", "Inputs", inputs),
        Outputs=_numbers(builder, "SubGraph", "Outputs", outputs),
        Operators=_vector(builder, "SubGraph", "Operators", calls),
    )


def _table(builder: Any, name: str, **fields: int) -> int:  # noqa: ANN401
    """A table of the schema, by the functions that its compiler made."""
    import tflite

    getattr(tflite, f"{name}Start")(builder)
    for field, value in fields.items():
        getattr(tflite, f"{name}Add{field}")(builder, value)
    made: int = getattr(tflite, f"{name}End")(builder)
    return made


def _vector(builder: Any, table: str, field: str, offsets: list[int]) -> int:  # noqa: ANN401
    import tflite

    getattr(tflite, f"{table}Start{field}Vector")(builder, len(offsets))
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    made: int = builder.EndVector()
    return made


def _numbers(builder: Any, table: str, field: str, numbers: list[int] | tuple[int, ...]) -> int:  # noqa: ANN401
    import tflite

    getattr(tflite, f"{table}Start{field}Vector")(builder, len(numbers))
    for number in reversed(numbers):
        builder.PrependInt32(number)
    made: int = builder.EndVector()
    return made


def _buffer(builder: Any, data: bytes) -> int:  # noqa: ANN401
    return _table(builder, "Buffer", **({"Data": builder.CreateByteVector(data)} if data else {}))


def _tensor(builder: Any, name: str, shape: tuple[int, ...], kind: int, buffer: int) -> int:  # noqa: ANN401
    extents, text = _numbers(builder, "Tensor", "Shape", shape), builder.CreateString(name)
    fields = {"Quantization": _quantization(builder)} if kind == _INT8 else {}
    return _table(builder, "Tensor", Shape=extents, Type=kind, Buffer=buffer, Name=text, **fields)


def _layer(builder: Any, inputs: tuple[int, ...], output: int, activation: int) -> int:  # noqa: ANN401
    import tflite

    options = _table(builder, "FullyConnectedOptions", FusedActivationFunction=activation)
    given, made = (
        _numbers(builder, "Operator", "Inputs", inputs),
        _numbers(builder, "Operator", "Outputs", [output]),
    )
    kind = tflite.BuiltinOptions.FullyConnectedOptions
    return _table(
        builder,
        "Operator",
        OpcodeIndex=0,
        Inputs=given,
        Outputs=made,
        BuiltinOptionsType=kind,
        BuiltinOptions=options,
    )
