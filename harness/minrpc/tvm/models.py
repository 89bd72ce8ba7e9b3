# SPDX-License-Identifier: Apache-2.0
"""A model on a device: compiled, loaded, run, checked against TVM on the host, timed operator by operator.

What runs is what `minrpc.tvm.export` writes: the numbers shown are those of the code that a user takes along.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from minrpc.client import Device
from minrpc.errors import ConfigurationError
from minrpc.firmware import Firmware
from minrpc.library import LoadedLibrary, Sources, compile_sources
from minrpc.library.loading import firmware_of, load_compiled
from minrpc.library.toolset import toolset_of
from minrpc.timing import Measurement
from minrpc.tvm import export
from minrpc.tvm import relax as importer
from minrpc.tvm.plan import Plan
from minrpc.wire.dtypes import to_numpy

FLAGS: Final = ("-O2",)
"""How a model is compiled for a device where its user says nothing."""

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class OperatorTime:
    """One operator of a run. function: as TVM named what it fused. measurement: of it alone."""

    function: str
    measurement: Measurement

    @property
    def cycles(self) -> float:
        """A call's, the median of its repeats."""
        return float(np.median(self.measurement.cycles_per_call))


@dataclass(frozen=True)
class ModelRun:
    """What came of a model on a device.

    outputs: by name. whole: the time of a run. operators: of each, in their order. What measuring costs is
        subtracted from all: it would count once for each operator.
    code_bytes, weight_bytes: of the loaded image without and of the weights; workspace_bytes: storages and
        workspaces; io_bytes: inputs and outputs.
    """

    name: str
    outputs: Arrays
    whole: Measurement
    operators: tuple[OperatorTime, ...]
    code_bytes: int
    weight_bytes: int
    workspace_bytes: int
    io_bytes: int

    @property
    def cycles(self) -> float:
        """A run's, the median of its repeats."""
        return float(np.median(self.whole.cycles_per_call))

    def share(self, operator: OperatorTime) -> float:
        """Of the run, 0 to 1."""
        return operator.cycles / self.cycles if self.cycles else 0.0


class LoadedModel:
    """A model in a running device. `run` gives its outputs; `with` unloads it at the end."""

    def __init__(self, device: Device, plan: Plan, library: LoadedLibrary) -> None:
        self.device = device
        self.plan = plan
        self.library = library
        self._workspace = device.empty((max(plan.workspace_bytes, 1),), np.uint8)

    def __enter__(self) -> LoadedModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.library.unload()
        self._workspace.free()

    def run(self, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
        """One inference. inputs: by name; dtypes and shapes must be the model's.

        Raises ConfigurationError for inputs that do not fit, RemoteError when an operator fails.
        """
        return self._run(*self._placed(inputs))

    def _run(self, given: Any, taken: Any, outputs: dict[str, Any]) -> dict[str, npt.NDArray[Any]]:  # noqa: ANN401
        status = self.library[f"tvmgen_{self.plan.name}_run_in"](given, taken, self._workspace)
        if status != 0:
            raise ConfigurationError(f"{self.plan.name}: an operator failed with {status}")
        return {name: array.numpy() for name, array in outputs.items()}

    def measure(self, inputs: Arrays, *, number: int = 1, repeat: int = 3) -> ModelRun:
        """Run, then time the whole and each operator, on the device. Raises as `run` does."""
        given, taken, there = self._placed(inputs)
        outputs = self._run(given, taken, there)
        name = self.plan.name
        options = {"number": number, "repeat": repeat}
        whole = self.library.measure(f"tvmgen_{name}_run_in", **options)(given, taken, self._workspace)
        operators = []
        for index, operator in enumerate(self.plan.operators):
            timed = self.library.measure(f"tvmgen_{name}_operator", **options)
            measurement = timed(given, taken, self._workspace, index)
            operators.append(OperatorTime(operator.function, measurement.net()))
        io = [tensor.nbytes for _, tensor in (*self.plan.inputs, *self.plan.outputs)]
        return ModelRun(
            name,
            outputs,
            whole.net(),
            tuple(operators),
            self.library.device_bytes - self.plan.constant_bytes,
            self.plan.constant_bytes,
            self.plan.workspace_bytes,
            sum(io),
        )

    def _placed(self, inputs: Arrays) -> tuple[Any, Any, dict[str, Any]]:
        """The two structs of a run, and the arrays behind the second."""
        _check(self.plan, inputs)
        types = self.library.types
        outputs = {name: self.device.empty(tensor.shape, tensor.dtype) for name, tensor in self.plan.outputs}
        arrays = {name: self.device.array(inputs[name], tensor.dtype) for name, tensor in self.plan.inputs}
        prefix = f"tvmgen_{self.plan.name}"
        return types[f"{prefix}_inputs"](**arrays), types[f"{prefix}_outputs"](**outputs), outputs


def _check(plan: Plan, inputs: Arrays) -> None:
    names = [name for name, _ in plan.inputs]
    if sorted(inputs) != sorted(names):
        raise ConfigurationError(
            f"{plan.name} takes {', '.join(names) or 'no input'}, not {', '.join(inputs) or 'nothing'}"
        )
    for name, tensor in plan.inputs:
        host, lanes = to_numpy(tensor.dtype)
        array = np.asarray(inputs[name])
        if array.dtype != host or array.shape != tensor.shape + lanes:
            due, given = f"{tensor.dtype}{list(tensor.shape)}", f"{array.dtype}{list(array.shape)}"
            raise ConfigurationError(f"{plan.name}: {name} is {due}, not {given}")


def load_model(
    device: Device, plan: Plan, *, flags: Sequence[str] = FLAGS, firmware: Firmware | None = None
) -> LoadedModel:
    """Compile a plan for the device and load it.

    flags: of the compiler. firmware: what runs on the device; left out it is what was started from here.

    Raises as `device.load` does.
    """
    toolset = toolset_of(firmware or firmware_of(device))
    with TemporaryDirectory(prefix="minrpc-model-") as directory:
        files = [str(path) for path in export.write(plan, Path(directory)) if path.suffix == ".c"]
        sources = Sources.of(
            files,
            include=[Path(directory) / "include"],
            flags=list(flags),
            defines=[f"TVMGEN_{plan.name.upper()}_NO_STATIC_WORKSPACE"],
        )
        compiled = compile_sources(sources, toolset)
    return LoadedModel(device, plan, load_compiled(device, compiled, toolset))


@dataclass(frozen=True)
class Model:
    """A model as TVM has it. module: Relax. plan: of the lowered module."""

    module: Any
    plan: Plan

    @property
    def name(self) -> str:
        """A C identifier."""
        return self.plan.name

    def random_inputs(self, seed: int = 0) -> dict[str, npt.NDArray[Any]]:
        """Inputs of the model's shapes and types: floats in [-1, 1), all other numbers their type's own."""
        rng = np.random.default_rng(seed)
        return {
            name: _random(rng, tensor.shape, to_numpy(tensor.dtype)[0]) for name, tensor in self.plan.inputs
        }

    def on_host(self, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
        """What TVM computes for them on this machine."""
        package = importer.tvm()
        machine = package.relax.VirtualMachine(package.compile(self.module, "llvm"), package.cpu())
        arguments = [package.runtime.tensor(inputs[name]) for name, _ in self.plan.inputs]
        result = machine[importer.entry_of(self.module)](*arguments)
        results = [result] if hasattr(result, "numpy") else list(result)
        return {name: one.numpy() for (name, _), one in zip(self.plan.outputs, results, strict=True)}


def _random(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    if dtype.kind == "f":
        return (2 * rng.random(shape) - 1).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(max(info.min, -128), min(info.max, 127), shape, endpoint=True).astype(dtype)


def model_of(what: Any, name: str | None = None) -> Model:  # noqa: ANN401
    """A model from a file (.onnx) or a Relax module with its weights bound.

    Raises ModelError, and ConfigurationError for files that can't be read.
    """
    if isinstance(what, str | Path):
        path = Path(what)
        return _model(_READERS.get(path.suffix, _unknown)(path), importer.identifier(name or path.stem))
    return _model(what, importer.identifier(name or "model"))


def _model(module: Any, name: str) -> Model:  # noqa: ANN401
    return Model(module, importer.plan(importer.lower(module), name))


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
