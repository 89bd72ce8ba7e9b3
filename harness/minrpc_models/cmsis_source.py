# SPDX-License-Identifier: Apache-2.0
"""C code that calls CMSIS-NN's kernels, in the form of TVM's generated code; the library's files for it.

Signatures, layouts and the meaning of fields: Include/arm_nnfunctions.h and arm_nn_types.h of CMSIS-NN 7.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from minrpc.errors import ConfigurationError, MissingError
from minrpc.extension import ask_tool, scratch

from minrpc_models.cmsis_nn import Add, Bounds, Conv2D, Dense, Kernel, Pool, Softmax

_HEADER: Final = "arm_nnfunctions.h"
_OLDEST: Final = "take version 7.0 or later of https://github.com/ARM-software/CMSIS-NN"
_DEFINED: Final = re.compile(r"^(?:[a-z_][\w \*]*?\b)?(arm_\w+)\([^;{]*\{", re.M)
_NAMED: Final = re.compile(r"\barm_\w+")
_CALLED: Final = re.compile(r"\b(arm_\w+)\(")

_SUPPORT: Final = """
#include "arm_nnfunctions.h"

static void *cmsis_nn_data(void *args, int32_t number)
{
	return ((DLTensor *)((TVMFFIAny *)args)[number].v_ptr)->data;
}
"""


def include_directory(library: Path) -> Path:
    """The directory of CMSIS-NN's headers. Raises ConfigurationError if they are not there."""
    if not (library / "Include" / _HEADER).is_file():
        raise ConfigurationError(
            f"{library} is not CMSIS-NN: there is no Include/{_HEADER}",
            next_step="name the root of its source tree",
        )
    return library / "Include"


def source(kernels: Sequence[Kernel], library: Path) -> str:
    """A C function for each kernel, to be put behind TVM's code. Raises ConfigurationError."""
    if not kernels:
        return ""
    sizes = _scratch_sizes(kernels, library)
    text = "".join(_function(kernel, size) for kernel, size in zip(kernels, sizes, strict=True))
    if missing := sorted(set(_CALLED.findall(text)) - _places(_texts(library)).keys()):
        raise ConfigurationError(f"{library} has no {', '.join(missing)}", next_step=_OLDEST)
    return _SUPPORT + text


def files(text: str, library: Path) -> list[Path]:
    """The library's C files with the functions that `text` calls, and that these call."""
    texts = _texts(library)
    places = _places(texts)
    paths: set[Path] = set()
    wanted = {places[name] for name in _NAMED.findall(text) if name in places}
    while wanted:
        paths |= wanted
        named = {name for path in wanted for name in _NAMED.findall(texts[path])}
        wanted = {places[name] for name in named if name in places} - paths
    return sorted(paths)


def _texts(library: Path) -> dict[Path, str]:
    """The library's C files."""
    return {path: path.read_text(errors="replace") for path in sorted((library / "Source").rglob("*.c"))}


def _places(texts: Mapping[Path, str]) -> dict[str, Path]:
    """The file that defines each function."""
    return {name: path for path, code in texts.items() for name in _DEFINED.findall(code)}


def _function(kernel: Kernel, size: int) -> str:
    name = f"__tvm_ffi_{kernel.name}"
    taken = "(void* self_handle, void* args, int32_t num_args, void* result)"
    match kernel.what:
        case Conv2D() as what:
            body = _conv2d(what, size)
        case Dense() as what:
            body = _dense(what)
        case Pool() as what:
            body = _pool(what, size)
        case Softmax() as what:
            numbers = f"{what.rows}, {what.size}, {what.multiplier}, {what.shift}, {what.least}"
            body = f"\tarm_softmax_s8({_data(0)}, {numbers}, {_data(1)});\n\treturn 0;\n"
        case Add() as what:
            body = _add(what)
    return f"\nint32_t {name}{taken};\n\nint32_t {name}{taken} {{\n{body}}}\n"


def _data(number: int) -> str:
    """The elements of an argument."""
    return f"cmsis_nn_data(args, {number})"


def _activation(bounds: Bounds) -> str:
    return f".activation = {{{bounds.low}, {bounds.high}}}"


def _dims(name: str, n: int, h: int, w: int, c: int) -> str:
    return f"\tstatic const cmsis_nn_dims {name} = {{{n}, {h}, {w}, {c}}};\n"


def _conv2d_dims(what: Conv2D) -> str:
    """The parameters and the dimensions, as C variables."""
    kind, depth = ("dw_conv", f".ch_mult = {what.depth}, ") if what.depth else ("conv", "")
    tiles = ", ".join(
        f".{name} = {{{pair[1]}, {pair[0]}}}"
        for name, pair in (("stride", what.stride), ("padding", what.padding), ("dilation", what.dilation))
    )
    bounds = what.bounds
    outputs = what.output[3]
    height, width = what.kernel
    shape = (1, height, width, outputs) if what.depth else (outputs, height, width, what.input[3])
    return (
        f"\tstatic const cmsis_nn_{kind}_params parameters = {{.input_offset = {-what.input_zero}, "
        f".output_offset = {bounds.zero}, {depth}{tiles}, {_activation(bounds)}}};\n"
        + _dims("input", *what.input)
        + _dims("filter", *shape)
        + _dims("bias", 1, 1, 1, outputs)
        + _dims("output", *what.output)
    )


def _size_call(what: Conv2D | Pool, core: str = "") -> str:
    """The call that gives the size of the scratch memory. core: "_dsp", "_mve"; "": the compiler's."""
    if isinstance(what, Pool):
        return f"arm_avgpool_s8_get_buffer_size{core}({what.output[2]}, {what.input[3]})"
    kind = "depthwise_conv" if what.depth else "convolve"
    return f"arm_{kind}_wrapper_s8_get_buffer_size{core}(&parameters, &input, &filter, &output)"


def _with_scratch(call: str, what: Conv2D | Pool, size: int) -> str:
    """Calls the kernel with `context`: its scratch memory, from the workspace."""
    begin = f"""\tconst int32_t needed = {_size_call(what)};
	cmsis_nn_context context = {{NULL, needed}};

	if (needed > {size}) {{
		return -1;
	}}
"""
    if not size:
        return f"{begin}\treturn {call} == ARM_CMSIS_NN_SUCCESS ? 0 : -1;\n"
    return f"""\tarm_cmsis_nn_status status;
{begin}	context.buf = TVMBackendAllocWorkspace(1, 0, (uint64_t){size}, 0, 8);
	if (context.buf == NULL) {{
		return -1;
	}}
	status = {call};
	if (TVMBackendFreeWorkspace(1, 0, context.buf) != 0) {{
		return -1;
	}}
	return status == ARM_CMSIS_NN_SUCCESS ? 0 : -1;
"""


def _conv2d(what: Conv2D, size: int) -> str:
    quantization = "cmsis_nn_per_channel_quant_params quantization"
    kernel = f"arm_{'depthwise_conv' if what.depth else 'convolve'}_wrapper_s8"
    call = (
        f"{kernel}(&context, &parameters, &quantization, &input, {_data(0)}, &filter, {_data(1)}, "
        f"&bias, {_data(2)}, &output, {_data(5)})"
    )
    return (
        _conv2d_dims(what)
        + f"\tconst {quantization} = {{{_data(3)}, {_data(4)}}};\n"
        + _with_scratch(call, what, size)
    )


def _dense(what: Dense) -> str:
    bounds = what.bounds
    return (
        f"\tstatic const cmsis_nn_fc_params parameters = {{.input_offset = {-what.input_zero}, "
        f".filter_offset = 0, .output_offset = {bounds.zero}, {_activation(bounds)}}};\n"
        + _dims("input", what.rows, 1, 1, what.size)
        + _dims("filter", what.size, 1, 1, what.outputs)
        + _dims("bias", 1, 1, 1, what.outputs)
        + _dims("output", what.rows, 1, 1, what.outputs)
        + f"""	const cmsis_nn_quant_params quantization = {{
		{_data(3)}, {_data(4)}, {int(what.per_channel)}
	}};
	/* Cores with vectors take each output's sum of weights; others have no use for it. */
	const cmsis_nn_context context = {{{_data(5)}, {4 * what.outputs}}};

	return arm_fully_connected_wrapper_s8(&context, &parameters, &quantization, &input, {_data(0)},
		&filter, {_data(1)}, &bias, {_data(2)}, &output, {_data(6)}) == ARM_CMSIS_NN_SUCCESS ? 0 : -1;
"""
    )


def _pool(what: Pool, size: int) -> str:
    bounds = what.bounds
    tiles = f".stride = {{{what.stride[1]}, {what.stride[0]}}}, "
    tiles += f".padding = {{{what.padding[1]}, {what.padding[0]}}}"
    head = (
        f"\tstatic const cmsis_nn_pool_params parameters = {{{tiles}, {_activation(bounds)}}};\n"
        + _dims("input", *what.input)
        + _dims("filter", 1, *what.kernel, 1)
        + _dims("output", *what.output)
    )
    kernel = f"arm_{'avgpool' if what.mean else 'max_pool'}_s8"
    call = f"{kernel}(&context, &parameters, &input, {_data(0)}, &filter, &output, {_data(1)})"
    if what.mean:
        return head + _with_scratch(call, what, size)
    context = "\tconst cmsis_nn_context context = {NULL, 0};\n\n"
    return f"{head}{context}\treturn {call} == ARM_CMSIS_NN_SUCCESS ? 0 : -1;\n"


def _add(what: Add) -> str:
    bounds = what.bounds
    given = ", ".join(f"{-zero}, {multiplier}, {shift}" for zero, multiplier, shift in what.inputs)
    return (
        f"\treturn arm_elementwise_add_s8({_data(0)}, {_data(1)}, {given}, "
        f"{what.left_shift}, {_data(2)}, {bounds.zero}, {what.output[0]}, {what.output[1]}, "
        f"{bounds.low}, {bounds.high}, {what.size}) == ARM_CMSIS_NN_SUCCESS ? 0 : -1;\n"
    )


def _scratch_sizes(kernels: Sequence[Kernel], library: Path) -> list[int]:
    """Bytes of scratch memory of each kernel, the most of all cores: by the library's own functions.

    Raises ConfigurationError if the library does not compile.
    """
    lines = []
    for kernel in kernels:
        what = kernel.what
        head = _conv2d_dims(what) if isinstance(what, Conv2D) else ""
        calls = ""
        if isinstance(what, Conv2D) or (isinstance(what, Pool) and what.mean):
            calls = "".join(f"\tprint_max({_size_call(what, core)});\n" for core in ("", "_dsp", "_mve"))
        lines.append(f'\t{{\n\tmost = 0;\n{head}{calls}\tprintf("%d\\n", most);\n\t}}\n')
    text = (
        f'#include "{_HEADER}"\n#include <stdio.h>\n\nstatic int most;\n\n'
        "static void print_max(int size)\n{\n\tmost = size > most ? size : most;\n}\n\n"
        f"int main(void)\n{{\n{''.join(lines)}\treturn 0;\n}}\n"
    )
    with scratch() as directory:
        (directory / "sizes.c").write_text(text)
        program = str(directory / "sizes")
        needed = map(str, files(text, library))
        command = ["cc", "-w", f"-I{include_directory(library)}", str(directory / "sizes.c"), *needed, "-lm"]
        return [int(line) for line in _output([*command, "-o", program], [program]).splitlines()]


def _output(*commands: Sequence[str]) -> str:
    """The last command's output. Raises ConfigurationError if one of them fails."""
    output = ""
    for command in commands:
        try:
            ran = ask_tool(command)
        except MissingError as error:
            raise ConfigurationError(error.message) from error
        if ran.returncode:
            raise ConfigurationError(
                "CMSIS-NN's functions for sizes do not compile on this machine",
                details=ran.stderr.splitlines()[:4],
                next_step=_OLDEST,
            )
        output = ran.stdout
    return output
