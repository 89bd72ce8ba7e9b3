# SPDX-License-Identifier: Apache-2.0
"""LiteRT on this machine: its reference kernels compute an unchanged TFLite file, as a second witness."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy.typing as npt
from minrpc.errors import ConfigurationError


def outputs_of(path: Path, inputs: Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
    """LiteRT's outputs, by its reference kernels, which round as kernels for microcontrollers do.

    Raises ConfigurationError if LiteRT is not installed.
    """
    try:
        runtime = import_module("ai_edge_litert.interpreter")
    except ImportError as error:
        raise ConfigurationError(
            f"{path.name}: LiteRT, with which CMSIS-NN's results are compared, can't be imported: {error}",
            next_step="pip install 'minrpc-harness[litert]'",
        ) from error
    reference = runtime.OpResolverType.BUILTIN_REF
    interpreter = runtime.Interpreter(model_path=str(path), experimental_op_resolver_type=reference)
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
