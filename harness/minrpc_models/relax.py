# SPDX-License-Identifier: Apache-2.0
"""Turns a Relax module into a plan: TVM lowers it, plans memory and generates C.

Needs `pip install 'minrpc-harness[tvm]'`. TVM is imported only when a model is compiled, and only names that
0.26 and 0.27 share are used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib import import_module
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from minrpc.errors import HarnessError
from minrpc.extension import BOOLEAN, DataType, to_dtype
from minrpc.tvm import tvm_package

from minrpc_models.c_names import field_names, renamed
from minrpc_models.errors import ModelError
from minrpc_models.plan import ModelPlan, Operator, Origin, Tensor, aligned

_WORKSPACE: Final = re.compile(r"TVMBackendAllocWorkspace\([^;]*?\(uint64_t\)(\d+)(?:ULL)?,")
_FUNCTION: Final = re.compile(r"int32_t __tvm_ffi_(\w+)\(void\* self_handle[^;{]*\) \{$(.*?)^\}", re.M | re.S)
# It matches neither the function of that name, nor a part of another name or of a text.
_SPECIAL: Final = re.compile(r'(?<![\w."])(inff?|nanf?)(?![\w("])')

_ALLOCATION: Final = "relax.builtin.alloc_tensor"


@contextmanager
def told_by_tvm(
    what: str, kind: type[HarnessError] = ModelError, next_step: str | None = None
) -> Iterator[None]:
    """Context of calls to TVM: turns TVM's errors into `kind`, with the text `what` and TVM's first line."""
    try:
        yield
    except HarnessError:
        raise
    except Exception as error:  # TVM raises errors of any class, its own and Python's.
        raise kind(f"{what}: {first_line(error)}", next_step=next_step) from error


def first_line(error: Exception) -> str:
    """The message, without TVM's traceback; the class's name if there is no text."""
    lines = [line.strip() for line in str(error).splitlines() if line[:1].strip()]
    told = [line for line in lines if not line.startswith("Traceback (")]
    return told[0] if told else type(error).__name__


def lower(module: Any, params: Mapping[str, Any] | None = None, function: str | None = None) -> Any:  # noqa: ANN401
    """The module with operators fused into loops, and an allocation for each of their results.

    params: weights by name, bound as constants. function: the entry; the only public Relax function if None.

    Raises ModelError if TVM can't lower the module.
    """
    package = tvm_package()
    transform = import_module("tvm.relax.transform")
    if params:
        module = transform.BindParams(function or entry_of(module), dict(params))(module)
    passes = [
        transform.ConvertToDataflow(),
        transform.LegalizeOps(),
        transform.AnnotateTIROpPattern(),
        transform.FoldConstant(),
        transform.FuseOps(),
        transform.FuseTIR(),
        transform.DeadCodeElimination(),
        transform.ToNonDataflow(),
        transform.RemovePurityChecking(),
        _copied_outputs(),
        transform.CallTIRRewrite(),
    ]
    with package.target.Target("c"), told_by_tvm("TVM can't make loops of the model"):
        return package.ir.transform.Sequential(passes)(module)


def constant_bytes(module: Any) -> int:  # noqa: ANN401
    """The size of all constants of a module that is not lowered, in bytes."""
    visit = import_module("tvm.relax.analysis").post_order_visit
    sizes: dict[Any, int] = {}

    def note(value: Any) -> None:  # noqa: ANN401
        if _is_constant(value):
            dtype, shape = tensor_type(value)
            sizes[value] = prod(shape) * dtype_of(dtype).itemsize

    for function in module.functions.values():
        if is_relax(function):
            visit(function, note)
    return sum(sizes.values())


def _copied_outputs() -> Any:  # noqa: ANN401
    """A pass: an output that is an input, a constant or another output becomes a copy, in its own memory."""
    package = tvm_package()
    relax, topi = package.relax, package.topi

    def copied(module: Any, _: Any) -> Any:  # noqa: ANN401
        for var, function in module.functions.items():
            if not is_relax(function):
                continue
            fields = _fields(function.body.body, function)
            kept, wanted = set[Any](function.params), []
            for field in fields:
                wanted.append(field in kept or _is_constant(field))
                kept.add(field)
            if not any(wanted):
                continue
            others = {key: value for key, value in module.functions.items() if key != var}
            builder = relax.BlockBuilder(package.IRModule(others))
            attributes = dict(function.attrs.items()) if function.attrs else {}
            with builder.function(var.name_hint, list(function.params), attrs=attributes):
                for block in function.body.blocks:
                    for binding in block.bindings:
                        builder.emit_normalized(binding)
                made = [
                    builder.emit_te(topi.identity, field, primfunc_name_hint="copy") if copy else field
                    for field, copy in zip(fields, wanted, strict=True)
                ]
                builder.emit_func_output(relax.Tuple(made) if len(made) > 1 else made[0])
            module = builder.finalize()
        return module

    return package.transform.module_pass(opt_level=0, name="minrpc.copied_outputs")(copied)


def _fields(result: Any, function: Any) -> list[Any]:  # noqa: ANN401
    """The tensors that a function returns, with aliases resolved."""
    values = {
        binding.var: binding.value
        for block in function.body.blocks
        for binding in block.bindings
        if type(binding.value).__name__ in ("Var", "DataflowVar", "Tuple") or _is_constant(binding.value)
    }

    def origin(value: Any) -> Any:  # noqa: ANN401
        while value in values and type(values[value]).__name__ != "Tuple":
            value = values[value]
        return value

    returned = values.get(origin(result), result)
    fields = returned.fields if type(returned).__name__ == "Tuple" else [result]
    return [origin(field) for field in fields]


def entry_of(module: Any) -> str:  # noqa: ANN401
    """The name of the only Relax function. Raises ModelError when there are several."""
    names = [var.name_hint for var, function in module.functions.items() if is_relax(function)]
    if len(names) != 1:
        raise ModelError(f"the module has the functions {', '.join(names) or 'none'}: name one as the entry")
    return str(names[0])


def plan(lowered: Any, name: str, function: str | None = None, *, further: str = "") -> ModelPlan:  # noqa: ANN401
    """The plan of a lowered module. Raises ModelError for a module that no plan can express.

    further: C code of functions that the module calls and does not have, in the form of TVM's code.
    """
    source = c_source(lowered) + further
    entry = lowered[function or entry_of(lowered)]
    return _Reader(name, source).read(entry)


def c_source(lowered: Any, config: Mapping[str, object] | None = None) -> str:  # noqa: ANN401
    """The C code of the module's PrimFuncs, a function for each. config: of TVM's passes.

    Raises ModelError with the name of a PrimFunc for which TVM can't generate C.
    """
    package = tvm_package()
    functions = {
        var: function.with_attr("global_symbol", var.name_hint).without_attr("op_pattern")
        for var, function in lowered.functions.items()
        if not is_relax(function)
    }
    _lower_fabs()
    # The plan fixes the shapes: checking them on the device at each call would cost code and time.
    options = {"tirx.disable_assert": True, **(config or {})}

    def compiled(some: Mapping[Any, Any]) -> str:
        with package.transform.PassContext(config=options):
            library = package.compile(package.IRModule(some), target=package.target.Target("c"))
        return _with_special_numbers(str(library.mod.inspect_source()))

    try:
        return compiled(functions)
    except Exception as error:
        for var, function in functions.items():  # TVM does not name the function that failed.
            with told_by_tvm(f"TVM has no C for the operator {var.name_hint}"):
                compiled({var: function})
        raise ModelError(f"TVM has no C for the model: {first_line(error)}") from error


def _with_special_numbers(source: str) -> str:
    """C for infinity and nan as constants, which TVM writes as "inff", which is not C."""
    names = {"inff": "__builtin_inff()", "inf": "__builtin_inf()"}
    names |= {"nanf": '__builtin_nanf("")', "nan": '__builtin_nan("")'}
    return _SPECIAL.sub(lambda match: names[match[1]], source)


@cache
def _lower_fabs() -> None:
    """Register with TVM the C function for the absolute value of a float: TVM has none for the target "c"."""
    tirx = import_module("tvm.tirx")

    def lowered(call: Any) -> Any:  # noqa: ANN401
        (value,) = call.args
        dtype = str(value.ty if not hasattr(value, "dtype") else value.dtype)
        if dtype == "float64":
            return tirx.call_pure_extern("float64", "fabs", value)
        absolute = tirx.call_pure_extern("float32", "fabsf", value.astype("float32"))
        return absolute if dtype == "float32" else absolute.astype(dtype)

    home = import_module("tvm.tirx.op")
    if not hasattr(home, "register_intrin_lowering"):  # TVM 0.26 has it elsewhere.
        home = import_module("tvm.ir")
    home.register_intrin_lowering("tirx.fabs", target="c", f=lowered, level=99)


def function_plan(module: Any, name: str) -> ModelPlan:  # noqa: ANN401
    """The plan of a module's only PrimFunc, such as the best schedule that TVM's tuner found.

    Its last tensor is the output, all others are inputs, by the names of its buffers.

    Raises ModelError if there is not exactly one PrimFunc, or a parameter is no tensor of a known shape.
    """
    functions = [
        (var.name_hint, function) for var, function in module.functions.items() if not is_relax(function)
    ]
    if len(functions) != 1:
        raise ModelError(f"the module has {len(functions)} functions of loops, and one was expected")
    ((symbol, function),) = functions
    named = [_parameter(function, parameter) for parameter in function.params]
    last = len(named) - 1
    names = [name for name, _, _ in named]
    fields = [*field_names(names[:last]), *field_names(names[last:])]
    tensors = [
        (
            field,
            Tensor(dtype_of(dtype), shape, "input", number)
            if number < last
            else Tensor(dtype_of(dtype), shape, "output", 0),
        )
        for number, (field, (_, dtype, shape)) in enumerate(zip(fields, named, strict=True))
    ]
    # The tuner may have vectorized loops for LLVM: C compilers vectorize loops themselves.
    source = c_source(module, {"tirx.disable_vectorize": True})
    workspace = workspaces(source).get(symbol, 0)
    operator = Operator(symbol, tuple(tensor for _, tensor in tensors), workspace)
    called = renamed("inputs", fields[:last], names[:last]) | renamed("outputs", fields[last:], names[last:])
    return ModelPlan(
        name,
        tuple(tensors[:-1]),
        tuple(tensors[-1:]),
        (),
        (),
        (operator,),
        source,
        called,
        origin=Origin(tvm=str(tvm_package().__version__)),
    )


def _parameter(function: Any, parameter: Any) -> tuple[str, str, tuple[int, ...]]:  # noqa: ANN401
    """Name, dtype and shape of a tensor; since 0.26 the parameter is the buffer itself."""
    buffers = getattr(function, "buffer_map", {})
    buffer = buffers.get(parameter, parameter)
    if not getattr(buffer, "shape", ()):
        raise ModelError(f"the parameter {parameter} is no tensor")
    return str(buffer.name), str(buffer.dtype), _shape(buffer.shape)


def dtype_of(name: str) -> DataType:
    """The type of TVM's `name`."""
    return BOOLEAN if name == "bool" else to_dtype(name)


def _is_constant(value: Any) -> bool:  # noqa: ANN401
    return "Const" in type(value).__name__  # The attribute's name differs between versions.


def constant_array(value: Any) -> npt.NDArray[Any] | None:  # noqa: ANN401
    """The elements of a constant; None for another expression."""
    data = getattr(value, "data", None) if _is_constant(value) else None
    if data is None:
        data = getattr(value, "value", None)
    return np.ascontiguousarray(data.numpy()) if data is not None and hasattr(data, "numpy") else None


def is_relax(function: Any) -> bool:  # noqa: ANN401
    """True for a Relax function, False for a PrimFunc."""
    return type(function).__module__.startswith("tvm.relax")


def workspaces(source: str) -> dict[str, int]:
    """The workspace that each function of generated C requests, in bytes: the sum of its requests, aligned.

    Raises ModelError for a size that is only known when the code runs.
    """
    totals = {}
    for name, body in _FUNCTION.findall(source):
        sizes = _WORKSPACE.findall(body)
        if len(sizes) != body.count("TVMBackendAllocWorkspace("):
            raise ModelError(f"the workspace of {name} has no fixed size")
        totals[name] = sum(aligned(int(size)) for size in sizes)
    return totals


class _Reader:
    """Follows the bindings of one Relax function."""

    def __init__(self, name: str, source: str) -> None:
        self._name = name
        self._source = source
        self._workspaces = workspaces(source)
        self._tensors: dict[Any, Tensor] = {}
        self._storages: list[int] = []
        self._constants: list[Any] = []
        self._tuples: dict[Any, Sequence[Any]] = {}
        self._calls: list[tuple[str, list[Tensor]]] = []

    def read(self, function: Any) -> ModelPlan:  # noqa: ANN401
        names = [str(getattr(param, "name_hint", None) or param.name) for param in function.params]
        fields = field_names(names)
        inputs = tuple(
            (field, self._input(number, param))
            for number, (field, param) in enumerate(zip(fields, function.params, strict=True))
        )
        for block in function.body.blocks:
            for binding in block.bindings:
                self._bind(binding.var, binding.value)
        plan = self._finished(inputs, self._results(function.body.body))
        origin = Origin(tvm=str(tvm_package().__version__))
        return replace(plan, called=renamed("inputs", fields, names), origin=origin)

    def _input(self, number: int, param: Any) -> Tensor:  # noqa: ANN401
        dtype, shape = tensor_type(param)
        self._tensors[param] = tensor = Tensor(dtype_of(dtype), shape, "input", number)
        return tensor

    def _bind(self, var: Any, value: Any) -> None:  # noqa: ANN401
        kind = type(value).__name__
        if kind == "Var" or kind == "DataflowVar":
            self._alias(var, value)
        elif kind == "Tuple":
            self._tuples[var] = list(value.fields)
        elif kind == "TupleGetItem":
            self._alias(var, self._tuples[value.tuple_value][int(value.index)])
        elif kind == "Call":
            self._call(var, value)
        else:
            raise ModelError(f"{kind} in the model's code is not supported")

    def _alias(self, var: Any, value: Any) -> None:  # noqa: ANN401
        if value in self._tensors:
            self._tensors[var] = self._tensors[value]
        elif value in self._tuples:
            self._tuples[var] = self._tuples[value]

    def _call(self, var: Any, call: Any) -> None:  # noqa: ANN401
        name = str(getattr(call.op, "name_hint", None) or getattr(call.op, "name", ""))
        symbol = str(getattr(call.op, "global_symbol", ""))
        if type(call.op).__name__ == "GlobalVar" or symbol in self._workspaces:
            name = name or symbol
            self._calls.append((name, [self._argument(argument) for argument in call.args]))
        elif name == _ALLOCATION:
            self._allocate(var, call)
        else:
            what = name or symbol or str(call.op)
            raise ModelError(f"TVM has no loops that a device could run for the operator {what}")

    def _allocate(self, var: Any, call: Any) -> None:  # noqa: ANN401
        tensor = Tensor(
            dtype_of(str(call.args[1].value)), _shape(call.args[0]), "storage", len(self._storages)
        )
        self._storages.append(tensor.nbytes)
        self._tensors[var] = tensor

    def _argument(self, value: Any) -> Tensor:  # noqa: ANN401
        if value in self._tensors:
            return self._tensors[value]
        array = constant_array(value)
        if array is None:
            raise ModelError(f"the argument {value} of an operator is no tensor")
        tensor = Tensor(dtype_of(str(array.dtype)), array.shape, "constant", len(self._constants))
        self._constants.append(array)
        self._tensors[value] = tensor
        return tensor

    def _results(self, body: Any) -> list[Tensor]:  # noqa: ANN401
        fields = self._tuples.get(body) or (list(body.fields) if type(body).__name__ == "Tuple" else [body])
        return [self._argument(value) for value in fields]

    def _used(self) -> set[Tensor]:
        return {tensor for _, tensors in self._calls for tensor in tensors}

    def _finished(self, inputs: tuple[tuple[str, Tensor], ...], results: list[Tensor]) -> ModelPlan:
        """The plan with outputs in the caller's memory, in place of storages that only hold an output."""
        outputs = []
        moved: dict[Tensor, Tensor] = {}
        for number, result in enumerate(results):
            if result.place != "storage" or result in moved:
                raise ModelError(f"output {number} is an input, a constant, or another output")
            output = Tensor(result.dtype, result.shape, "output", number)
            moved[result] = output
            outputs.append((f"output{number}", output))
        storages, renumbered = _without(self._storages, {tensor.index for tensor in moved})

        def placed(tensor: Tensor) -> Tensor:
            if tensor in moved:
                return moved[tensor]
            if tensor.place != "storage":
                return tensor
            return Tensor(tensor.dtype, tensor.shape, "storage", renumbered[tensor.index])

        operators = tuple(
            Operator(name, tuple(placed(tensor) for tensor in tensors), self._workspaces.get(name, 0))
            for name, tensors in self._calls
        )
        return ModelPlan(
            self._name,
            inputs,
            tuple(outputs),
            tuple(self._constants),
            tuple(storages),
            operators,
            self._source,
        )


def _without(storages: Sequence[int], dropped: set[int]) -> tuple[list[int], dict[int, int]]:
    kept = [number for number in range(len(storages)) if number not in dropped]
    return [storages[number] for number in kept], {old: new for new, old in enumerate(kept)}


def tensor_type(var: Any) -> tuple[str, tuple[int, ...]]:  # noqa: ANN401
    """Dtype and shape of a variable or a constant. Raises ModelError for a shape that is not known."""
    info = getattr(var, "struct_info", None) or var.ty
    return str(info.dtype), _shape(info.shape)


def shape_of(value: Any) -> tuple[int, ...]:  # noqa: ANN401
    """Shape of a variable or a constant. Raises ModelError if it is unknown before the model runs."""
    return tensor_type(value)[1]


def _shape(shape: Any) -> tuple[int, ...]:  # noqa: ANN401
    try:
        return tuple(int(extent) for extent in shape)
    except TypeError as error:
        raise ModelError(f"the shape {shape} is not known before the model runs") from error
