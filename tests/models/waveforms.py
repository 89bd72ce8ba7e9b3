# SPDX-License-Identifier: Apache-2.0
"""A network that is trained here and tells sines, squares, saws and noise apart: float, and int8 from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

SAMPLES, HIDDEN, CLASSES = 32, 24, 4

Floats = npt.NDArray[np.float32]


def waveforms(count: int, seed: int) -> tuple[Floats, npt.NDArray[np.int64]]:
    """`count` signals of one period each, and their kinds."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, CLASSES, count)
    phase = (np.arange(SAMPLES) / SAMPLES + rng.random((count, 1))) % 1.0
    noise = rng.uniform(-1, 1, (count, SAMPLES))
    shapes = np.stack([np.sin(2 * np.pi * phase), np.sign(phase - 0.5), 2 * phase - 1, noise])
    signals = shapes[kinds, np.arange(count)] + rng.normal(0, 0.05, (count, SAMPLES))
    return signals.clip(-1, 1).astype(np.float32), kinds


@dataclass(frozen=True)
class Network:
    """Two layers: relu(x w1 + b1) w2 + b2."""

    w1: Floats
    b1: Floats
    w2: Floats
    b2: Floats

    def scores(self, x: Floats) -> npt.NDArray[np.float64]:
        """The scores, in double precision."""
        w1, b1, w2, b2 = (item.astype(np.float64) for item in (self.w1, self.b1, self.w2, self.b2))
        return np.maximum(x.astype(np.float64) @ w1 + b1, 0) @ w2 + b2


def trained(steps: int = 400, seed: int = 1) -> Network:
    """A network, trained by gradient descent with momentum on the softmax of the scores."""
    rng = np.random.default_rng(seed)
    x, kinds = waveforms(2000, seed)
    w = [rng.normal(0, 0.2, (SAMPLES, HIDDEN)), np.zeros(HIDDEN), rng.normal(0, 0.2, (HIDDEN, CLASSES))]
    w.append(np.zeros(CLASSES))
    moments = [np.zeros_like(item) for item in w]
    for _ in range(steps):
        hidden = np.maximum(x @ w[0] + w[1], 0)
        scores = hidden @ w[2] + w[3]
        error = np.exp(scores - scores.max(1, keepdims=True))
        error /= error.sum(1, keepdims=True)
        error[np.arange(len(x)), kinds] -= 1
        error /= len(x)
        back = (error @ w[2].T) * (hidden > 0)
        slopes = [x.T @ back, back.sum(0), hidden.T @ error, error.sum(0)]
        for item, moment, slope in zip(w, moments, slopes, strict=True):
            moment *= 0.9
            moment -= 0.5 * slope
            item += moment
    return Network(*(item.astype(np.float32) for item in w))


@dataclass(frozen=True)
class Int8Network:
    """The network in integers: int8 weights, int32 sums, a shift to the right after the first layer."""

    w1: npt.NDArray[np.int8]
    b1: npt.NDArray[np.int32]
    w2: npt.NDArray[np.int8]
    b2: npt.NDArray[np.int32]
    shift: int

    def scores(self, x: npt.NDArray[np.int8]) -> npt.NDArray[np.int32]:
        """The network's output, exactly."""
        hidden = x.astype(np.int32) @ self.w1.astype(np.int32) + self.b1
        taken = np.clip(hidden >> self.shift, 0, 127).astype(np.int8)
        scores: npt.NDArray[np.int32] = taken.astype(np.int32) @ self.w2.astype(np.int32) + self.b2
        return scores


def quantized(network: Network) -> Int8Network:
    """Inputs are 127ths; each layer has a scale of its own; the shift applies to hidden values."""
    s1, s2 = (127 / np.abs(item).max() for item in (network.w1, network.w2))
    w1, b1 = np.round(network.w1 * s1).astype(np.int8), np.round(network.b1 * 127 * s1).astype(np.int32)
    largest = (as_int8(waveforms(1000, 3)[0]).astype(np.int32) @ w1.astype(np.int32) + b1).max()
    shift = int(np.ceil(np.log2(largest / 127)))
    w2 = np.round(network.w2 * s2).astype(np.int8)
    return Int8Network(
        w1, b1, w2, np.round(network.b2 * s2 * 127 * s1 / (1 << shift)).astype(np.int32), shift
    )


def as_int8(x: Floats) -> npt.NDArray[np.int8]:
    """Signals as inputs of the int8 network."""
    return np.round(x * 127).astype(np.int8)


def float_module(network: Network) -> Any:  # noqa: ANN401
    """A Relax module, written in Python."""
    from tvm import relax

    builder = relax.BlockBuilder()
    x = _input("x", "float32")
    with builder.function("main", [x]):
        hidden = builder.emit(relax.op.add(relax.op.matmul(x, _const(network.w1)), _const(network.b1)))
        scores = relax.op.matmul(builder.emit(relax.op.nn.relu(hidden)), _const(network.w2))
        builder.emit_func_output(builder.emit(relax.op.add(scores, _const(network.b2))))
    return builder.finalize()


def int8_module(network: Int8Network) -> Any:  # noqa: ANN401
    """A Relax module of the network in integers."""
    from tvm import relax

    builder = relax.BlockBuilder()
    x = _input("x", "int8")
    with builder.function("main", [x]):
        first = relax.op.matmul(x, _const(network.w1), out_dtype="int32")
        hidden = builder.emit(relax.op.add(first, _const(network.b1)))
        shifted = builder.emit(relax.op.right_shift(hidden, _const(np.array(network.shift, np.int32))))
        taken = builder.emit(relax.op.astype(relax.op.clip(shifted, 0, 127), "int8"))
        scores = builder.emit(relax.op.matmul(taken, _const(network.w2), out_dtype="int32"))
        builder.emit_func_output(builder.emit(relax.op.add(scores, _const(network.b2))))
    return builder.finalize()


def _input(name: str, dtype: str) -> Any:  # noqa: ANN401
    from tvm import relax

    made = getattr(relax, "TensorStructInfo", None) or relax.TensorType
    return relax.Var(name, made((1, SAMPLES), dtype))


def _const(array: npt.NDArray[Any]) -> Any:  # noqa: ANN401
    from tvm import relax

    return relax.const(array)
