# SPDX-License-Identifier: Apache-2.0
"""Archives in Model Library Format, written by hand from its description: two layers of `waveforms`."""

from __future__ import annotations

import io
import json
import struct
import tarfile
from pathlib import Path
from typing import Any

import numpy.typing as npt

from tests.models.waveforms import CLASSES, HIDDEN, SAMPLES, Network

_PACKED = """\
TVM_DLL int32_t {name}(void* args, int32_t* arg_type_ids, int32_t num_args,
  void* out_ret_value, int32_t* out_ret_tcode, void* resource_handle) {{
  float* x = (float*)(((DLTensor*)(((TVMValue*)args)[0].v_handle))[0].data);
  float* w = (float*)(((DLTensor*)(((TVMValue*)args)[1].v_handle))[0].data);
  float* b = (float*)(((DLTensor*)(((TVMValue*)args)[2].v_handle))[0].data);
  float* out = (float*)(((DLTensor*)(((TVMValue*)args)[3].v_handle))[0].data);
  if (arg_type_ids[3] != kTVMDLTensorHandle) {{
    TVMAPISetLastError("expected a tensor");
    return -1;
  }}
  void* sums = TVMBackendAllocWorkspace(1, 0, (uint64_t){bytes}, 2, 32);
  if (sums == NULL) {{
    return -1;
  }}
  for (int32_t j = 0; j < {columns}; ++j) {{
    ((float*)sums)[j] = b[j];
    for (int32_t i = 0; i < {rows}; ++i) {{
      ((float*)sums)[j] = ((float*)sums)[j] + (x[i] * w[((i * {columns}) + j)]);
    }}
  }}
  for (int32_t j = 0; j < {columns}; ++j) {{
    float sum = ((float*)sums)[j];
    out[j] = {result};
  }}
  if (TVMBackendFreeWorkspace(1, 0, sums) != 0) {{
    return -1;
  }}
  return 0;
}}
"""
_HEAD = """\
// tvm target: c -keys=cpu
#define TVM_EXPORTS
#include "tvm/runtime/c_runtime_api.h"
#include "tvm/runtime/c_backend_api.h"
#include <math.h>
#include <stdbool.h>
"""
# Written by v0.8 to v0.18 if the target or the runtime has system-lib.
_REGISTRY = """\
#include <tvm/runtime/crt/module.h>
#ifdef __cplusplus
extern "C"
#endif
TVM_DLL int32_t tvmgen_default_x(TVMValue* args, int* type_code, int num_args, TVMValue* out_value, int* \
out_type_code, void* resource_handle);
static TVMBackendPackedCFunc _tvm_func_array[] = {
    (TVMBackendPackedCFunc)tvmgen_default_x,
};
static const TVMFuncRegistry _tvm_func_registry = {
    "\\001\\000tvmgen_default_x\\000",    _tvm_func_array,
};
static const TVMModule _tvm_system_lib = {
    &_tvm_func_registry,
};
const TVMModule* TVMSystemLibEntryPoint(void) {
    return &_tvm_system_lib;
}
"""

_PACKED_PARAMETERS = (
    ("TVMValue*", "args"),
    ("int*", "type_code"),
    ("int", "num_args"),
    ("TVMValue*", "out_value"),
    ("int*", "out_type_code"),
    ("void*", "resource_handle"),
)
_PACKED_NAMES = [name for _, name in _PACKED_PARAMETERS]

FIRST, SECOND = "tvmgen_default_fused_nn_dense_add_nn_relu", "tvmgen_default_fused_nn_dense_add"


def packed_functions() -> str:
    """C code of both layers, in the form of v0.18's generator."""
    first = _PACKED.format(
        name=FIRST, rows=SAMPLES, columns=HIDDEN, bytes=4 * HIDDEN, result="((sum) > (0.0f) ? (sum) : (0.0f))"
    )
    return first + _PACKED.format(name=SECOND, rows=HIDDEN, columns=CLASSES, bytes=4 * CLASSES, result="sum")


def params(arrays: dict[str, npt.NDArray[Any]]) -> bytes:
    """Weights in the format of `save_param_dict`."""
    data = struct.pack("<QQQ", 0xF7E58D4F05049CB7, 0, len(arrays))
    for name in arrays:
        data += struct.pack("<Q", len(name)) + name.encode()
    data += struct.pack("<Q", len(arrays))
    for array in arrays.values():
        data += struct.pack("<QQiiiBBH", 0xDD5E40F096B4A13F, 0, 1, 0, array.ndim, 2, 32, 1)
        data += (
            struct.pack(f"<{array.ndim}q", *array.shape) + struct.pack("<Q", array.nbytes) + array.tobytes()
        )
    return data


def graph() -> dict[str, Any]:
    """x reshaped, then both layers; weights p0 to p3."""

    def call(name: str, function: str, *inputs: int) -> dict[str, Any]:
        counts = {"num_outputs": "1", "num_inputs": str(len(inputs)), "flatten_data": "0"}
        given = [[tensor, 0, 0] for tensor in inputs]
        return {"op": "tvm_op", "name": name, "attrs": {"func_name": function, **counts}, "inputs": given}

    nodes: list[dict[str, Any]] = [
        {"op": "null", "name": name, "inputs": []} for name in ("x", "p0", "p1", "p2", "p3")
    ]
    nodes += [call("reshape", "__nop", 0), call("first", FIRST, 5, 1, 2), call("second", SECOND, 6, 3, 4)]
    shapes = [[1, 1, SAMPLES], [SAMPLES, HIDDEN], [HIDDEN], [HIDDEN, CLASSES], [CLASSES], [1, SAMPLES]]
    shapes += [[1, HIDDEN], [1, CLASSES]]
    return {
        "nodes": nodes,
        "arg_nodes": [0, 1, 2, 3, 4],
        "heads": [[7, 0, 0]],
        "node_row_ptr": list(range(9)),
        "attrs": {
            "dltype": ["list_str", ["float32"] * 8],
            "shape": ["list_shape", shapes],
            "storage_id": ["list_int", [0, 1, 2, 3, 4, 0, 5, 6]],
            "device_index": ["list_int", [1] * 8],
        },
    }


def write_graph(path: Path, network: Network, version: int) -> Path:
    """Write an archive for the executor "graph"."""
    arrays = dict(
        zip(("p0", "p1", "p2", "p3"), (network.w1, network.b1, network.w2, network.b2), strict=True)
    )
    name = "graph.json" if version == 5 else "default.graph"
    files = {
        "codegen/host/src/default_lib0.c": (_REGISTRY + ";").encode(),
        "codegen/host/src/default_lib1.c": (_HEAD + packed_functions()).encode(),
        f"executor-config/graph/{name}": json.dumps(graph()).encode(),
        "parameters/default.params": params(arrays),
        "src/default.relay": b"",
    }
    return _write(path, files, version, {"executors": ["graph"], "memory": {}})


_SPLIT = """\
#define ARGUMENTS void* args, int32_t* codes, int32_t count, void* result, int32_t* code, void* resource
#define DATA(i) ((float*)((DLTensor*)((TVMValue*)args)[i].v_handle)->data)
TVM_DLL int32_t tvmgen_default_split(ARGUMENTS) {
  for (int32_t i = 0; i < 16; ++i) DATA(1)[i] = DATA(0)[i % 4];
  for (int32_t i = 0; i < 4; ++i) DATA(2)[i] = (2.0f * DATA(0)[i]);
  return 0;
}
TVM_DLL int32_t tvmgen_default_join(ARGUMENTS) {
  for (int32_t i = 0; i < 4; ++i) DATA(2)[i] = (DATA(0)[i] - DATA(1)[(i + 12)]);
  return 0;
}
TVM_DLL int32_t tvmgen_default_last(ARGUMENTS) {
  for (int32_t i = 0; i < 4; ++i) DATA(1)[i] = ((2.0f * DATA(0)[i]) + 5.0f);
  return 0;
}
"""


def write_split(path: Path) -> Path:
    """2 * (2 * x - x) + 5, by a node with two outputs, of which the second is reshaped.

    The result lies where the first was.
    """

    def call(name: str, *inputs: tuple[int, int], outputs: int = 1) -> dict[str, Any]:
        counts = {"num_outputs": str(outputs), "num_inputs": str(len(inputs)), "flatten_data": "0"}
        attributes = {"func_name": f"tvmgen_default_{name}", **counts}
        return {
            "op": "tvm_op",
            "name": name,
            "attrs": attributes,
            "inputs": [[*tensor, 0] for tensor in inputs],
        }

    nodes: list[dict[str, Any]] = [
        {"op": "null", "name": "x", "inputs": []},
        call("split", (0, 0), outputs=2),
        call("view", (1, 1)),
        call("join", (2, 0), (1, 0)),
        call("last", (3, 0)),
    ]
    nodes[2]["attrs"]["func_name"] = "__nop"
    shown = {
        "nodes": nodes,
        "arg_nodes": [0],
        "heads": [[4, 0, 0]],
        "node_row_ptr": [0, 1, 3, 4, 5, 6],
        "attrs": {
            "dltype": ["list_str", ["float32"] * 6],
            "shape": ["list_shape", [[4], [16], [4], [2, 2], [4], [4]]],
            "storage_id": ["list_int", [0, 1, 2, 2, 1, 3]],
        },
    }
    files = {
        "codegen/host/src/default_lib1.c": (_HEAD + _SPLIT).encode(),
        "executor-config/graph/default.graph": json.dumps(shown).encode(),
    }
    return _write(path, files, 7, {"executors": ["graph"], "memory": {}})


def write_aot(
    path: Path,
    network: Network,
    version: int = 7,
    *,
    field: str = "x",
    system_lib: bool = False,
    pools: bool = False,
    devices: bool = False,
    packed: bool = False,
) -> Path:
    """Write an archive for the executor "aot" with its C interface: weights are in the code.

    field: the input's. system_lib: the functions are registered, too. pools: the caller gives the working
    memory, and a constant. devices: it also gives contexts of devices. packed: with the other interface.
    """
    arrays = {"w1": network.w1, "b1": network.b1, "w2": network.w2, "b2": network.b2}
    constants = "".join(
        f"static const float {name}[] = {{{', '.join(map(str, array.ravel().tolist()))}}};\n"
        for name, array in arrays.items()
    )

    def call(function: str, *names: str) -> str:
        values = ", ".join(f"{{.v_handle = &{name}}}" for name in names)
        called = f"{function}(v, t, 4, NULL, NULL, NULL)"
        return (
            f"{{ TVMValue v[4] = {{{values}}}; int32_t t[4] = {{7, 7, 7, 7}}; if ({called}) return -1; }}\n"
        )

    tensors = "".join(f"  DLTensor t{name} = {{.data = (void *){name}}};\n" for name in arrays)
    run = (
        "TVM_DLL int32_t tvmgen_default___tvm_main__(float* x_buffer_var, float* output_buffer_var"
        f"{', uint8_t* sram_var, uint8_t* flash_var' if pools else ''}) {{\n"
        "  float *x = x_buffer_var, *output = output_buffer_var;\n"
        f"  if ({'flash_var[1] != 0x2a' if pools else '0'}) return -1;\n"
        f"  float* sid = (float*)TVMBackendAllocWorkspace(1, 0, (uint64_t){4 * HIDDEN}, 0, 8);\n"
        f"  {'float* pooled = (float*)sram_var; pooled[0] = 0;' if pools else ''}\n"
        "  if (sid == NULL) return -1;\n"
        "  DLTensor tx = {.data = x}, ts = {.data = sid}, to = {.data = output};\n"
        f"{tensors}{call(FIRST, 'tx', 'tw1', 'tb1', 'ts')}{call(SECOND, 'ts', 'tw2', 'tb2', 'to')}"
        "  return TVMBackendFreeWorkspace(1, 0, sid);\n}\n"
    )
    if packed:
        run = run.replace(
            "float* x_buffer_var, float* output_buffer_var",
            "void* args, int32_t* codes, int32_t count, void* result, int32_t* result_code, void* resource",
        )
        for number, name in enumerate(("x_buffer_var", "output_buffer_var")):
            run = run.replace(name, f"(float*)((DLTensor*)((TVMValue*)args)[{number}].v_handle)[0].data")
        run = run.replace("= sid}", "= sid, .device = {.device_type = ((DLDeviceType)1)}}")
    more = "struct tvmgen_default_workspace_pools* workspace_pools," if pools else ""
    more += "struct tvmgen_default_devices* devices," if devices else ""
    taken = f"struct tvmgen_default_inputs* inputs,struct tvmgen_default_outputs* outputs,{more}"[:-1]
    given = ",workspace_pools->sram,workspace_pools->flash" if pools else ""
    entry = (
        f"{_REGISTRY if system_lib else ''}"
        '#include "tvm/runtime/c_runtime_api.h"\n#ifdef __cplusplus\nextern "C" {\n#endif\n'
        "#include <tvmgen_default.h>\n"
        f"TVM_DLL int32_t tvmgen_default___tvm_main__(void* {field},void* output0"
        f"{',uint8_t* sram_var,uint8_t* flash_var' if pools else ''});\n"
        f"int32_t tvmgen_default_run({taken}) {{"
        f"return tvmgen_default___tvm_main__(inputs->{field},outputs->output{given});\n}}\n"
        "#ifdef __cplusplus\n}\n#endif\n;"
    )
    if packed:
        taken = ", ".join(f"{kind} {name}" for kind, name in _PACKED_PARAMETERS)
        entry = (
            '#include "tvm/runtime/c_runtime_api.h"\n'
            f"TVM_DLL int32_t tvmgen_default___tvm_main__({taken});\n\n"
            f"int32_t tvmgen_default_run({taken}) {{\nTVMValue tensors[2];\n"
            "tensors[0] = ((TVMValue*)args)[0];\ntensors[1] = ((TVMValue*)args)[1];\n"
            f"return tvmgen_default___tvm_main__((void*)tensors, {', '.join(_PACKED_NAMES[1:])});\n}}\n;"
        )
    header = (
        "#ifndef TVMGEN_DEFAULT_H_\n#define TVMGEN_DEFAULT_H_\n#include <stdint.h>\n"
        f"struct tvmgen_default_inputs {{\n  void* {field};\n}};\n\n"
        "struct tvmgen_default_outputs {\n  void* output;\n};\n\n"
        "struct tvmgen_default_workspace_pools {\n  void* sram;\n  void* flash;\n};\n\n"
        "int32_t tvmgen_default_run(\n  " + taken.replace(",", ",\n  ") + "\n);\n"
        f"#define TVMGEN_DEFAULT_SRAM_WORKSPACE_POOL_SIZE {4 * HIDDEN}\n"
        "#define TVMGEN_DEFAULT_FLASH_CONSTANT_POOL_SIZE 3\n"
        "#define TVMGEN_DEFAULT_FLASH_CONSTANT_POOL_DATA \\\n    0x01, 0x2a, 0x03, \\\n\n#endif\n"
    )
    files = {
        "codegen/host/include/tvmgen_default.h": header.encode(),
        "codegen/host/src/default_lib0.c": entry.encode(),
        "codegen/host/src/default_lib1.c": (_HEAD + constants + packed_functions() + run).encode(),
    }
    if packed:
        del files["codegen/host/include/tvmgen_default.h"]
        files["codegen/host/src/default_lib2.c"] = b"#include <tvm/runtime/metadata_types.h>\n"
    main = {
        "device": 1,
        "workspace_size_bytes": 8 * HIDDEN,
        "inputs": {field: {"size": 4 * SAMPLES, "dtype": "float32"}},
        "outputs": {"output": {"size": 4 * CLASSES, "dtype": "float32"}},
    }
    memory = {"functions": {"main": [main], "operator_functions": []}}
    return _write(path, files, version, {"executors": ["aot"], "memory": memory})


def _write(path: Path, files: dict[str, bytes], version: int, module: dict[str, Any]) -> Path:
    module = {"model_name": "default", "target": ["c"], "style": "full-model", **module}
    metadata = (
        {"version": version, "modules": {"default": module}}
        if version == 7
        else {"version": version, **module}
    )
    with tarfile.open(path, "w") as archive:
        for name, data in {"metadata.json": json.dumps(metadata).encode(), **files}.items():
            member = tarfile.TarInfo(f"./{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path
