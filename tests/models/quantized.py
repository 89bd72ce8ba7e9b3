# SPDX-License-Identifier: Apache-2.0
"""A quantized network in Relax, as TVM's importers write it, and its integer arithmetic in numpy.

The arithmetic is written from TFLite's specification of 8-bit quantization, with big Python integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from minrpc_models.cmsis_nn import Add, Bounds, Conv2D, Dense, Kernel, Pool, Softmax

Ints = npt.NDArray[Any]
INPUT = (1, 9, 6, 4)


class Builder:
    """Emits quantized operators into a function of one int8 input."""

    def __init__(self, shape: tuple[int, ...], seed: int = 1, dtype: str = "int8") -> None:
        from tvm import relax

        self.relax: Any = relax
        self._builder = relax.BlockBuilder()
        tensor = getattr(relax, "TensorStructInfo", None) or relax.TensorType
        self.x = relax.Var("x", tensor(shape, dtype))
        self._rng = np.random.default_rng(seed)

    def emit(self, value: Any) -> Any:  # noqa: ANN401
        return self._builder.emit(value)

    def floats(self, x: Any, scale: float, zero: int) -> Any:  # noqa: ANN401
        const = self.relax.const
        return self.emit(self.relax.op.dequantize(x, const(scale, "float32"), const(zero, "int32"), axis=0))

    def ints(self, x: Any, scale: float, zero: int, bounds: tuple[int, int] | None = None) -> Any:  # noqa: ANN401
        const = self.relax.const
        made = self.emit(
            self.relax.op.quantize(x, const(scale, "float32"), const(zero, "int32"), axis=0, out_dtype="int8")
        )
        return made if bounds is None else self.emit(self.relax.op.clip(made, *bounds))

    def weights(self, shape: tuple[int, ...], axis: int | None, zero: int = 0) -> tuple[Any, Ints]:
        """Random weights as floats, and their scales; a scale for each extent of `axis`."""
        const = self.relax.const
        array = self._rng.integers(-127, 128, shape).astype(np.int8)
        count = shape[axis] if axis is not None else 1
        scales = self._rng.uniform(0.002, 0.004, count).astype(np.float32)
        scale = const(scales if axis is not None else scales[0], "float32")
        floats = self.relax.op.dequantize(const(array), scale, const(zero, "int32"), axis=axis or 0)
        return self.emit(floats), scales

    def with_bias(self, x: Any, scales: Ints, outputs: int) -> Any:  # noqa: ANN401
        const = self.relax.const
        array = const(self._rng.integers(-2000, 2000, outputs).astype(np.int32))
        scale = const(scales if scales.size > 1 else scales[0], "float32")
        biases = self.emit(self.relax.op.dequantize(array, scale, const(0, "int32"), axis=0))
        return self.emit(self.relax.op.add(x, biases))

    def conv2d(self, x: Any, given: tuple[float, int], made: tuple[float, int], **options: Any) -> Any:  # noqa: ANN401
        """A convolution with 5 outputs from 4 channels, 3 by 2, bounded from below by zero."""
        weights, scales = self.weights((3, 2, 4, 5), 3)
        options |= {"data_layout": "NHWC", "kernel_layout": "HWIO"}
        out = self.emit(self.relax.op.nn.conv2d(self.floats(x, *given), weights, **options))
        out = self.with_bias(out, np.float32(given[0]) * scales, 5)
        return self.ints(out, *made, bounds=(made[1], 127))

    def finished(self, result: Any) -> Any:  # noqa: ANN401
        with self._builder.function("main", [self.x]):
            self._builder.emit_func_output(result)
        return self._builder.finalize()


def network() -> Any:  # noqa: ANN401 - TVM has no types
    """A network with each kernel once: convolution, depthwise, add, maximum, dense by tensor and by channel,
    softmax."""
    given, first, second, third = (0.05, 3), (0.07, -20), (0.06, 11), (0.09, 5)
    net = Builder(INPUT)
    relax, nn = net.relax, net.relax.op.nn
    with net._builder.function("main", [net.x]):
        a = net.conv2d(net.x, given, first, strides=(2, 1), padding=(1, 0, 1, 1))
        weights, scales = net.weights((1, 3, 3, 5), 3)
        weights = net.emit(relax.op.reshape(weights, (3, 3, 5, 1)))
        layouts = {"data_layout": "NHWC", "kernel_layout": "HWOI"}
        b = net.emit(nn.conv2d(net.floats(a, *first), weights, padding=(1, 1, 1, 1), groups=5, **layouts))
        b = net.ints(net.with_bias(b, np.float32(first[0]) * scales, 5), *second)
        c = net.emit(relax.op.add(net.floats(a, *first), net.floats(b, *second)))
        c = net.ints(net.emit(nn.relu(c)), *third)
        d = net.emit(nn.max_pool2d(c, pool_size=(2, 3), strides=(2, 2), layout="NHWC"))
        d = net.emit(relax.op.reshape(d, (1, 20)))
        weights, scales = net.weights((20, 6), None)
        e = net.emit(relax.op.matmul(net.floats(d, *third), weights))
        e = net.ints(net.with_bias(e, np.float32(third[0]) * scales, 6), *first)
        weights, scales = net.weights((6, 4), 1)
        f = net.ints(net.emit(relax.op.matmul(net.floats(e, *first), weights)), 0.08, 2)
        g = net.emit(nn.softmax(net.floats(f, 0.08, 2), axis=-1))
        net._builder.emit_func_output(net.ints(g, 1 / 256, -128))
    return net._builder.finalize()


def scaled(value: int, multiplier: int, shift: int) -> int:
    """The value times multiplier * 2^(shift - 31), rounded at 31 bits, then again at the rest."""
    product = value * 2 ** max(shift, 0) * multiplier
    high = (product + (1 << 30) if product >= 0 else product + 1 - (1 << 30)) / (1 << 31)
    return rounded(int(high), max(-shift, 0))


def rounded(value: int, bits: int) -> int:
    """value / 2^bits, a value in the middle is rounded away from 0."""
    half = (1 << bits) >> 1
    return (value + half) >> bits if value >= 0 else -((-value + half) >> bits)


def bounded(values: Ints, bounds: Bounds) -> Ints:
    made: Ints = np.clip(values + bounds.zero, bounds.low, bounds.high).astype(np.int8)
    return made


def computed(kernel: Kernel, *inputs: Ints) -> Ints:
    """The kernel's output by its parameters alone."""
    match kernel.what:
        case Conv2D() as what:
            return _conv2d(what, kernel.constants, inputs[0])
        case Dense() as what:
            weights, biases, multipliers, shifts, _ = (array.astype(int) for array in kernel.constants)
            x = inputs[0].reshape(what.rows, what.size).astype(int) - what.input_zero
            sums = x @ weights.T + biases
            pairs = np.broadcast_arrays(multipliers, shifts, biases)[:2]
            return bounded(_each(scaled, sums, *pairs), what.bounds)
        case Pool() as what:
            return _pool(what, inputs[0])
        case Add() as what:
            sums = sum(
                _each(
                    scaled,
                    (array.astype(int) - zero) << what.left_shift,
                    np.int64(multiplier),
                    np.int64(shift),
                )
                for array, (zero, multiplier, shift) in zip(inputs, what.inputs, strict=True)
            )
            return bounded(_each(scaled, sums, *map(np.int64, what.output)), what.bounds)
        case Softmax() as what:
            factor = what.multiplier / 2.0**31 * 2.0**what.shift / 2.0**26
            x = inputs[0].reshape(what.rows, what.size).astype(float)
            powers = np.exp(factor * (x - x.max(axis=1, keepdims=True)))
            shares = np.rint(powers / powers.sum(axis=1, keepdims=True) * 256).astype(int)
            return bounded(shares, Bounds(-128))


def _each(function: Any, *arrays: Any) -> Ints:  # noqa: ANN401
    made: Ints = np.vectorize(lambda *items: function(*map(int, items)), otypes=[int])(*arrays)
    return made


def _windows(what: Conv2D | Pool, x: Ints, fill: int) -> Any:  # noqa: ANN401
    """Each place of the output with the part of the input that it sees, by rows and columns."""
    dilation = what.dilation if isinstance(what, Conv2D) else (1, 1)
    reach = [(size - 1) * apart + 1 for size, apart in zip(what.kernel, dilation, strict=True)]
    (top, left), (height, width) = what.padding, what.output[1:3]
    after = [reach[0] + height * what.stride[0], reach[1] + width * what.stride[1]]
    padded = np.pad(x[0].astype(int), ((top, after[0]), (left, after[1]), (0, 0)), constant_values=fill)
    for row, column in np.ndindex(height, width):
        y, z = row * what.stride[0], column * what.stride[1]
        yield row, column, padded[y : y + reach[0] : dilation[0], z : z + reach[1] : dilation[1]]


def _conv2d(what: Conv2D, constants: tuple[Ints, ...], x: Ints) -> Ints:
    weights, biases, multipliers, shifts = (array.astype(int) for array in constants)
    out = np.zeros(what.output, int)
    for row, column, seen in _windows(what, x, what.input_zero):
        seen = seen - what.input_zero
        if what.depth:
            sums = (np.repeat(seen, what.depth, axis=2) * weights).sum(axis=(0, 1))
        else:
            sums = (seen * weights).sum(axis=(1, 2, 3))
        out[0, row, column] = _each(scaled, sums + biases, multipliers, shifts)
    return bounded(out, what.bounds)


def _pool(what: Pool, x: Ints) -> Ints:
    out = np.zeros(what.output, int)
    for row, column, seen in _windows(what, x, -128):
        out[0, row, column] = seen.max(axis=(0, 1))
    return bounded(out, what.bounds)
