# SPDX-License-Identifier: Apache-2.0
"""Files of trained networks, read by TVM's own importers into Relax modules with their weights bound."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy.typing as npt
from minrpc.errors import ConfigurationError, HarnessError
from minrpc.tvm import tvm_package

from minrpc_models import relax as importer
from minrpc_models.c_names import field_names
from minrpc_models.errors import ModelError

if TYPE_CHECKING:
    from minrpc_models.formats.onnx_files import Shapes

_TFLITE_WAY: Final = "convert with full integer quantization, or without any: TVM's importer has both"

_CAN_NOT_READ: Final = "TVM's importer can't read {}"


Constants = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Imported:
    """module: Relax, with the model's weights bound. onnx: the source ONNX model, else None.
    way_round: advice if TVM can't lower it, "" without advice. states: tensors that the file keeps between
    runs: the number of the input, the number of the output that the input takes in the next run, and the
    first value. names: the file's names of the inputs, if the module's names differ.
    """

    module: Any
    onnx: Any = None
    way_round: str = ""
    states: tuple[tuple[int, int, float], ...] = ()
    names: Sequence[str] = ()


def read_model(path: Path, shapes: Shapes | None = None, constants: Constants | None = None) -> Imported:
    """The Relax module of a file.

    shapes, constants: of an ONNX file's inputs, as `onnx_files.fixed` takes them.

    Raises ConfigurationError; ModelError if TVM can't import the file.
    """
    read = READERS.get(path.suffix)
    if read is None:
        raise ConfigurationError(
            f"{path.name}: models of this kind can't be read", next_step=f"give {', '.join(READERS)} or .tar"
        )
    existing(path)
    tvm_package()
    if read is _onnx:
        return _onnx(path, shapes or {}, constants or {})
    if shapes or constants:
        raise ConfigurationError(
            f"{path.name}: --shape and --constant are for ONNX files",
            next_step="fix shapes and constants where the file is written",
        )
    with importer.told_by_tvm(_CAN_NOT_READ.format(path.name)):
        imported: Imported = read(path)
        return imported


def existing(path: Path) -> Path:
    """`path`. Raises ConfigurationError if there is no file."""
    if not path.is_file():
        raise ConfigurationError(f"there is no file {path}", next_step="correct the path")
    return path


def _onnx(path: Path, shapes: Shapes, constants: Constants) -> Imported:
    onnx = _package("onnx", path)
    from tvm.relax.frontend.onnx import from_onnx

    from minrpc_models.formats import onnx_files

    given = onnx_files.fixed(_loaded(path, "ONNX", onnx.load), shapes, constants)
    model, why = onnx_files.prepared(given)
    way_round = onnx_files.way_round(model, why)
    try:
        with warnings.catch_warnings(
            action="ignore"
        ):  # ONNX's checker raises this error for faults that onnxruntime accepts.
            module = from_onnx(model, keep_params_in_input=False)
    except Exception as error:  # TVM's importer raises any class.
        raise ModelError(
            f"{_CAN_NOT_READ.format(path.name)}: {importer.first_line(error)}",
            details=[why] if why else [],
            next_step=way_round,
        ) from error
    return Imported(module, given, way_round)


def _tflite(path: Path) -> Imported:
    _package("tflite", path)
    from tvm.relax.frontend.tflite import from_tflite

    from minrpc_models.formats.tflite_converter import converter
    from minrpc_models.formats.tflite_files import Stateless

    def load(name: str) -> Any:  # noqa: ANN401
        data = Path(name).read_bytes()
        if data[4:8] != b"TFL3":
            raise ValueError("it does not begin as a TFLite file")
        return Stateless(data, field_names)

    model = _loaded(path, "TFLite", load)
    module = from_tflite(model, op_converter=converter())
    return Imported(module, states=tuple(model.states), way_round=_TFLITE_WAY, names=model.names)


def _torch(path: Path) -> Imported:
    torch = _package("torch", path)
    from tvm.relax.frontend.torch import from_exported_program

    program = _loaded(path, "PyTorch", torch.export.load)
    return Imported(from_exported_program(program, unwrap_unit_return_tuple=True))


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
    except HarnessError:
        raise
    except Exception as error:  # each reader passes on its library's errors, which have no common class
        text = importer.first_line(error)
        raise ConfigurationError(
            f"{path.name} is no {kind} model: {text}", next_step="give another file"
        ) from error


READERS: Final[dict[str, Callable[..., Any]]] = {".onnx": _onnx, ".tflite": _tflite, ".pt2": _torch}
"""Readers of model files, by suffix."""
