# SPDX-License-Identifier: Apache-2.0
"""Files of trained networks, read by TVM's own importers into Relax modules with their weights bound."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from minrpc.errors import ConfigurationError
from minrpc.tvm import relax as importer


def read_model(path: Path) -> Any:  # noqa: ANN401 - TVM has no types
    """The Relax module of a file. Raises ConfigurationError for what can't be read."""
    return _READERS.get(path.suffix, _unknown)(path)


def _onnx(path: Path) -> Any:  # noqa: ANN401
    importer.tvm()
    try:
        import onnx
    except ImportError as error:
        raise ConfigurationError(
            f"{path.name}: onnx can't be imported", next_step="pip install onnx"
        ) from error
    from tvm.relax.frontend.onnx import from_onnx

    if not path.is_file():
        raise ConfigurationError(f"there is no file {path}", next_step="correct the path")
    try:
        loaded = onnx.load(str(path))
    except Exception as error:  # onnx lets protobuf's own errors through, of which there is no list
        raise ConfigurationError(f"{path.name} is no ONNX model: {error}") from error
    return from_onnx(loaded, keep_params_in_input=False)


def _unknown(path: Path) -> Any:  # noqa: ANN401
    raise ConfigurationError(
        f"{path.name}: models of this kind can't be read", next_step=f"give {', '.join(_READERS)}"
    )


_READERS: Final[dict[str, Callable[[Path], Any]]] = {".onnx": _onnx}
