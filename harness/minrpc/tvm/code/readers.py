# SPDX-License-Identifier: Apache-2.0
"""Files of trained networks, read by TVM's own importers into Relax modules with their weights bound."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from minrpc.errors import ConfigurationError
from minrpc.tvm.code import relax as importer


def read_model(path: Path) -> Any:  # noqa: ANN401 - TVM has no types
    """The Relax module of a file. Raises ConfigurationError; ModelError if TVM can't import it."""
    read = READERS.get(path.suffix)
    if read is None:
        raise ConfigurationError(
            f"{path.name}: models of this kind can't be read", next_step=f"give {', '.join(READERS)} or .tar"
        )
    existing(path)
    importer.tvm()
    with importer.told_by_tvm(f"TVM's importer can't read {path.name}"):
        return read(path)


def existing(path: Path) -> Path:
    """`path`. Raises ConfigurationError if there is no file."""
    if not path.is_file():
        raise ConfigurationError(f"there is no file {path}", next_step="correct the path")
    return path


def _onnx(path: Path) -> Any:  # noqa: ANN401
    onnx = _package("onnx", path)
    from tvm.relax.frontend.onnx import from_onnx

    return from_onnx(_loaded(path, "ONNX", onnx.load), keep_params_in_input=False)


def _tflite(path: Path) -> Any:  # noqa: ANN401
    tflite = _package("tflite", path)
    from tvm.relax.frontend.tflite import from_tflite

    def load(name: str) -> Any:  # noqa: ANN401
        data = Path(name).read_bytes()
        if data[4:8] != b"TFL3":
            raise ValueError("it does not begin as one")
        return tflite.Model.GetRootAsModel(data, 0)

    return from_tflite(_loaded(path, "TFLite", load))


def _torch(path: Path) -> Any:  # noqa: ANN401
    torch = _package("torch", path)
    from tvm.relax.frontend.torch import from_exported_program

    program = _loaded(path, "PyTorch", torch.export.load)
    return from_exported_program(program, unwrap_unit_return_tuple=True)


def _package(name: str, path: Path) -> Any:  # noqa: ANN401
    """The Python package `name`, which reads the file for TVM's importer."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigurationError(
            f"{path.name}: {name} can't be imported", next_step=f"pip install {name}"
        ) from error


def _loaded(path: Path, kind: str, load: Callable[[str], Any]) -> Any:  # noqa: ANN401
    try:
        return load(str(path))
    except Exception as error:  # each reader passes on its library's errors, which have no common class
        text = importer.first_line(error)
        raise ConfigurationError(
            f"{path.name} is no {kind} model: {text}", next_step="give another file"
        ) from error


READERS: Final[dict[str, Callable[[Path], Any]]] = {".onnx": _onnx, ".tflite": _tflite, ".pt2": _torch}
"""Readers of model files, by suffix."""
