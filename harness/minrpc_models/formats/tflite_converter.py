# SPDX-License-Identifier: Apache-2.0
"""TVM's converter of TFLite's operators, extended for quantized tensors."""

from __future__ import annotations

from typing import Any, Final

import tflite

from minrpc_models.errors import ModelError

# Operators that change no quantization. TVM's converter has them, and refuses them for quantized tensors: the
# pools up to TVM 0.26, the others still.
_SAME_QUANTIZATION: Final = (
    "AVERAGE_POOL_2D",
    "MAX_POOL_2D",
    "GATHER",
    "REVERSE_V2",
    "SPLIT",
    "SPLIT_V",
    "STRIDED_SLICE",
    "TILE",
    "UNPACK",
)


def converter() -> Any:  # noqa: ANN401 - TVM has no types
    """A subclass of TVM's OperatorConverter, for its from_tflite."""
    from tvm import relax
    from tvm.relax.frontend.tflite.tflite_frontend import OperatorConverter

    class Converter(OperatorConverter):  # type: ignore[misc]
        _SUPPORTED_QUANTIZED_OPS = getattr(OperatorConverter, "_SUPPORTED_QUANTIZED_OPS", frozenset()).union(
            _SAME_QUANTIZATION
        )

        def convert_softmax(self, op: Any) -> Any:  # noqa: ANN401
            """A factor of the exponents, which TVM's converter passes over, is refused."""
            options, given = tflite.SoftmaxOptions(), op.BuiltinOptions()
            if given is not None:
                options.Init(given.Bytes, given.Pos)
                if options.Beta() != 1.0:
                    raise ModelError(
                        f"a softmax has beta {options.Beta():g}, and TVM's importer computes it with 1",
                        next_step="multiply its input by beta where the model is made",
                    )
            return super().convert_softmax(op)

        def convert_pool2d(self, op: Any, pool_type: str) -> Any:  # noqa: ANN401
            """Averages of integers are rounded, as TFLite does; TVM's converter cuts their fractions off."""
            (tensor,) = self.get_input_tensors(op)
            if pool_type != "average" or tensor.qnn_params is None:
                return super().convert_pool2d(op, pool_type)
            dtype = self.get_tensor_type_str(tensor.tensor.Type())
            own, quantized = super().get_expr, tensor.qnn_params
            tensor.qnn_params = None  # TVM's converter now takes it for a tensor of floats.
            self.__dict__.update(
                get_expr=lambda number: relax.op.astype(own(number), "float32"),
                get_input_tensors=lambda _: [tensor],
            )
            try:
                mean = super().convert_pool2d(op, pool_type)
            finally:
                del self.__dict__["get_expr"], self.__dict__["get_input_tensors"]
                tensor.qnn_params = quantized
            return relax.op.astype(rounded(relax, mean), dtype)

    return Converter


def rounded(relax: Any, value: Any) -> Any:  # noqa: ANN401
    """Rounds to the nearest integer, and half away from 0."""
    half, zero = relax.const(0.5, "float32"), relax.const(0.0, "float32")
    up, down = relax.op.floor(relax.op.add(value, half)), relax.op.ceil(relax.op.subtract(value, half))
    return relax.op.where(relax.op.greater(value, zero), up, down)
