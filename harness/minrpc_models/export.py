# SPDX-License-Identifier: Apache-2.0
"""Generates a C library from a plan: no malloc, planned memory, constant weights, TVM's struct interface.

    #include "tvmgen_NAME.h"

    struct tvmgen_NAME_inputs inputs = {.x = samples};
    struct tvmgen_NAME_outputs outputs = {.output0 = scores};
    int32_t status = tvmgen_NAME_run(&inputs, &outputs);

`tvmgen_NAME_run_in` takes the working memory from its caller; `tvmgen_NAME_run` uses a static block of the
library, which `TVMGEN_NAME_NO_STATIC_WORKSPACE` omits. Each operator can be called, and so timed, by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
from minrpc.errors import ConfigurationError
from minrpc.tvm import HEADERS, uses_float16

from minrpc_models.c_names import different
from minrpc_models.cmsis_source import files as kernel_files
from minrpc_models.plan import ALIGNMENT, ModelPlan, Tensor, aligned

SUPPORT: Final = (HEADERS, Path(__file__).with_name("c"))
"""Headers that generated code includes."""

_CONTEXT: Final = "#define TVMGEN_STACK ((struct tvmgen_stack *){context})\n"
_STATIC_CONTEXT: Final = """/* This code has no argument for its state. */
static struct tvmgen_stack *tvmgen_current_stack;
#define TVMGEN_STACK tvmgen_current_stack
"""
_EXAMPLE_CMAKE: Final = """# Generated. cmake -S example -B build && cmake --build build
cmake_minimum_required(VERSION 3.20)
project(example C)

add_subdirectory(.. {prefix})
add_executable(example main.c)
target_link_libraries(example PRIVATE {prefix})
"""

_EXPORTED: Final = re.compile(r"\A(?:/\*\n.*\n \*\n \* |# )Generated\b|\Aname: tvmgen_")
"""The beginning of an export's files."""

_LINE_BYTES: Final = 16
_TEXT_BYTES: Final = 64
_LICENCE: Final = """/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Generated: change the model, not this file.
 */
"""
# Without the checks of shapes, TVM's code has unused variables; it relies on C's conversions of numbers.
_QUIET: Final = "".join(
    f'#pragma GCC diagnostic ignored "-W{name}"\n'
    for name in ("conversion", "sign-conversion", "unused-parameter", "unused-variable")
)
# The arrays have no room for a string literal's final zero, on purpose.
_QUIET_TEXTS: Final = """#pragma GCC diagnostic ignored "-Woverlength-strings"
#if defined(__GNUC__) && __GNUC__ >= 15
#pragma GCC diagnostic ignored "-Wunterminated-string-initialization"
#endif
"""


def sources(plan: ModelPlan, *, quick: bool = False) -> dict[str, str]:
    """The library's own files by path: a header and C files; `SUPPORT` holds the headers beside them.

    src/ has the library, example/ a program that calls it, rpc/ the code that makes it a function of this
    project's firmware. quick: see `weights`.
    """
    prefix = f"tvmgen_{plan.name}"
    return {
        f"include/{prefix}.h": header_source(plan),
        f"src/{prefix}.c": example_source(plan),
        f"src/{prefix}_run.c": runs(plan),
        f"src/{prefix}_operators.c": operators(plan),
        f"src/{prefix}_weights.c": weights(plan, quick=quick),
        f"rpc/{prefix}_rpc.c": rpc(plan),
        "example/main.c": example(plan),
        "example/CMakeLists.txt": _EXAMPLE_CMAKE.format(prefix=prefix),
        "CMakeLists.txt": cmake(plan),
        "zephyr/module.yml": f"name: {prefix}\nbuild:\n  cmake: .\n",
    }


def write(plan: ModelPlan, directory: Path, *, quick: bool = False) -> list[Path]:
    """Write the library into `directory`; returns the files. After an error no file is changed.

    Files of an earlier export are replaced. quick: see `weights`.

    Raises OSError, and ConfigurationError if a file that no export wrote is in the place of one.
    """
    texts = sources(plan, quick=quick)
    for name in texts:
        _check_replaceable(directory, name)
    # Beside the C files, which include them in quotes: so they can't shadow a program's own headers.
    for root in SUPPORT:
        for path in sorted(root.rglob("*.h")):
            texts[str("src" / path.relative_to(root))] = path.read_text()
    directory.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".export-", dir=directory) as made:
        for name, text in texts.items():
            for root in (directory, Path(made)):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(made) / name).write_text(text)
        for name in texts:
            (Path(made) / name).replace(directory / name)
    return [directory / name for name in texts]


def _check_replaceable(directory: Path, name: str) -> None:
    """Raise ConfigurationError for a file that no export wrote."""
    path = directory / name
    if path.exists() and not (path.is_file() and _EXPORTED.search(path.read_text(errors="replace"))):
        raise ConfigurationError(
            f"{path} is there, and no export wrote it", next_step="name another directory"
        )


def header_source(plan: ModelPlan) -> str:
    """The header: macros of sizes, structs, functions."""
    name = plan.name
    upper = name.upper()
    sizes = [
        (f"{macro}_SIZE", f"{tensor.nbytes} /* {where} */") for macro, where, tensor in _size_macros(plan)
    ]
    sizes += [
        (f"TVMGEN_{upper}_WORKSPACE_SIZE", str(plan.workspace_bytes)),
        (f"TVMGEN_{upper}_WORKSPACE_ALIGNMENT", str(ALIGNMENT)),
        (f"TVMGEN_{upper}_CONSTANT_SIZE", f"{plan.constant_bytes} /* all weights */"),
        (f"TVMGEN_{upper}_OPERATORS", f"{len(plan.operators)} /* their number */"),
    ]
    defines = "\n".join(f"#define {key} {value}" for key, value in sizes)
    inputs = "\n".join(
        f"\tconst void *{field}; /* {_about(plan, 'inputs', field, tensor)} */"
        for field, tensor in plan.inputs
    )
    outputs = "\n".join(
        f"\tvoid *{field}; /* {_about(plan, 'outputs', field, tensor)} */" for field, tensor in plan.outputs
    )
    return f"""{_about_model(plan)}#ifndef TVMGEN_{upper}_H_
#define TVMGEN_{upper}_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* The hash of the model's file, or of the code and the weights if the model was in no file. */
#define TVMGEN_{upper}_MODEL_SHA256 "{plan.digest}"
#define TVMGEN_{upper}_TVM_VERSION "{plan.origin.tvm}"

/* Bytes. */
{defines}

struct tvmgen_{name}_inputs {{
{inputs}
}};

struct tvmgen_{name}_outputs {{
{outputs}
}};

#ifndef TVMGEN_{upper}_NO_STATIC_WORKSPACE
/* Runs the model in the library's own memory, for one thread. Returns 0, or another number when an operator
 * failed. */
int32_t tvmgen_{name}_run(const struct tvmgen_{name}_inputs *inputs,
	const struct tvmgen_{name}_outputs *outputs);
#endif

/* Does the same, in TVMGEN_{upper}_WORKSPACE_SIZE bytes of the caller's, aligned to {ALIGNMENT}.
 * {_threads(plan)}
 */
int32_t tvmgen_{name}_run_in(const struct tvmgen_{name}_inputs *inputs,
	const struct tvmgen_{name}_outputs *outputs, void *workspace);

/* Runs one operator, by its number; the operators before it must have run in the same workspace. */
int32_t tvmgen_{name}_operator(const struct tvmgen_{name}_inputs *inputs,
	const struct tvmgen_{name}_outputs *outputs, void *workspace, int32_t number);

#ifdef __cplusplus
}}
#endif

#endif /* TVMGEN_{upper}_H_ */
"""


def _threads(plan: ModelPlan) -> str:
    if plan.context:
        return "Several runs can go on at a time, each in a workspace and with outputs of its own."
    return "One run at a time: the archive's code keeps its state in static variables."


def _about_model(plan: ModelPlan) -> str:
    source = _comment(plan.origin.file)
    made = "".join(
        [
            f", by TVM {plan.origin.tvm}" if plan.origin.tvm else "",
            f", from {source}" if source else "",
        ]
    )
    return f"""/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Generated{made}: change the model, not this file. The licence is the code's; the weights have the model's.
 */
"""


def _size_macros(plan: ModelPlan) -> list[tuple[str, str, Tensor]]:
    """For each input and output its size macro's name without _SIZE, its member, and its tensor."""
    upper = f"TVMGEN_{plan.name.upper()}"
    taken = [f"{upper}_WORKSPACE", f"{upper}_CONSTANT"]
    macros = []
    for kind, tensors in (("inputs", plan.inputs), ("outputs", plan.outputs)):
        for field, tensor in tensors:
            taken.append(different(f"{upper}_{field.upper()}", taken))
            macros.append((taken[-1], f"{kind}.{field}", tensor))
    return macros


def _about(plan: ModelPlan, kind: str, field: str, tensor: Tensor) -> str:
    """Text for a comment: the type, and the model's name if it differs."""
    name = plan.called.get(f"{kind}.{field}")
    about = _type_of(tensor) if name is None else f'{_type_of(tensor)}, the model\'s "{_comment(name)}"'
    if kind == "inputs" and field in plan.states:
        output, first = plan.states[field]
        about += f": {first:g} in each element, then outputs.{output} of the run before"
    return about


def _comment(text: str) -> str:
    """`text` without characters that end a comment, begin another, or continue the line."""
    return re.sub(r"[^ -~]|[*?\\]", ".", text)


def example_source(plan: ModelPlan) -> str:
    """The operators, and the function that runs an operator by its number."""
    name = plan.name
    functions = sorted({operator.function for operator in plan.operators})
    declared = "\n".join(
        f"int32_t {_own(plan, function)}(void *self, void *args, int32_t count, void *result);"
        for function in functions
    )
    weight_names = "\n".join(
        f"extern const uint8_t tvmgen_{name}_weight{number}[];" for number in range(len(plan.constants))
    )
    cases = "\n".join(
        f"\tcase {number}:\n\t\treturn operator{number}(inputs, outputs, workspace, &stack);"
        for number in range(len(plan.operators))
    )
    scratch = "\n".join(
        f"\t\t{{{offset}, {aligned(operator.workspace)}}},"
        for offset, operator in zip(plan.scratch_offsets, plan.operators, strict=True)
    )
    bodies = "\n".join(_operator(plan, number) for number in range(len(plan.operators)))
    return f"""{_LICENCE}#include <stddef.h>
#include <stdint.h>

#include "tvm/ffi/c_api.h"
#include "tvmgen_{name}.h"
#include "tvmgen_stack.h"

{declared}

{weight_names}

static DLTensor tensor(void *data, int32_t ndim, const int64_t *shape, uint8_t code, uint8_t bits)
{{
	DLTensor made = {{0}};

	made.data = data;
	made.device.device_type = 1;
	made.ndim = ndim;
	made.dtype.code = code;
	made.dtype.bits = bits;
	made.dtype.lanes = 1;
	made.shape = (int64_t *)(uintptr_t)shape;
	return made;
}}

static TVMFFIAny argument(DLTensor *pointed)
{{
	TVMFFIAny made = {{0}};

	made.type_index = kTVMFFIDLTensorPtr;
	made.v_ptr = pointed;
	return made;
}}

{bodies}
int32_t tvmgen_{name}_operator(const struct tvmgen_{name}_inputs *inputs,
	const struct tvmgen_{name}_outputs *outputs, void *workspace, int32_t number)
{{
	/* Offset and size of each operator's own memory in the workspace. */
	static const uint32_t scratch[][2] = {{
{scratch}
	}};
	struct tvmgen_stack stack;

	if (number < 0 || number >= TVMGEN_{name.upper()}_OPERATORS) {{
		return -1;
	}}
	stack.top = (uint8_t *)workspace + scratch[number][0];
	stack.room = scratch[number][1];
	switch (number) {{
{cases}
	default:
		return -1;
	}}
}}
"""


def runs(plan: ModelPlan) -> str:
    """The function that runs all operators in order.

    It is not in the operators' file: a compiler that sees both may inline an operator into the run, and the
    operator's time alone would then differ from its share of the run.
    """
    name = plan.name
    return f"""{_LICENCE}#include <stdint.h>

#include "tvmgen_{name}.h"

int32_t tvmgen_{name}_run_in(const struct tvmgen_{name}_inputs *inputs,
	const struct tvmgen_{name}_outputs *outputs, void *workspace)
{{
	for (int32_t number = 0; number < TVMGEN_{name.upper()}_OPERATORS; number++) {{
		int32_t status = tvmgen_{name}_operator(inputs, outputs, workspace, number);

		if (status != 0) {{
			return status;
		}}
	}}
	return 0;
}}

#ifndef TVMGEN_{name.upper()}_NO_STATIC_WORKSPACE
static uint8_t static_workspace[{max(plan.workspace_bytes, 1)}] __attribute__((aligned({ALIGNMENT})));

int32_t tvmgen_{name}_run(const struct tvmgen_{name}_inputs *inputs,
	const struct tvmgen_{name}_outputs *outputs)
{{
	return tvmgen_{name}_run_in(inputs, outputs, static_workspace);
}}
#endif
"""


def nothing(plan: ModelPlan) -> str:
    """Empty functions with the arguments of a run and of an operator, to measure the cost of a call."""
    name = plan.name
    taken = f"""const struct tvmgen_{name}_inputs *inputs,
	const struct tvmgen_{name}_outputs *outputs, void *workspace"""
    unused = "\t(void)inputs;\n\t(void)outputs;\n\t(void)workspace;"
    return f"""#include <stdint.h>

#include "tvmgen_{name}.h"

int32_t tvmgen_{name}_no_run({taken});
int32_t tvmgen_{name}_no_operator({taken}, int32_t number);

int32_t tvmgen_{name}_no_run({taken})
{{
{unused}
	return 0;
}}

int32_t tvmgen_{name}_no_operator({taken}, int32_t number)
{{
{unused}
	(void)number;
	return 0;
}}
"""


def example(plan: ModelPlan) -> str:
    """A program that runs the model once, with inputs of zeros, and prints each output's bytes."""
    prefix = f"TVMGEN_{plan.name.upper()}"
    macros = {where: f"{macro}_SIZE" for macro, where, _ in _size_macros(plan)}
    blocks = {where: where.replace(".", "_") for where in macros}
    aligned_to = f"__attribute__((aligned({prefix}_WORKSPACE_ALIGNMENT)))"
    static = "\n".join(
        f"static uint8_t {block}[{macros[where]} > 0 ? {macros[where]} : 1] {aligned_to};"
        for where, block in blocks.items()
    )

    def fields(kind: str) -> str:
        return "\n".join(
            f"\t\t.{where.removeprefix(f'{kind}.')} = {block},"
            for where, block in blocks.items()
            if where.startswith(f"{kind}.")
        )

    printed = "\n".join(
        f'\tprint("{where.removeprefix("outputs.")}", {block}, {macros[where]});'
        for where, block in blocks.items()
        if where.startswith("outputs.")
    )
    return f"""{_LICENCE}#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tvmgen_{plan.name}.h"

{static}
static uint8_t workspace[{prefix}_WORKSPACE_SIZE > 0 ? {prefix}_WORKSPACE_SIZE : 1] {aligned_to};

static void print(const char *name, const uint8_t *bytes, size_t size)
{{
	printf("%s:", name);
	for (size_t i = 0; i < size; i++) {{
		printf(" %02x", (unsigned int)bytes[i]);
	}}
	printf("\\n");
}}

int main(void)
{{
	const struct tvmgen_{plan.name}_inputs inputs = {{
{fields("inputs")}
	}};
	const struct tvmgen_{plan.name}_outputs outputs = {{
{fields("outputs")}
	}};
	int32_t status = tvmgen_{plan.name}_run_in(&inputs, &outputs, workspace);

	if (status != 0) {{
		printf("an operator failed with %d\\n", (int)status);
		return 1;
	}}
{printed}
	return 0;
}}
"""


def _operator(plan: ModelPlan, number: int) -> str:
    operator = plan.operators[number]
    shapes, tensors, arguments = [], [], []
    for position, tensor in enumerate(operator.tensors):
        extents = ", ".join(map(str, tensor.shape)) or "1"
        shapes.append(f"\tstatic const int64_t shape{position}[] = {{{extents}}};")
        tensors.append(
            f"\tDLTensor t{position} = tensor({_address(plan, tensor)}, {len(tensor.shape)}, "
            f"shape{position}, {tensor.dtype.code}, {tensor.dtype.bits});"
        )
        arguments.append(f"\targs[{position}] = argument(&t{position});")
    declarations = "\n".join([*shapes, *tensors])
    assignments = "\n".join(arguments)
    return f"""/* {operator.function} */
static int32_t operator{number}(const struct tvmgen_{plan.name}_inputs *inputs,
	const struct tvmgen_{plan.name}_outputs *outputs, uint8_t *workspace, struct tvmgen_stack *stack)
{{
{declarations}
	TVMFFIAny args[{len(arguments)}];
	TVMFFIAny result = {{0}};

{assignments}
	(void)inputs;
	(void)outputs;
	(void)workspace;
	return {_own(plan, operator.function)}(stack, args, {len(operator.tensors)}, &result);
}}
"""


def _address(plan: ModelPlan, tensor: Tensor) -> str:
    match tensor.place:
        case "input":
            base = f"(void *)(uintptr_t)inputs->{plan.inputs[tensor.index][0]}"
        case "output":
            base = f"outputs->{plan.outputs[tensor.index][0]}"
        case "constant":
            base = f"(void *)(uintptr_t)tvmgen_{plan.name}_weight{tensor.index}"
        case "storage":
            offset = plan.storage_offsets[tensor.index]
            return f"workspace + {offset}" if offset else "workspace"
    return base


def operators(plan: ModelPlan) -> str:
    """TVM's code. Each of its names contains the model's, so that two models link into one program."""
    renamed = f'#include "tvmgen_stack.h"\n\n{_CONTEXT if plan.context else _STATIC_CONTEXT}'.format(
        context=plan.context
    )
    # An archive's code has such names already, with the archive's name for the model: maybe the same.
    ours = {name: f"tvmgen_{plan.name}_{name}" for name in ("run", "run_in", "operator")}
    renamed += "".join(
        f"#define {ours[tensor]} {_own(plan, tensor)}\n"
        for tensor in ours
        if re.search(rf"\b{ours[tensor]}\b", plan.source)
    )
    return _LICENCE + _QUIET + renamed + plan.source.replace("__tvm_ffi_", _own(plan, ""))


def _own(plan: ModelPlan, name: str) -> str:
    """TVM's `name` in this model's library, distinct from the library's own, such as "run"."""
    return f"tvmgen_{plan.name}_op_{name}"


def weights(plan: ModelPlan, *, quick: bool = False) -> str:
    """The constants as bytes in this machine's order: little-endian, as on every supported core.

    quick: as string literals: compilers read them 25 times as fast; people and strict C90 compilers can't.
    """
    parts = [
        f"{_LICENCE}#include <stdint.h>\n",
        "/* A section of its own: -DTVMGEN_WEIGHTS='__attribute__((section(\".rodata.weights\")))'. */",
        "#ifndef TVMGEN_WEIGHTS\n#define TVMGEN_WEIGHTS\n#endif\n",
    ]
    if quick:
        parts.append(_QUIET_TEXTS)
    for number, constant in enumerate(plan.constants):
        name = f"tvmgen_{plan.name}_weight{number}"
        kind = f"{constant.dtype}[{', '.join(map(str, constant.shape))}]"
        parts.append(f"/* {kind} */\nextern const uint8_t {name}[{constant.nbytes}];")
        declared = f"TVMGEN_WEIGHTS __attribute__((aligned({ALIGNMENT}))) const uint8_t {name}"
        data = np.ascontiguousarray(constant, constant.dtype.newbyteorder("<")).tobytes()
        if quick and data:
            parts.append(f"{declared}[{len(data)}] =\n{_text_lines(data)};\n")
        else:
            parts += [f"{declared}[] = {{", *_byte_lines(data), "};\n"]
    return "\n".join(parts)


def _text_lines(data: bytes) -> str:
    """String literals with an octal escape for each byte, converted all at once."""
    escapes = np.frombuffer("".join(f"\\{byte:03o}" for byte in range(256)).encode(), np.uint8).reshape(
        256, 4
    )
    end = len(data) // _TEXT_BYTES * _TEXT_BYTES
    rows = escapes[np.frombuffer(data[:end], np.uint8)].reshape(-1, 4 * _TEXT_BYTES)
    quotes = np.full((len(rows), 1), ord('"'), np.uint8)
    breaks = np.full((len(rows), 1), ord("\n"), np.uint8)
    whole = np.hstack([quotes, rows, quotes, breaks]).tobytes().decode()
    rest = "".join(f"\\{byte:03o}" for byte in data[end:])
    return f'{whole}"{rest}"'


def _byte_lines(data: bytes) -> Iterator[str]:
    for begin in range(0, len(data), _LINE_BYTES):
        yield "\t" + ", ".join(map(str, data[begin : begin + _LINE_BYTES])) + ","


def rpc(plan: ModelPlan) -> str:
    """The model as a packed function of its name, which takes inputs and then outputs as arrays.

    Link it into a firmware together with the library, as `sources` of minrpc.toml.
    """
    name = plan.name
    fields = [
        *(("inputs", field) for field, _ in plan.inputs),
        *(("outputs", field) for field, _ in plan.outputs),
    ]
    sizes = [tensor.nbytes for _, tensor in (*plan.inputs, *plan.outputs)]
    taken = "\n".join(
        f"\tif (!holds(args[{number}].v_handle, {size})) {{\n"
        f'\t\tTVMAPISetLastError("{name}: {field} is an array of {size} bytes");\n\t\treturn -1;\n\t}}\n'
        f"\t{kind}.{field} = ((const DLTensor *)args[{number}].v_handle)->data;"
        for number, ((kind, field), size) in enumerate(zip(fields, sizes, strict=True))
    )
    return f"""{_LICENCE}#include <dlpack/dlpack.h>
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/crt/module.h>

#include "tvmgen_{name}.h"

static int holds(const DLTensor *tensor, int64_t size)
{{
	int64_t bytes = (tensor->dtype.bits + 7) / 8 * tensor->dtype.lanes;

	for (int i = 0; i < tensor->ndim; i++) {{
		bytes *= tensor->shape[i];
	}}
	return bytes == size && tensor->byte_offset == 0;
}}

static int run(TVMValue *args, int *type_codes, int count, TVMValue *result, int *result_code, void *resource)
{{
	struct tvmgen_{name}_inputs inputs;
	struct tvmgen_{name}_outputs outputs;

	(void)result;
	(void)result_code;
	(void)resource;
	if (count != {len(fields)}) {{
		TVMAPISetLastError("{name}: expected {len(fields)} arrays, inputs first");
		return -1;
	}}
	for (int i = 0; i < count; i++) {{
		if (type_codes[i] != kTVMDLTensorHandle) {{
			TVMAPISetLastError("{name}: expected {len(fields)} arrays, inputs first");
			return -1;
		}}
	}}
{taken}
	if (tvmgen_{name}_run(&inputs, &outputs) != 0) {{
		TVMAPISetLastError("{name}: an operator failed");
		return -1;
	}}
	return 0;
}}

{_registry(name, "run")}"""


def weights_in_image(plan: ModelPlan) -> str:
    """The constants for a firmware's image; a function that returns a constant's address keeps all."""
    count = len(plan.constants)
    names = ", ".join(f"tvmgen_{plan.name}_weight{number}" for number in range(count))
    return f"""{weights(plan, quick=True)}
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/crt/module.h>

static const uint8_t *const kept[] = {{{names}}};

static int kept_weight(TVMValue *args, int *type_codes, int count, TVMValue *result, int *result_code,
	void *resource)
{{
	(void)resource;
	if (count != 1 || type_codes[0] != kTVMArgInt || args[0].v_int64 < 0 || args[0].v_int64 >= {count}) {{
		TVMAPISetLastError("expected the number of a weight");
		return -1;
	}}
	result->v_handle = (void *)(uintptr_t)kept[args[0].v_int64];
	*result_code = kTVMOpaqueHandle;
	return 0;
}}

{_registry(f"tvmgen_{plan.name}_weight", "kept_weight")}"""


def _registry(name: str, function: str) -> str:
    """Registers a function in a firmware's system library, in the form of TVM's generated code."""
    return f"""static const TVMBackendPackedCFunc functions[] = {{{function}}};
static const TVMFuncRegistry registry = {{"\\001\\000{name}\\0", functions}};
static const TVMModule module = {{&registry}};

const TVMModule *TVMSystemLibEntryPoint(void);

const TVMModule *TVMSystemLibEntryPoint(void)
{{
	return &module;
}}
"""


_FLOAT16: Final = """
# GCC knows float16 on 32-bit Arm once it is told its format.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND
   (CONFIG_ARM OR CMAKE_SYSTEM_PROCESSOR MATCHES "^(arm|arm-none|armv[5-8].*|cortex-m.*)$"))
  set_source_files_properties(src/{prefix}_operators.c PROPERTIES COMPILE_OPTIONS -mfp16-format=ieee)
endif()
"""


_CMSIS_NN: Final = """
# CMSIS-NN computes its operators: -DCMSIS_NN=DIR, the root of its source tree; or a target cmsis-nn; or, in
# Zephyr, CONFIG_CMSIS_NN=y of the same version. Several such libraries of a program share one CMSIS-NN.
set(CMSIS_NN "" CACHE PATH "Root of CMSIS-NN's source tree")
set(kernels
{files}
)
if(CMSIS_NN)
  list(TRANSFORM kernels PREPEND "${{CMSIS_NN}}/")
  foreach(kernel IN LISTS kernels)
    if(NOT EXISTS "${{kernel}}")
      message(FATAL_ERROR "{prefix} was exported with another CMSIS-NN: there is no ${{kernel}}")
    endif()
  endforeach()
  if(NOT TARGET tvmgen_cmsis_nn)
    if(COMMAND zephyr_library_named)
      zephyr_library_named(tvmgen_cmsis_nn)
    else()
      add_library(tvmgen_cmsis_nn STATIC)
    endif()
    target_include_directories(tvmgen_cmsis_nn PUBLIC "${{CMSIS_NN}}/Include")
  endif()
  target_sources(tvmgen_cmsis_nn PRIVATE ${{kernels}})
  target_link_libraries({prefix} PUBLIC tvmgen_cmsis_nn)
elseif(TARGET cmsis-nn)
  target_link_libraries({prefix} PUBLIC cmsis-nn)
elseif(COMMAND zephyr_library_named AND CONFIG_CMSIS_NN)
  foreach(option {options})
    if(NOT CONFIG_CMSIS_NN_${{option}})
      message(FATAL_ERROR "{prefix} needs CONFIG_CMSIS_NN_${{option}}=y, or -DCMSIS_NN=DIR")
    endif()
  endforeach()
else()
  message(FATAL_ERROR "{prefix} needs CMSIS-NN: -DCMSIS_NN=DIR, the root of its source tree")
endif()
"""


def _cmsis_nn(plan: ModelPlan) -> str:
    """The CMake lines that add CMSIS-NN's files; "" for a plan without its kernels."""
    if plan.cmsis_nn is None:
        return ""
    files = [path.relative_to(plan.cmsis_nn).as_posix() for path in kernel_files(plan.source, plan.cmsis_nn)]
    # Zephyr has an option for each of the directories, such as Source/NNSupportFunctions.
    directories = dict.fromkeys(file.split("/")[1] for file in files)
    return _CMSIS_NN.format(
        prefix=f"tvmgen_{plan.name}",
        files="\n".join(f"  {file}" for file in files),
        options=" ".join(name.removesuffix("Functions").upper() for name in directories),
    )


def cmake(plan: ModelPlan) -> str:
    """CMakeLists.txt: a library for any CMake project, and for Zephyr if the directory is a Zephyr module."""
    prefix = f"tvmgen_{plan.name}"
    files = [f"src/{prefix}{suffix}.c" for suffix in ("", "_run", "_operators", "_weights")]
    listed = "\n".join(f"  {file}" for file in files)
    return f"""# Generated. In a CMake project: add_subdirectory(DIR), target_link_libraries(app {prefix}).
# In Zephyr: -DEXTRA_ZEPHYR_MODULES=DIR.
cmake_minimum_required(VERSION 3.20)

if(COMMAND zephyr_library_named)
  zephyr_library_named({prefix})
  zephyr_library_sources(
{listed}
  )
  zephyr_include_directories(include)
else()
  if(NOT CMAKE_PROJECT_NAME)
    project({prefix} C)
  endif()
  add_library({prefix} STATIC
{listed}
  )
  target_include_directories({prefix} PUBLIC include)
  target_link_libraries({prefix} PUBLIC m)
endif()
{_cmsis_nn(plan)}{_FLOAT16.format(prefix=prefix) if uses_float16(plan.source) else ""}"""


def _type_of(tensor: Tensor) -> str:
    return f"{tensor.dtype}[{', '.join(map(str, tensor.shape))}]"
