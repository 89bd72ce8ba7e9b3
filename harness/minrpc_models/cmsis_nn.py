# SPDX-License-Identifier: Apache-2.0
"""Quantized operators that CMSIS-NN has: found in a Relax module, and replaced by calls of its kernels.

TVM's importers write a quantized operator as dequantize, the operator on floats, quantize. TFLite and
CMSIS-NN compute the same on integers: multipliers, shifts and bounds have the values of TFLite's own kernels.
An operator whose quantization does not map exactly stays with TVM's code, and `Replaced.left` has the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import floor, frexp, prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from minrpc.tvm import tvm_package

from minrpc_models.relax import constant_array, is_relax, tensor_type

_INT8: Final = (-128, 127)
_SCALE_TOLERANCE: Final = 1e-5
"""Allowed relative difference of a bias's scale from the product of the other two, which are float32."""

_ADD_SHIFT: Final = 20
_SOFTMAX_BITS: Final = 5

Ints = npt.NDArray[Any]


@dataclass(frozen=True)
class Bounds:
    """zero: the zero point of the output's quantization. low, high: its elements' bounds, by an
    activation."""

    zero: int
    low: int = _INT8[0]
    high: int = _INT8[1]


@dataclass(frozen=True)
class Conv2D:
    """input, output: shapes, NHWC. kernel: height and width; stride and dilation likewise. padding: top and
    left. depth: output channels for each input channel of a depthwise convolution; 0 for other
    convolutions."""

    input: tuple[int, ...]
    kernel: tuple[int, int]
    output: tuple[int, ...]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    input_zero: int
    bounds: Bounds
    depth: int = 0


@dataclass(frozen=True)
class Dense:
    """rows: of input and output; size: of an input row; outputs: elements of an output row. per_channel: each
    output has its own multiplier and shift."""

    rows: int
    size: int
    outputs: int
    input_zero: int
    bounds: Bounds
    per_channel: bool


@dataclass(frozen=True)
class Pool:
    """A mean or a maximum, with the fields of `Conv2D`."""

    mean: bool
    input: tuple[int, ...]
    kernel: tuple[int, int]
    output: tuple[int, ...]
    stride: tuple[int, int]
    padding: tuple[int, int]
    bounds: Bounds


@dataclass(frozen=True)
class Softmax:
    """A softmax of each row. multiplier, shift: of differences to the largest element; least: the smallest
    used difference."""

    rows: int
    size: int
    multiplier: int
    shift: int
    least: int


@dataclass(frozen=True)
class Add:
    """inputs, output: zero, multiplier and shift."""

    size: int
    inputs: tuple[tuple[int, int, int], tuple[int, int, int]]
    output: tuple[int, int]
    left_shift: int
    bounds: Bounds


@dataclass(frozen=True)
class Kernel:
    """A call of CMSIS-NN.

    name: the C function's, without prefix. what: its parameters. constants: its arguments between inputs and
    output. Conv2D: weights, OHWI or HWO, biases, multipliers, shifts. Dense: weights [outputs, size], biases,
    multipliers, shifts, sums of weights; one multiplier and shift for all outputs, or one for each.
    """

    name: str
    what: Conv2D | Dense | Pool | Softmax | Add
    constants: tuple[Ints, ...] = ()


@dataclass(frozen=True)
class Replaced:
    """module: with calls of the kernels. left: quantized operators that stay with TVM, with reasons."""

    module: Any
    kernels: tuple[Kernel, ...]
    left: tuple[str, ...]


@dataclass(frozen=True)
class _Quantized:
    """An operator on floats between dequantize and quantize.

    call: the operator. bias: what is added to its result; None without. shape, scale: of its int8 output.
    bounds: of the output's elements, and its zero.
    """

    call: Any
    bias: Any
    shape: tuple[int, ...]
    scale: float
    bounds: Bounds


class _UnmappedError(Exception):
    """The operator can't be CMSIS-NN's; the text is the reason."""


def replaced(module: Any) -> Replaced:  # noqa: ANN401 - TVM has no types
    """The module with calls of kernels for all quantized operators that CMSIS-NN computes as TFLite does."""
    package = tvm_package()
    kernels: list[Kernel] = []
    left: list[str] = []
    functions = {}
    for var, function in module.functions.items():
        functions[var] = function
        if is_relax(function):
            finder = _Finder(function, kernels, left)
            blocks = [
                type(block)([finder.replaced(binding) for binding in block.bindings])
                for block in function.body.blocks
            ]
            body = package.relax.SeqExpr(blocks, function.body.body)
            returned = getattr(function, "ret_ty", None) or function.ret_struct_info
            made = package.relax.Function(function.params, body, returned, function.is_pure, function.attrs)
            functions[var] = made
    called = package.IRModule(functions, attrs=module.attrs)
    return Replaced(package.relax.transform.DeadCodeElimination()(called), tuple(kernels), tuple(left))


class _Finder:
    """Replaces bindings of one Relax function."""

    def __init__(self, function: Any, kernels: list[Kernel], left: list[str]) -> None:  # noqa: ANN401
        bindings = [binding for block in function.body.blocks for binding in block.bindings]
        self._values = {binding.var: binding.value for binding in bindings}
        self._users: dict[Any, list[str]] = {}
        for binding in bindings:
            for variable in _variables(binding.value):
                self._users.setdefault(variable, []).append(_op(binding.value))
        self._kernels = kernels
        self._left = left
        # Keyed by the operator that makes an integer result: a clip may narrow its bounds.
        self._bounded: dict[str, Callable[..., tuple[Kernel, list[Any]] | None]] = {
            "relax.quantize": self._quantize,
            "relax.nn.max_pool2d": self._maximum,
            "relax.astype": self._mean,
        }

    def replaced(self, binding: Any) -> Any:  # noqa: ANN401
        """The binding, or one of a kernel's call to the same variable."""
        name = _op(binding.value)
        step = self._clip if name == "relax.clip" else self._bounded.get(name)
        try:
            mapped = step(binding.var) if step else None
        except _UnmappedError as error:
            self._left.append(str(error))
            return binding
        if mapped is None:
            return binding
        relax = tvm_package().relax
        kernel, inputs = mapped
        self._kernels.append(kernel)
        constants = [relax.const(array) for array in kernel.constants]
        shape = getattr(binding.var, "ty", None) or binding.var.struct_info
        call = relax.call_dps_packed(kernel.name, relax.Tuple([*inputs, *constants]), shape)
        return relax.VarBinding(binding.var, relax.BlockBuilder().normalize(call))

    def _call(self, value: Any, *names: str) -> Any | None:  # noqa: ANN401
        """The call that has this value as its result, if it is of these operators; None for another value."""
        call = self._values.get(value, value)
        return call if _op(call).removeprefix("relax.") in names else None

    def _named(self, kind: str) -> str:
        return f"cmsis_nn_{kind}_{len(self._kernels)}"

    def _clip(self, var: Any) -> tuple[Kernel, list[Any]] | None:  # noqa: ANN401
        """Bounds of an integer result, by an activation: they are the kernel's."""
        call = self._values[var]
        below = call.args[0]
        bounds = tuple(round(_number(bound)) for bound in call.args[1:])
        if tensor_type(var)[0] != "int8" or len(self._users.get(below, [])) != 1:
            return None
        step = self._bounded.get(_op(self._values.get(below)))
        return step(below, bounds) if step else None

    def _bounded_later(self, var: Any, bounds: tuple[int, ...]) -> bool:  # noqa: ANN401
        """True if only a clip takes the value, which then is the kernel's result."""
        return not bounds and self._users.get(var) == ["relax.clip"]

    def _quantize(self, var: Any, bounds: tuple[int, ...] = ()) -> tuple[Kernel, list[Any]] | None:  # noqa: ANN401
        call = self._values[var]
        if self._bounded_later(var, bounds):
            return None
        floats, scale, zero = self._quantization(call, "output")
        low, high = bounds or _INT8
        while (activation := self._call(floats, "nn.relu", "clip")) is not None:
            limits = [_number(limit) for limit in activation.args[1:]] or [0.0, np.inf]
            low = max(low, zero + _rounded(limits[0] / scale))
            high = high if limits[1] == np.inf else min(high, zero + _rounded(limits[1] / scale))
            floats = activation.args[0]
        limited = Bounds(zero, low, high)
        inner = self._call(floats, "add", "nn.conv2d", "matmul", "nn.softmax")
        if inner is None:
            return None
        if tensor_type(var)[0] != "int8":
            raise _UnmappedError(f"{_short(inner)}: its output is {tensor_type(var)[0]}")
        shape = tensor_type(var)[1]
        bias = None
        if _op(inner) == "relax.add":
            sides = [self._call(side, "nn.conv2d", "matmul") for side in inner.args]
            if any(side is not None for side in sides):
                bias = inner.args[0] if sides[0] is None else inner.args[1]
                inner = sides[1] if sides[0] is None else sides[0]
        build = {
            "relax.nn.softmax": self._softmax,
            "relax.add": self._add,
            "relax.nn.conv2d": self._conv2d,
            "relax.matmul": self._dense,
        }[_op(inner)]
        return build(_Quantized(inner, bias, shape, scale, limited))

    def _quantization(self, call: Any, which: str) -> tuple[Any, float, int]:  # noqa: ANN401
        """Data, scale and zero of a quantize or dequantize of a whole tensor. Raises _UnmappedError."""
        data, *parts = call.args
        scale, zero = map(constant_array, parts)
        if scale is None or zero is None:
            raise _UnmappedError(f"an operator's {which} has a quantization that is not constant")
        if scale.size != 1 or zero.size != 1:
            raise _UnmappedError(f"an operator's {which} is quantized by channel")
        return data, float(np.float32(scale.item())), int(zero.item())

    def _activation(self, value: Any, of: Any) -> tuple[Any, float, int]:  # noqa: ANN401
        """The int8 tensor whose floats the operator `of` takes, its scale and zero. Raises _UnmappedError."""
        call = self._call(value, "dequantize")
        if call is None:
            raise _UnmappedError(f"{_short(of)}: an input is not quantized")
        if tensor_type(call.args[0])[0] != "int8":
            raise _UnmappedError(f"{_short(of)}: an input is {tensor_type(call.args[0])[0]}")
        return self._quantization(call, "input")

    def _weights(self, value: Any, of: Any) -> tuple[Ints, npt.NDArray[Any]]:  # noqa: ANN401
        """The integers of a constant, and the scale of each, as the operator `of` takes them."""
        call = self._call(value, "dequantize", "reshape", "permute_dims")
        if call is None:
            raise _UnmappedError(f"{_short(of)}: its weights or biases are not quantized constants")
        if _op(call) == "relax.dequantize":
            array, scale, zero = (self._constant(argument) for argument in call.args)
            if array is None or scale is None or zero is None or np.any(zero):
                raise _UnmappedError(f"{_short(of)}: its weights are not constant, or their zero is not 0")
            if scale.size > 1:
                extents = [1] * array.ndim
                extents[int(call.attrs.axis)] = -1
                scale = scale.reshape(extents)
            return array, np.broadcast_to(scale.astype(np.float64), array.shape)
        array, scales = self._weights(call.args[0], of)
        if _op(call) == "relax.reshape":
            shape = tensor_type(value)[1]
            return array.reshape(shape), scales.reshape(shape)
        return array.transpose(_axes(call)), scales.transpose(_axes(call))

    def _constant(self, value: Any) -> npt.NDArray[Any] | None:  # noqa: ANN401
        """The elements of a constant, also of one that is reshaped or transposed."""
        call = self._call(value, "reshape", "permute_dims")
        if call is None:
            return constant_array(value)
        array = self._constant(call.args[0])
        if array is None:
            return None
        if _op(call) == "relax.reshape":
            return array.reshape(tensor_type(value)[1])
        return array.transpose(_axes(call))

    def _requantized(
        self, layer: _Quantized, channels: npt.NDArray[Any], input_scale: float
    ) -> tuple[Ints, Ints, Ints]:
        """Biases, multipliers and shifts. channels: the weights' scales, [outputs, weights of an output]."""
        of = layer.call
        if not (channels == channels[:, :1]).all():
            raise _UnmappedError(f"{_short(of)}: an output's weights have several scales")
        products = input_scale * channels[:, 0]
        biases = np.zeros(len(products), np.int32)
        if layer.bias is not None:
            given, scales = self._weights(layer.bias, of)
            if given.dtype != np.int32 or given.size != len(products):
                raise _UnmappedError(f"{_short(of)}: its biases are not one int32 for each output")
            if not np.allclose(scales.ravel(), products, rtol=_SCALE_TOLERANCE, atol=0.0):
                raise _UnmappedError(f"{_short(of)}: its biases have another scale than its products")
            biases = given.reshape(-1)
        pairs = [fixed_point(product / layer.scale) for product in products.tolist()]
        multipliers, shifts = (np.array(column, np.int32) for column in zip(*pairs, strict=True))
        return biases, multipliers, shifts

    def _conv2d(self, layer: _Quantized) -> tuple[Kernel, list[Any]]:
        call, attributes = layer.call, layer.call.attrs
        layout = str(attributes.data_layout)
        if layout != "NHWC" or str(attributes.out_layout) not in ("NHWC", ""):
            raise _UnmappedError(f"conv2d: its layout is {layout}, CMSIS-NN's is NHWC")
        x, input_scale, input_zero = self._activation(call.args[0], call)
        weights, scales = self._weights(call.args[1], call)
        kernel_layout, groups = str(attributes.kernel_layout), int(attributes.groups)
        if sorted(kernel_layout) != sorted("HWIO") or weights.dtype != np.int8:
            raise _UnmappedError(f"conv2d: its weights are {weights.dtype}, {kernel_layout}")
        input_shape = tensor_type(x)[1]
        order = [kernel_layout.index(letter) for letter in "OHWI"]
        weights, scales = weights.transpose(order), scales.transpose(order)
        if groups not in (1, input_shape[3]) or weights.shape[3] * groups != input_shape[3]:
            raise _UnmappedError(f"conv2d: it has {groups} groups of channels")
        outputs, height, width = weights.shape[:3]
        requantized = self._requantized(layer, scales.reshape(outputs, -1), input_scale)
        depth = outputs // groups if groups > 1 else 0
        if depth:
            weights = weights[..., 0].transpose(1, 2, 0)
        what = Conv2D(
            input_shape,
            (height, width),
            layer.shape,
            _pair(attributes.strides),
            _pair(attributes.padding),
            _pair(attributes.dilation),
            input_zero,
            layer.bounds,
            depth,
        )
        kind = "depthwise_conv2d" if depth else "conv2d"
        return Kernel(self._named(kind), what, (np.ascontiguousarray(weights), *requantized)), [x]

    def _dense(self, layer: _Quantized) -> tuple[Kernel, list[Any]]:
        call = layer.call
        x, input_scale, input_zero = self._activation(call.args[0], call)
        weights, scales = self._weights(call.args[1], call)
        if weights.dtype != np.int8 or weights.ndim != 2:
            raise _UnmappedError(f"matmul: its weights are {weights.dtype}{list(weights.shape)}")
        weights, scales = np.ascontiguousarray(weights.T), scales.T
        outputs, size = weights.shape
        biases, multipliers, shifts = self._requantized(layer, scales, input_scale)
        per_channel = not (scales == scales[0, 0]).all()
        if not per_channel:
            multipliers, shifts = multipliers[:1], shifts[:1]
        sums = (biases - input_zero * weights.sum(axis=1, dtype=np.int64)).astype(np.int32)
        what = Dense(prod(layer.shape[:-1]), size, outputs, input_zero, layer.bounds, per_channel)
        return Kernel(self._named("dense"), what, (weights, biases, multipliers, shifts, sums)), [x]

    def _softmax(self, layer: _Quantized) -> tuple[Kernel, list[Any]]:
        call, shape = layer.call, layer.shape
        x, input_scale, _ = self._activation(call.args[0], call)
        if int(call.attrs.axis) not in (-1, len(shape) - 1):
            raise _UnmappedError("softmax: its axis is not the last")
        if layer.scale != 1 / 256 or layer.bounds != Bounds(-128):
            raise _UnmappedError("softmax: its output's scale is not 1/256, or its zero not -128")
        multiplier, shift = fixed_point(min(input_scale * (1 << (31 - _SOFTMAX_BITS)), (1 << 31) - 1.0))
        if shift < 0:
            raise _UnmappedError("softmax: its input's scale is too small")
        radius = ((1 << _SOFTMAX_BITS) - 1) * (1 << (31 - _SOFTMAX_BITS)) / (1 << shift)
        what = Softmax(prod(shape[:-1]), shape[-1], multiplier, shift, -floor(radius))
        return Kernel(self._named("softmax"), what), [x]

    def _add(self, layer: _Quantized) -> tuple[Kernel, list[Any]] | None:
        call = layer.call
        if any(self._call(side, "dequantize") is None for side in call.args):
            return None
        given = [self._activation(side, call) for side in call.args]
        if any(tensor_type(data)[1] != layer.shape for data, _, _ in given):
            raise _UnmappedError("add: its inputs have other shapes than its output")
        twice = 2 * max(item for _, item, _ in given)
        ratio = twice / ((1 << _ADD_SHIFT) * layer.scale)
        if ratio >= 1:
            raise _UnmappedError("add: its output's scale is too small")
        first, second = ((zero, *fixed_point(item / twice)) for _, item, zero in given)
        what = Add(prod(layer.shape), (first, second), fixed_point(ratio), _ADD_SHIFT, layer.bounds)
        return Kernel(self._named("add"), what), [data for data, _, _ in given]

    def _maximum(self, var: Any, bounds: tuple[int, ...] = ()) -> tuple[Kernel, list[Any]] | None:  # noqa: ANN401
        call = self._values[var]
        if tensor_type(var)[0] != "int8" or self._bounded_later(var, bounds):
            return None
        return self._pool(call, call.args[0], False, tensor_type(var)[1], bounds)

    def _mean(self, var: Any, bounds: tuple[int, ...] = ()) -> tuple[Kernel, list[Any]] | None:  # noqa: ANN401
        """An average of integers, rounded as `tflite_converter` writes it."""
        rounded = self._call(self._values[var].args[0], "where")
        if tensor_type(var)[0] != "int8" or rounded is None or self._bounded_later(var, bounds):
            return None
        above, up, down = (
            self._call(argument, name)
            for argument, name in zip(rounded.args, ("greater", "floor", "ceil"), strict=True)
        )
        more = None if up is None else self._call(up.args[0], "add")
        less = None if down is None else self._call(down.args[0], "subtract")
        if above is None or more is None or less is None:
            return None
        pooled = [part.args[0] for part in (above, more, less)]
        added = [constant_array(part.args[1]) for part in (above, more, less)]
        pool = self._call(pooled[0], "nn.avg_pool2d")
        floats = None if pool is None else self._call(pool.args[0], "astype")
        if not all(item.same_as(pooled[0]) for item in pooled) or added != [0.0, 0.5, 0.5]:
            return None
        if pool is None or floats is None:
            return None
        if tensor_type(floats.args[0])[0] != "int8" or pool.attrs.count_include_pad:
            raise _UnmappedError("avg_pool2d: its input is not int8, or its padding counts")
        return self._pool(pool, floats.args[0], True, tensor_type(var)[1], bounds)

    def _pool(
        self,
        call: Any,  # noqa: ANN401
        x: Any,  # noqa: ANN401
        mean: bool,
        shape: tuple[int, ...],
        bounds: tuple[int, ...],
    ) -> tuple[Kernel, list[Any]]:
        attributes = call.attrs
        if str(attributes.layout) != "NHWC" or _pair(attributes.dilation) != (1, 1) or attributes.ceil_mode:
            raise _UnmappedError(f"{_short(call)}: its layout is not NHWC, or it is dilated or rounded up")
        if shape[0] != 1:
            raise _UnmappedError(f"{_short(call)}: its batch is not 1")
        low, high = bounds or _INT8
        window, stride, padding = map(_pair, (attributes.pool_size, attributes.strides, attributes.padding))
        what = Pool(mean, tensor_type(x)[1], window, shape, stride, padding, Bounds(0, low, high))
        return Kernel(self._named("avg_pool2d" if mean else "max_pool2d"), what), [x]


def fixed_point(factor: float) -> tuple[int, int]:
    """A positive factor as a multiplier of 31 bits and a power of two: multiplier * 2^(shift - 31)."""
    fraction, shift = frexp(factor)
    multiplier = _rounded(fraction * (1 << 31))
    if multiplier == 1 << 31:
        multiplier, shift = multiplier // 2, shift + 1
    return (0, 0) if shift < -31 else (multiplier, shift)


def _rounded(value: float) -> int:
    """Rounds to the nearest integer, and half away from 0."""
    return floor(value + 0.5) if value >= 0 else -floor(0.5 - value)


def _number(argument: Any) -> float:  # noqa: ANN401
    """A constant argument of an operator, such as a bound of a clip."""
    value = argument.value
    return float(getattr(value, "value", value))  # Up to TVM 0.25 a PrimValue holds the constant.


def _op(value: Any) -> str:  # noqa: ANN401
    return str(getattr(getattr(value, "op", None), "name", ""))


def _short(call: Any) -> str:  # noqa: ANN401
    """The operator's name without prefixes."""
    return _op(call).rpartition(".")[2]


def _variables(value: Any) -> Iterator[Any]:  # noqa: ANN401
    """The arguments of a call, or the elements of a tuple."""
    for argument in list(getattr(value, "args", None) or getattr(value, "fields", None) or []):
        if type(argument).__name__ in ("Var", "DataflowVar"):
            yield argument


def _axes(call: Any) -> list[int] | None:  # noqa: ANN401
    """The axes of a permutation; None reverses all."""
    axes = call.attrs.axes
    return None if axes is None else [int(axis) for axis in axes]


def _pair(extents: Any) -> tuple[int, int]:  # noqa: ANN401
    """Height and width; of a padding its top and its left."""
    first, second = list(extents)[:2]
    return int(first), int(second)
