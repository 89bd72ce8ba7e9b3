# SPDX-License-Identifier: Apache-2.0
"""Reads archives in TVM's Model Library Format, versions 5 to 7, written by TVM v0.8 to v0.18, as plans.

    metadata.json                  version, executors, memory; since version 7 under "modules", by name
    codegen/host/src/*.c           the operators, packed functions; for "aot" also the whole model
    codegen/host/include/*.h       the interface of "aot"
    executor-config/graph/*        for "graph": nodes in their order, shapes, types, storages
    parameters/NAME.params         weights

Nothing here needs TVM. Outputs can't be compared with TVM's, since today's TVM can't run the model's Relay.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path, PurePosixPath
from struct import Struct, error as struct_error
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from minrpc.errors import ModuleError
from minrpc.extension import DataType, members, to_dtype, to_numpy

from minrpc_models.c_names import field_names, renamed
from minrpc_models.errors import ModelError
from minrpc_models.plan import ModelPlan, Operator, Tensor, aligned

VERSIONS: Final = (5, 6, 7)

# Size of the largest archive's content, in bytes.
_UNPACKED: Final = 1 << 30

_LIST: Final = 0xF7E58D4F05049CB7
_ARRAY: Final = 0xDD5E40F096B4A13F
_U64: Final = Struct("<Q")
# Magic, reserved, device type and id, ndim, then the type of an element: code, bits, lanes.
_ARRAY_HEAD: Final = Struct("<QQiiiBBH")
_WORKSPACE: Final = re.compile(r"TVMBackendAllocWorkspace\([^;]*?\(uint64_t\)(\d+)(?:ULL)?,")

# With system-lib, these functions are in the file that starts the model.
_REGISTRY: Final = re.compile(
    r"#include <tvm/runtime/crt/module\.h>.*?TVMSystemLibEntryPoint\(void\) \{.*?^\}$", re.M | re.S
)
# Files with tables of functions' addresses, and with the model's metadata, which a run does not need.
_NOT_FOR_MODELS: Final = re.compile(r"_tvm_func_array|tvm/runtime/metadata_types\.h")
_PROTOTYPE: Final = re.compile(r"^TVM_DLL int32_t (\w+)\([^;{}]*\);$", re.M)

_SHIM: Final = """
int32_t __tvm_ffi_{name}(void *self, void *args, int32_t count, void *result);

int32_t __tvm_ffi_{name}(void *self, void *args, int32_t count, void *result)
{{
	TVMValue values[{arguments}];
	int32_t codes[{arguments}];
	TVMValue returned = {{0}};
	int32_t code = kTVMNullptr;

	(void)result;
	{begin}
	for (int32_t i = 0; i < count; i++) {{
		values[i].v_handle = ((TVMFFIAny *)args)[i].v_ptr;
		codes[i] = kTVMDLTensorHandle;
	}}
	return {name}(values, codes, count, &returned, &code, self);
}}
"""

_POOL: Final = """
#ifdef {macro}_CONSTANT_POOL_SIZE
static const uint8_t pool_{pool}[] __attribute__((aligned(16))) = {{
{macro}_CONSTANT_POOL_DATA
}};
#else
static uint8_t pool_{pool}[{macro}_WORKSPACE_POOL_SIZE] __attribute__((aligned(16)));
#endif
"""

_RUN_SHIM: Final = """{pools}
int32_t __tvm_ffi_{function}(void *self, void *args, int32_t count, void *result);

int32_t __tvm_ffi_{function}(void *self, void *args, int32_t count, void *result)
{{
	struct tvmgen_{module}_inputs inputs = {{
{inputs}
	}};
	struct tvmgen_{module}_outputs outputs = {{
{outputs}
	}};

	tvmgen_current_stack = self;
	(void)count;
	(void)result;
	return tvmgen_{module}_run(&inputs, &outputs{further});
}}
"""


@dataclass(frozen=True)
class Archive:
    """The files of an archive. module: the model's name in the archive. metadata: the module's."""

    name: str
    module: str
    version: int
    metadata: Mapping[str, Any]
    files: Mapping[str, bytes]

    def below(self, directory: str) -> list[str]:
        """The names of files in a directory, sorted."""
        return sorted(name for name in self.files if PurePosixPath(name).is_relative_to(directory))


def read_mlf(path: Path, name: str) -> ModelPlan:
    """The plan of an archive. Raises ModelError for another file, or an archive without C code to run."""
    try:
        return _plan(_read(path), name)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ModelError(f"{path.name} is no archive in TVM's Model Library Format: {error!r}") from error


def _plan(archive: Archive, name: str) -> ModelPlan:
    executors = list(archive.metadata.get("executors") or [])
    if "graph" in executors:
        return _Graph(archive, name).plan()
    if "aot" in executors:
        return _aot(archive, name)
    raise ModelError(f'{archive.name} has no executor "graph" or "aot" but {", ".join(executors) or "none"}')


def _read(path: Path) -> Archive:
    try:
        entries = members(path.name, path.read_bytes(), _UNPACKED)
        files = {str(PurePosixPath(name)): data for name, data in entries}
    except ModuleError as error:
        raise ModelError(
            f"{path.name} is no archive in TVM's Model Library Format: {error.message}"
        ) from error
    metadata = json.loads(files["metadata.json"])
    version = metadata["version"]
    if version not in VERSIONS:
        raise ModelError(
            f"{path.name} has version {version}; versions {VERSIONS[0]} to {VERSIONS[-1]} are read"
        )
    module, own = metadata.get("model_name", "default"), metadata
    if "modules" in metadata:
        if len(metadata["modules"]) != 1:
            raise ModelError(
                f"{path.name} has the modules {', '.join(metadata['modules'])}, and one is expected"
            )
        ((module, own),) = metadata["modules"].items()
    return Archive(path.name, str(module), version, own, files)


class _Graph:
    """The JSON of the graph executor: each entry is a tensor, an output of a node."""

    def __init__(self, archive: Archive, name: str) -> None:
        self._archive = archive
        self._name = name
        graphs = archive.below("executor-config/graph")
        if not graphs:
            raise ModelError(f"{archive.name} has no graph")
        self._graph = json.loads(archive.files[graphs[0]])
        self._rows: list[int] = self._graph["node_row_ptr"]
        attributes = self._graph["attrs"]
        self._shapes = [tuple(shape) for shape in attributes["shape"][1]]
        self._types = [to_dtype(attribute) for attribute in attributes["dltype"][1]]
        self._sids: list[int] = attributes["storage_id"][1]
        self._same: dict[int, int] = {}

    def plan(self) -> ModelPlan:
        nodes = self._graph["nodes"]
        params = _params(self._archive)
        calls = [(number, node) for number, node in enumerate(nodes) if node["op"] != "null"]
        for number, node in calls:
            if node["attrs"]["func_name"] == "__nop":  # The same bytes in another shape.
                self._same[self._rows[number]] = self._entry(node["inputs"][0])
        arguments = [(number, str(nodes[number]["name"])) for number in self._graph["arg_nodes"]]
        given = [(number, argument) for number, argument in arguments if argument not in params]
        weights = [(number, argument) for number, argument in arguments if argument in params]
        inputs = {self._rows[number]: index for index, (number, _) in enumerate(given)}
        constants = {self._rows[number]: index for index, (number, _) in enumerate(weights)}
        outputs = {self._entry(head): index for index, head in enumerate(self._graph["heads"])}
        if len(outputs) != len(self._graph["heads"]) or outputs.keys() & (inputs.keys() | constants.keys()):
            raise ModelError(f"{self._archive.name}: an output is an input, a weight or another output")
        storages: dict[int, int] = {}

        def tensor(entry: int) -> Tensor:
            dtype, shape, source = self._types[entry], self._shapes[entry], self._same.get(entry, entry)
            if source in outputs:
                return Tensor(dtype, shape, "output", outputs[source])
            if source in inputs:
                return Tensor(dtype, shape, "input", inputs[source])
            if source in constants:
                return Tensor(dtype, shape, "constant", constants[source])
            return Tensor(dtype, shape, "storage", storages.setdefault(self._sids[source], len(storages)))

        functions = [str(node["attrs"]["func_name"]) for _, node in calls]
        source = _sources(self._archive, functions)
        operators = []
        for (number, node), function in zip(calls, functions, strict=True):
            if function != "__nop":
                entries = [self._rows[operand] + index for operand, index, *_ in node["inputs"]]
                entries += range(self._rows[number], self._rows[number + 1])
                taken = tuple(tensor(entry) for entry in entries)
                operators.append(Operator(function, taken, _workspace(source, function)))
        arguments_of = {operator.function: len(operator.tensors) for operator in operators}
        shims = [
            _SHIM.format(name=argument, arguments=count, begin="") for argument, count in arguments_of.items()
        ]
        names = [value for _, value in given]
        fields = field_names(names)
        return ModelPlan(
            self._name,
            tuple(
                (field, tensor(self._rows[number])) for field, (number, _) in zip(fields, given, strict=True)
            ),
            tuple((f"output{index}", tensor(entry)) for entry, index in outputs.items()),
            tuple(params[weight] for _, weight in weights),
            tuple(self._sizes(storages)),
            tuple(operators),
            source + "".join(shims),
            renamed("inputs", fields, names),
            context="resource_handle",
        )

    def _entry(self, place: list[int]) -> int:
        entry = self._rows[place[0]] + place[1]
        return self._same.get(entry, entry)

    def _sizes(self, storages: Mapping[int, int]) -> list[int]:
        sizes = [0] * len(storages)
        for sid, shape, dtype in zip(self._sids, self._shapes, self._types, strict=True):
            if sid in storages:
                sizes[storages[sid]] = max(sizes[storages[sid]], prod(shape) * dtype.itemsize)
        return sizes


def _aot(archive: Archive, name: str) -> ModelPlan:
    """A plan with the whole model as one operator: its code calls the operators."""
    main = archive.metadata["memory"]["functions"]["main"][0]
    inputs, outputs = main.get("inputs") or {}, main.get("outputs") or {}
    if not inputs or not outputs:
        raise ModelError(f"{archive.name}: its metadata does not name inputs and outputs")
    given = [_flat(tensor, inputs, "input") for tensor in inputs]
    made = [_flat(output, outputs, "output") for output in outputs]
    run = f"tvmgen_{archive.module}_run"
    workspace = aligned(int(main.get("workspace_size_bytes", 0))) + 1024  # Padding between blocks.
    tensors = tuple(tensor for _, tensor in (*given, *made))
    header = next((item for item in archive.below("codegen/host/include") if item.endswith(".h")), None)
    if header is None:  # An archive with "interface-api": "packed" takes inputs, then outputs.
        packed = _SHIM.format(name=run, arguments=len(tensors), begin="tvmgen_current_stack = self;")
        operator = Operator(run, tensors, workspace)
        source = _sources(archive, [run]) + packed
        return _named(
            ModelPlan(name, (), (), (), (), (operator,), source, context=""),
            given,
            made,
            list(inputs),
            list(outputs),
        )
    function = f"{archive.module}_model"
    declared = archive.files[header].decode()
    source = declared + "\n" + _sources(archive, [run])
    pools = _pools(archive, declared)
    shim = _RUN_SHIM.format(
        function=function,
        module=archive.module,
        inputs=_fields(given, 0),
        outputs=_fields(made, len(given)),
        pools="".join(
            _POOL.format(pool=pool, macro=f"TVMGEN_{archive.module}_{pool}".upper()) for pool in pools
        ),
        further=f", &(struct tvmgen_{archive.module}_workspace_pools){{"
        + ", ".join(f".{pool} = (void *)(uintptr_t)pool_{pool}" for pool in pools)
        + "}"
        if pools
        else "",
    )
    operator = Operator(function, tensors, workspace)
    text = _included(archive, source) + shim
    return _named(
        ModelPlan(name, (), (), (), (), (operator,), text, context=""),
        given,
        made,
        list(inputs),
        list(outputs),
    )


def _named(
    plan: ModelPlan,
    given: list[tuple[str, Tensor]],
    made: list[tuple[str, Tensor]],
    inputs: list[str],
    outputs: list[str],
) -> ModelPlan:
    """The plan with inputs and outputs, named `inputs` and `outputs` by the metadata."""
    takes, gives = (field_names(name for name, _ in value) for value in (given, made))
    return replace(
        plan,
        inputs=tuple((field, tensor) for field, (_, tensor) in zip(takes, given, strict=True)),
        outputs=tuple((field, tensor) for field, (_, tensor) in zip(gives, made, strict=True)),
        called=renamed("inputs", takes, inputs) | renamed("outputs", gives, outputs),
    )


def _pools(archive: Archive, header: str) -> list[str]:
    """The memory pools that the model's caller provides. Raises ModelError for pools not supported here."""
    name = f"tvmgen_{archive.module}"
    run = re.search(rf"int32_t {name}_run\(([^)]*)\)", header)
    parameters = run[1] if run else ""
    if f"{name}_inputs*" not in parameters or f"{name}_devices*" in parameters:
        raise ModelError(
            f"{archive.name}: {name}_run takes devices, or has its inputs in pools: that can't be run here"
        )
    match = re.search(rf"struct {name}_workspace_pools \{{([^}}]*)\}}", header)
    return re.findall(r"void\* (\w+);", match[1]) if match and "workspace_pools*" in parameters else []


def _fields(tensors: list[tuple[str, Tensor]], first: int) -> str:
    return "\n".join(
        f"\t\t.{field} = ((DLTensor *)((TVMFFIAny *)args)[{first + number}].v_ptr)->data,"
        for number, (field, _) in enumerate(tensors)
    )


def _flat(name: str, tensors: Mapping[str, Any], place: Literal["input", "output"]) -> tuple[str, Tensor]:
    """One-dimensional tensors: the metadata has size and type, but no shape."""
    dtype = to_dtype(str(tensors[name]["dtype"]))
    shape = (int(tensors[name]["size"]) // dtype.itemsize,)
    return re.sub(r"\W", "_", name, flags=re.ASCII), Tensor(dtype, shape, place, list(tensors).index(name))


def _included(archive: Archive, source: str) -> str:
    """The source without `#include`s of the archive's files, whose text it already contains."""
    own = {PurePosixPath(file).name for file in archive.files}
    return (
        "\n".join(
            line
            for line in source.splitlines()
            if not ((match := re.match(r'\s*#include\s+[<"]([^">]+)[">]', line)) and match[1] in own)
        )
        + "\n"
    )


def _sources(archive: Archive, functions: list[str]) -> str:
    """The C files that define the functions, joined, without the functions' registration.

    The file that starts the model comes last, without its prototypes, which have "void *" where the functions
    have other pointer types.
    """
    files = [
        archive.files[item].decode() for item in archive.below("codegen/host/src") if item.endswith(".c")
    ]
    wanted = [function for function in functions if function != "__nop"]
    start = f"tvmgen_{archive.module}_run"
    texts = sorted(
        (_REGISTRY.sub("", text) for text in files), key=lambda file: _body(file, start) is not None
    )
    taken: list[str] = []
    for text in texts:
        if not _NOT_FOR_MODELS.search(text):
            before = "\n".join(taken)
            taken.append(_PROTOTYPE.sub(lambda line: line[0] if _body(before, line[1]) is None else "", text))  # noqa: B023
    for function in wanted:
        if not any(_body(text, function) is not None for text in taken):
            raise ModelError(
                f"{archive.name} has no C code of {function}: it was made for another target than c"
            )
    head = '#include "tvm/runtime/c_runtime_api.h"\n#include "tvm/runtime/c_backend_api.h"\n'
    return head + "\n".join(taken)


def _body(source: str, function: str) -> str | None:
    match = re.search(rf"\b{re.escape(function)}\([^;{{]*\)\s*\{{(.*?)^\}}", source, re.M | re.S)
    return match[1] if match else None


def _workspace(source: str, function: str) -> int:
    return sum(aligned(int(size)) for size in _WORKSPACE.findall(_body(source, function) or ""))


def _params(archive: Archive) -> dict[str, npt.NDArray[Any]]:
    """Weights by name, as `tvm.runtime.save_param_dict` wrote them."""
    paths = [item for item in archive.below("parameters") if item.endswith(".params")]
    return read_params(archive.files[paths[0]], archive.name) if paths else {}


def read_params(data: bytes, name: str) -> dict[str, npt.NDArray[Any]]:
    """Arrays by name. Raises ModelError for malformed data."""
    try:
        return _read_params(data)
    except (struct_error, ValueError, UnicodeDecodeError) as error:
        raise ModelError(f"the weights in {name} can't be read: {error}") from error


def _read_params(data: bytes) -> dict[str, npt.NDArray[Any]]:
    at = 0

    def number() -> int:
        nonlocal at
        (value,) = _U64.unpack_from(data, at)
        at += _U64.size
        return int(value)

    def taken(size: int) -> bytes:
        nonlocal at
        if size > len(data) - at:
            raise ValueError(f"{size} bytes announced, {len(data) - at} left")
        at += size
        return data[at - size : at]

    if number() != _LIST:
        raise ValueError("it does not begin as weights do")
    number()
    names = [taken(number()).decode() for _ in range(_few(number(), data))]
    arrays = []
    for _ in range(_few(number(), data)):
        magic, _reserved, _device, _id, ndim, *dtype = _ARRAY_HEAD.unpack(taken(_ARRAY_HEAD.size))
        if magic != _ARRAY:
            raise ValueError("an array does not begin as an array does")
        shape = tuple(number() for _ in range(_few(ndim, data)))
        host, lanes = to_numpy(DataType(*dtype))
        arrays.append(np.frombuffer(taken(number()), host).reshape(shape + lanes))
    return dict(zip(names, arrays, strict=True))


def _few(count: int, data: bytes) -> int:
    """`count`, checked against the data's size."""
    if not 0 <= count <= len(data):
        raise ValueError(f"a count of {count}")
    return count
