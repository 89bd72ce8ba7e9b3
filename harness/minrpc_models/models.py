# SPDX-License-Identifier: Apache-2.0
"""A model on a device: compiled, loaded, run, checked against TVM on the host, timed operator by operator.

The code is from `minrpc_models.export`: the figures are for the library that a user exports.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from minrpc import Firmware, Measurement, RemoteArray, Session, Target
from minrpc.errors import ConfigurationError, DeviceMemoryError
from minrpc.extension import kept_file, scratch, to_numpy
from minrpc.library import (
    LoadedLibrary,
    Sources,
    compile_file,
    compile_sources,
    firmware_of,
    image_size,
    load_compiled,
    toolset_of,
)
from minrpc.tvm import float16_flags

from minrpc_models import export, relax as importer
from minrpc_models.c_names import identifier, renamed
from minrpc_models.cmsis_nn import replaced
from minrpc_models.cmsis_source import files as kernel_files, include_directory, source as kernel_source
from minrpc_models.errors import ModelError
from minrpc_models.indices import index_bounds
from minrpc_models.inputs import Arrays, check_inputs, random_inputs
from minrpc_models.mlf import read_mlf
from minrpc_models.model_sizes import LinkedSizes, linked_sizes
from minrpc_models.plan import ModelPlan, Tensor
from minrpc_models.readers import existing, read_model
from minrpc_models.reference import run_on_host
from minrpc_models.schedules import Schedules

FLAGS: Final = ("-O2",)
"""Default compiler flags of a model for a device."""

Weights = Literal["loaded", "image"]
"""Place of a model's constants: loaded with its code, or in the firmware's image, see `with_weights`."""


@dataclass(frozen=True)
class OperatorTime:
    """One operator of a run. function: TVM's name of the fused function. measurement: the time of this
    operator alone."""

    function: str
    measurement: Measurement

    @property
    def ticks(self) -> float:
        """Cycles of a call: the median of its repeats."""
        return float(np.median(self.measurement.ticks_per_call))


@dataclass(frozen=True)
class ModelRun:
    """Outputs, times and sizes of a model on a device.

    outputs: by name. whole: the time of a run. operators: the time of each, in order. The costs of measuring
        and of an empty call with the same arguments are subtracted: both would count once for each operator.
    code_bytes: size of the library's functions and their constants, without weight_bytes. static_bytes: size
        of its variables. Both as linked, see `linked_sizes`, without the code that calls the library.
    workspace_bytes: size of storages and workspaces. least_workspace_bytes: the most bytes of the workspace
        that are in use at once. io_bytes: size of inputs and outputs.
    """

    name: str
    outputs: Arrays
    whole: Measurement
    operators: tuple[OperatorTime, ...]
    code_bytes: int
    weight_bytes: int
    static_bytes: int
    workspace_bytes: int
    least_workspace_bytes: int
    io_bytes: int

    @property
    def ticks(self) -> float:
        """Cycles of a run: the median of its repeats."""
        return float(np.median(self.whole.ticks_per_call))

    @property
    def between_ticks(self) -> float:
        """Cycles of a run outside its operators, in the loop that calls them; noise can make it negative."""
        return self.ticks - sum(operator.ticks for operator in self.operators)

    def share(self, operator: OperatorTime) -> float:
        """The operator's share of the run's time, 0 to 1."""
        return operator.ticks / self.ticks if self.ticks else 0.0

    def by_function(self) -> dict[str, list[int]]:
        """The numbers of the operators that each function computes, in the order of the first call."""
        numbers: dict[str, list[int]] = {}
        for number, operator in enumerate(self.operators):
            numbers.setdefault(operator.function, []).append(number)
        return numbers


class _Placed(NamedTuple):
    """The arguments of a run on a device: two structs, and the arrays of the outputs by name."""

    inputs: Any
    outputs: Any
    arrays: Mapping[str, RemoteArray]

    def results(self) -> dict[str, npt.NDArray[Any]]:
        """The outputs, copied from the device."""
        return {name: array.numpy() for name, array in self.arrays.items()}


class LoadedModel:
    """A model in a running device. `run` gives its outputs; `with` unloads it at the end."""

    def __init__(self, session: Session, plan: ModelPlan, library: LoadedLibrary, sizes: LinkedSizes) -> None:
        self._session = session
        self.plan = plan
        self.library = library
        self.sizes = sizes
        self._workspace = session.empty((max(plan.workspace_bytes, 1),), np.uint8)

    def __enter__(self) -> LoadedModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.library.unload()
        self._workspace.free()

    def run(self, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
        """One inference. inputs: by name; dtypes and shapes must be the model's.

        Raises ConfigurationError for inputs that do not fit, RemoteError when an operator fails.
        """
        return self._run(self._placed(inputs))

    def step_by_step(self, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
        """One inference, with a call from the host for each operator. Raises as `run` does."""
        placed = self._placed(inputs)
        for _ in self._steps(placed):
            pass
        return placed.results()

    def operands(self, inputs: Arrays, numbers: Collection[int]) -> dict[int, list[npt.NDArray[Any]]]:
        """The tensors of operators after each has run, by the operators' numbers. Raises as `run` does."""
        placed = self._placed(inputs)
        return {
            number: [self._content(tensor, inputs, placed) for tensor in self.plan.operators[number].tensors]
            for number in self._steps(placed)
            if number in numbers
        }

    def _steps(self, placed: _Placed) -> Iterator[int]:
        """Runs the operators one by one, and yields the number of each after its call."""
        run = self.library[f"tvmgen_{self.plan.name}_operator"]
        for number, operator in enumerate(self.plan.operators):
            status = run(placed.inputs, placed.outputs, self._workspace, number)
            if status != 0:
                raise ConfigurationError(f"{self.plan.name}: {operator.function} failed with {status}")
            yield number

    def _content(self, tensor: Tensor, inputs: Arrays, placed: _Placed) -> npt.NDArray[Any]:
        """The elements of a tensor at this step of a run."""
        match tensor.place:
            case "input":
                return np.asarray(inputs[self.plan.inputs[tensor.index][0]])
            case "constant":
                return self.plan.constants[tensor.index]
            case "output":
                return placed.arrays[self.plan.outputs[tensor.index][0]].numpy()
        host, lanes = to_numpy(tensor.dtype)
        offset = self.plan.storage_offsets[tensor.index]
        held: npt.NDArray[Any] = self._workspace.numpy()[offset : offset + tensor.nbytes]
        return held.view(host).reshape(tensor.shape + lanes)

    def _run(self, placed: _Placed) -> dict[str, npt.NDArray[Any]]:
        run = self.library[f"tvmgen_{self.plan.name}_run_in"]
        status = run(placed.inputs, placed.outputs, self._workspace)
        if status != 0:
            raise ConfigurationError(f"{self.plan.name}: an operator failed with {status}")
        return placed.results()

    def measure(
        self,
        inputs: Arrays,
        *,
        number: int = 1,
        repeat: int = 3,
        counters: Sequence[str] | Literal["all"] = (),
    ) -> ModelRun:
        """Run, then time the whole and each operator, on the device.

        counters: as for `RemoteModule.measure`. Raises as `RemoteModule.measure` and `run` do.
        """
        placed = self._placed(inputs)
        outputs = self._run(placed)
        given, taken = placed.inputs, placed.outputs
        name = self.plan.name
        options: dict[str, Any] = {"number": number, "repeat": repeat, "counters": counters}
        no_run = self.library.measure(f"tvmgen_{name}_no_run", **options)(given, taken, self._workspace)
        no_operator = self.library.measure(f"tvmgen_{name}_no_operator", **options)
        empty = no_operator(given, taken, self._workspace, 0)
        whole = self.library.measure(f"tvmgen_{name}_run_in", **options)(given, taken, self._workspace)
        operators = []
        for index, operator in enumerate(self.plan.operators):
            timed = self.library.measure(f"tvmgen_{name}_operator", **options)
            measurement = timed(given, taken, self._workspace, index)
            operators.append(OperatorTime(operator.function, _without(measurement, empty)))
        io = [tensor.nbytes for _, tensor in (*self.plan.inputs, *self.plan.outputs)]
        return ModelRun(
            name,
            outputs,
            _without(whole, no_run),
            tuple(operators),
            self.sizes.code,
            self.plan.constant_bytes,
            self.sizes.data,
            self.plan.workspace_bytes,
            self.plan.least_workspace_bytes,
            sum(io),
        )

    def _placed(self, inputs: Arrays) -> _Placed:
        """Copies the inputs to the device, and allocates the outputs there."""
        plan, types, session = self.plan, self.library.types, self._session
        check_inputs(plan, inputs)
        given = [session.array(inputs[name], tensor.dtype) for name, tensor in plan.inputs]
        taken = {name: session.empty(tensor.shape, tensor.dtype) for name, tensor in plan.outputs}
        return _Placed(
            types[f"tvmgen_{plan.name}_inputs"](*given),
            types[f"tvmgen_{plan.name}_outputs"](*taken.values()),
            taken,
        )


def _without(measured: Measurement, empty: Measurement) -> Measurement:
    """Subtracts timer overhead and the time of an empty function called with the same arguments."""
    overhead = measured.overhead
    called = max(0.0, float(np.median(empty.net().ticks_per_call)))
    return replace(measured, overhead=replace(overhead, call=overhead.call + called), subtracted=True)


def load_model(
    session: Session,
    plan: ModelPlan,
    *,
    flags: Sequence[str] = FLAGS,
    firmware: Firmware | None = None,
    weights: Weights = "loaded",
    begins: Callable[[str], None] = lambda stage: None,
) -> LoadedModel:
    """Compile a plan for the device and load it.

    flags: of the compiler. firmware: runs on the device; by default, the firmware that it was started with.
    weights: "image" for a firmware that was built from `with_weights`. begins: called with "compile" and
        "load" when these steps begin.

    Raises as `device.load` does, and ConfigurationError if the cache can't be written. DeviceMemoryError
    names the missing bytes; it comes before compilation if they are known by then.
    """
    toolset = toolset_of(firmware_of(session, firmware))
    _check_room(session, plan, 0, weights)
    begins("compile")
    library = plan.cmsis_nn
    with scratch() as directory:
        left_out = f"tvmgen_{plan.name}_weights.c" if weights == "image" else ""
        files = [
            str(path)
            for path in export.write(plan, directory, quick=True)
            if path.suffix == ".c" and path.parent.name == "src" and path.name != left_out
        ]
        empty = directory / "src" / f"tvmgen_{plan.name}_nothing.c"
        empty.write_text(export.nothing(plan))
        files.append(str(empty))
        kernels = kernel_files(plan.source, library) if library else []
        sources = Sources.of(
            files,
            include=[directory / "include", *([include_directory(library)] if library else [])],
            flags=[*flags, *float16_flags(plan.source, toolset)],
            defines=[f"TVMGEN_{plan.name.upper()}_NO_STATIC_WORKSPACE"],
        )
        objects = [compile_file(kernel, sources, toolset).path for kernel in kernels]
        compiled = compile_sources(replace(sources, libraries=tuple(objects)), toolset)
    begins("load")
    size = image_size(session, compiled, toolset)
    _check_room(session, plan, size - (plan.constant_bytes if weights == "loaded" else 0), weights)
    without_weights = [
        item
        for item, file in zip(compiled.objects, files, strict=False)
        if Path(file).name != f"tvmgen_{plan.name}_weights.c"
    ]
    entries = [f"tvmgen_{plan.name}_{name}" for name in ("run_in", "operator")]
    sizes = linked_sizes([*without_weights, *objects], entries, toolset)
    return LoadedModel(session, plan, load_compiled(session, compiled, toolset), sizes)


def with_weights(target: Target, plan: ModelPlan) -> Target:
    """The target with the model's constants in its firmware's image, which is flash on a board.

    Raises ConfigurationError if the cache can't be written.
    """
    text = export.weights_in_image(plan)
    return target.changed(sources=[kept_file(f"tvmgen_{plan.name}_weights.c", text.encode())])


def check_weights(session: Session, name: str, size: int) -> None:
    """Raise DeviceMemoryError if a model's constants of `size` bytes can't fit, even after TVM has folded
    some.

    Folding makes constants smaller, so sizes up to twice the device's memory are decided when the code is
    known.
    """
    room, memory, state = _room_for_code(session)
    if size > 2 * room:
        _require_room(session, name, {"weights": size}, room, memory, state)


def _room_for_code(session: Session) -> tuple[int, str, str]:
    """The memory's size in bytes, its name, and whether the size is the free or the total memory."""
    info = session.info()
    for_code = max((region.size for region in info.regions if region.kind == "code"), default=None)
    if for_code is None:
        return info.arena_largest_free, "memory", "free"
    return for_code, "memory for code", "there"  # The device does not report how much of it is free.


def _check_room(session: Session, plan: ModelPlan, code: int, weights: Weights) -> None:
    """Raise DeviceMemoryError if the device has too little memory for the model.

    code: size without the weights, in bytes; 0 before compilation, to refuse a model that can't fit anyway.
    """
    loaded = {"code": code} if code else {}
    if weights == "loaded":
        loaded["weights"] = plan.constant_bytes
    arrays = {
        "workspace": plan.workspace_bytes,
        "inputs and outputs": sum(tensor.nbytes for _, tensor in (*plan.inputs, *plan.outputs)),
    }
    room, memory, state = _room_for_code(session)
    if state == "free":
        _require_room(session, plan.name, loaded | arrays, room, memory, state)
    else:
        _require_room(session, plan.name, loaded, room, memory, state)
        free = session.info().arena_largest_free
        _require_room(session, plan.name, arrays, free, "memory", "free")


def _require_room(
    session: Session, name: str, parts: Mapping[str, int], room: int, memory: str, state: str
) -> None:
    missing = sum(parts.values()) - room
    if missing <= 0:
        return
    weights = parts.get("weights", 0)
    image = missing <= weights and _fits_image(session, weights)
    target = session.owner.target
    device = target.name if target is not None else session.name
    raise DeviceMemoryError(
        f"{name} takes {sum(parts.values()):,} bytes of {device}'s {memory}, of which "
        f"{room:,} are {state}: {missing:,} are missing",
        stage="load",
        details=[f"{name}: {size:,} bytes" for name, size in parts.items()],
        next_step="--weights image builds the weights into the firmware"
        if image
        else "take a smaller model, or a platform with more memory",
    )


def _fits_image(session: Session, size: int) -> bool:
    """True if the firmware's image may grow by `size` bytes, by the size of its flash."""
    target = session.owner.target
    if target is None or target.platform.starts == "process":
        return True
    regions = [region for region in session.info().regions if region.kind == "read_only"]
    return any(size <= region.size for region in regions) or not regions


@dataclass(frozen=True)
class Model:
    """A model. module: its Relax module, None for C code only. plan: of the lowered module.

    onnx: the source ONNX model, with its shapes and constants fixed; else None.
    tflite: the TFLite file that it is from; else None. kernels: names of the operators of CMSIS-NN.
    left: quantized operators that stay with TVM although CMSIS-NN is used, with reasons. lowered: the module
    as TVM lowers it, None for C code only. further: C code of functions that it calls and does not have.
    """

    module: Any
    plan: ModelPlan
    onnx: Any = None
    tflite: Path | None = None
    kernels: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    lowered: Any = None
    further: str = ""

    @property
    def name(self) -> str:
        """A C identifier."""
        return self.plan.name

    def require_loops(self) -> None:
        """Raise ConfigurationError for a model that is only C code, whose loops TVM can't schedule."""
        if self.lowered is None:
            raise ConfigurationError(
                f"{self.name} is an archive of C code, whose loops TVM can't schedule",
                next_step="give the file that the archive was made from",
            )

    def scheduled(self, schedules: Schedules) -> tuple[ModelPlan, dict[str, bool]]:
        """The plan with the database's fastest schedules, and its tuned functions: True if the loops differ.

        Raises ConfigurationError if none of its functions was tuned.
        """
        self.require_loops()
        lowered, tuned = schedules.applied(self.lowered, self.name)
        own = self.plan
        plan = importer.plan(lowered, self.name, further=self.further)
        called, origin, states = own.called, own.origin, own.states
        return replace(plan, called=called, origin=origin, states=states, cmsis_nn=own.cmsis_nn), tuned

    def random_inputs(self, seed: int = 0) -> dict[str, npt.NDArray[Any]]:
        """Inputs of the model's shapes and types.

        Floats are in [-1, 1), integers in [-128, 127] within their type's range; integers that the model uses
        as indices are valid indices.
        """
        bounds = index_bounds(self.module) if self.module is not None else {}
        return random_inputs(self.plan, seed, bounds)

    def on_host(self, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
        """TVM's outputs for `inputs` on this machine; empty for a model that is only C code.

        Raises ModelError if TVM can't run the model, ConfigurationError for inputs that do not fit.
        """
        if self.module is None:
            return {}
        check_inputs(self.plan, inputs)
        results = run_on_host(self.module, [inputs[name] for name, _ in self.plan.inputs])
        return {name: result for (name, _), result in zip(self.plan.outputs, results, strict=True)}

    def by_onnxruntime(self, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
        """onnxruntime's outputs for the unchanged file; empty if it is not installed, or can't run the file.

        Outputs of text are left out. Raises ModelError for an output whose size is not onnxruntime's.
        """
        if self.onnx is None:
            return {}
        from minrpc_models.formats.onnx_runtime import inputs_of, outputs_of

        names = zip(inputs_of(self.onnx), self.plan.inputs, strict=True)
        results = outputs_of(self.onnx, {own: inputs[name] for own, (name, _) in names})
        outputs = {}
        for (name, tensor), result in zip(self.plan.outputs, results, strict=bool(results)):
            array = np.asarray(result)
            if array.dtype.kind in "OSU":
                continue
            if array.size != prod(tensor.shape):
                raise ModelError(
                    f"the output {name} is {list(tensor.shape)} by TVM, {list(array.shape)} by onnxruntime"
                )
            outputs[name] = array.reshape(tensor.shape)
        return outputs

    def by_litert(self, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
        """LiteRT's outputs of a TFLite file whose operators CMSIS-NN computes; empty for another model.

        Also empty for a file that keeps variables: LiteRT takes no values for them. Raises
        ConfigurationError if LiteRT is not installed.
        """
        if self.tflite is None or not self.kernels or self.plan.states:
            return {}
        from minrpc_models.formats.litert_runtime import outputs_of

        results = outputs_of(self.tflite, [inputs[name] for name, _ in self.plan.inputs])
        return {
            name: result.reshape(tensor.shape)
            for (name, tensor), result in zip(self.plan.outputs, results, strict=True)
        }

    @property
    def rounding_steps(self) -> int:
        """Allowed difference of two schedules, in steps of an integer: one for each operator that rounds
        floats, whose sums differ by the order of additions."""
        return sum("quantize" in operator.function for operator in self.plan.operators)

    @property
    def litert_steps(self) -> int:
        """Allowed difference from LiteRT, in steps of an integer: one for each operator that rounds
        differently.

        CMSIS-NN's dense layers do, since they round twice, as TFLite Micro does; TVM's floats do, too.
        """
        dense = sum("_dense_" in operator.function for operator in self.plan.operators)
        return dense + self.rounding_steps


def model_of(
    what: Any,  # noqa: ANN401
    name: str | None = None,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    constants: Arrays | None = None,
    weighed: Callable[[str, int], None] = lambda name, size: None,
    cmsis_nn: Path | None = None,
) -> Model:
    """A model from a file (of `READERS`, or .tar in Model Library Format), or Relax with its weights bound.

    shapes: of an ONNX file's inputs that have none, by name; also extents of named dimensions. A batch that
        is not given is 1.
    constants: values that replace some of its inputs.
    cmsis_nn: root of CMSIS-NN's source tree, whose kernels then compute the quantized operators.

    Raises ModelError, and ConfigurationError for files that can't be read.
    """
    if cmsis_nn is not None:
        include_directory(cmsis_nn)
    if isinstance(what, str | Path):
        path = Path(what)
        if path.suffix == ".tar":
            return Model(None, _from_file(read_mlf(existing(path), identifier(name or path.stem)), path))
        read, called = read_model(path, shapes, constants), identifier(name or path.stem)
        weighed(called, importer.constant_bytes(read.module))
        try:
            model = _model(read.module, called, cmsis_nn)
        except ModelError as error:
            error.next_step = read.way_round or error.next_step
            raise
        plan: ModelPlan = model.plan
        states = {plan.inputs[i][0]: (plan.outputs[o][0], first) for i, o, first in read.states}
        if read.names:
            fields = [field for field, _ in plan.inputs]
            plan = replace(plan, called=renamed("inputs", fields, read.names))
        plan = replace(plan, states=states)
        tflite = path if path.suffix == ".tflite" else None
        return replace(model, plan=_from_file(plan, path), onnx=read.onnx, tflite=tflite)
    return _model(what, identifier(name or "model"), cmsis_nn)


def export_library(module: Any, name: str, directory: str | Path) -> list[Path]:  # noqa: ANN401
    """Write a module as a C library without malloc, see `minrpc_models.export`; returns the files.

    module: Relax with its weights bound, or one PrimFunc, such as the tuner's best schedule.
    name: the library's name; characters that a C identifier can't have become "_".

    Raises as `export.write` does, and ModelError for a module that a device can't run.
    """
    called = identifier(name)
    loops = not any(importer.is_relax(function) for function in module.functions.values())
    plan = importer.function_plan(module, called) if loops else _model(module, called).plan
    return export.write(plan, Path(directory))


def _from_file(plan: ModelPlan, path: Path) -> ModelPlan:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return replace(plan, origin=replace(plan.origin, file=path.name, digest=digest))


def _model(module: Any, name: str, library: Path | None = None) -> Model:  # noqa: ANN401
    if library is None:
        lowered = importer.lower(module)
        return Model(module, importer.plan(lowered, name), lowered=lowered)
    mapped = replaced(module)
    further = kernel_source(mapped.kernels, library)
    lowered = importer.lower(mapped.module)
    kernels = tuple(kernel.name for kernel in mapped.kernels)
    plan = replace(importer.plan(lowered, name, further=further), cmsis_nn=library if kernels else None)
    return Model(module, plan, kernels=kernels, left=mapped.left, lowered=lowered, further=further)
