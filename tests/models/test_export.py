# SPDX-License-Identifier: Apache-2.0
"""A plan becomes a C library: compiled with warnings as errors, run on the host, two in one program."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from dataclasses import replace
from errno import ENOSPC
from pathlib import Path

import numpy as np
import pytest
from minrpc import ConfigurationError
from minrpc.wire.dtypes import DataType
from minrpc_models import export
from minrpc_models.c_names import field_names, renamed
from minrpc_models.plan import ModelPlan, Operator, Origin, Tensor, aligned

FLOAT = DataType(2, 32)

# Code in TVM's form: a context variable, packed arguments, workspace that is freed.
SOURCE = """
#include "tvm/ffi/extra/c_env_api.h"
#include "tvm/runtime/base.h"
#include "tvm/runtime/c_backend_api.h"
#include "tvm/ffi/c_api.h"
void* __tvm_ffi__library_ctx = NULL;
TVM_DLL int32_t __tvm_ffi_{prefix}double(void* self_handle, void* args, int32_t num_args, void* result) {{
  DLTensor *in = ((TVMFFIAny*)args)[0].v_ptr;
  DLTensor *out = ((TVMFFIAny*)args)[1].v_ptr;
  float *copy = (float*)TVMBackendAllocWorkspace(1, 0, (uint64_t)16ULL, 2, 32);
  if (copy == NULL) return -1;
  for (int32_t i = 0; i < in->shape[0]; ++i) copy[i] = 2.0f * ((float*)in->data)[i];
  for (int32_t i = 0; i < in->shape[0]; ++i) ((float*)out->data)[i] = copy[i];
  return TVMBackendFreeWorkspace(1, 0, copy);
}}
TVM_DLL int32_t __tvm_ffi_{prefix}add(void* self_handle, void* args, int32_t num_args, void* result) {{
  DLTensor *a = ((TVMFFIAny*)args)[0].v_ptr;
  DLTensor *b = ((TVMFFIAny*)args)[1].v_ptr;
  DLTensor *out = ((TVMFFIAny*)args)[2].v_ptr;
  int32_t unused;
  for (int32_t i = 0; i < out->shape[0]; ++i)
    ((float*)out->data)[i] = ((float*)a->data)[i] + ((float*)b->data)[i];
  return 0;
}}
"""


def make_plan(name: str, workspace: int = 16) -> ModelPlan:
    """output0 = 2 * x + weight"""
    x = Tensor(FLOAT, (4,), "input", 0)
    between = Tensor(FLOAT, (4,), "storage", 1)
    weight = Tensor(FLOAT, (4,), "constant", 0)
    output = Tensor(FLOAT, (4,), "output", 0)
    return ModelPlan(
        name,
        (("x", x),),
        (("output0", output),),
        (np.array([1, 2, 3, 4], np.float32),),
        (3, 16),
        (
            Operator(f"{name}_double", (x, between), workspace),
            Operator(f"{name}_add", (between, weight, output)),
        ),
        SOURCE.format(prefix=f"{name}_"),
    )


def compiled(directory: Path, *plans: ModelPlan, defines: str = "") -> ctypes.CDLL:
    for plan in plans:
        export.write(plan, directory)
    command = f"gcc -std=c11 -shared -fPIC -Wall -Wextra -Werror {defines} -Iinclude -o net.so"
    files = sorted(str(path) for path in (directory / "src").glob("*.c"))
    subprocess.run([*command.split(), *files, "-lm"], cwd=directory, check=True)
    return ctypes.CDLL(str(directory / "net.so"))


def run(library: ctypes.CDLL, name: str) -> list[float]:
    x, out = np.array([1, 2, 3, 4], np.float32), np.zeros(4, np.float32)
    inputs, outputs = (ctypes.c_void_p * 1)(x.ctypes.data), (ctypes.c_void_p * 1)(out.ctypes.data)
    assert getattr(library, f"tvmgen_{name}_run")(inputs, outputs) == 0
    return list(out)


def test_it_runs(tmp_path: Path) -> None:
    assert run(compiled(tmp_path, make_plan("net")), "net") == [3, 6, 9, 12]


def test_sizes(tmp_path: Path) -> None:
    plan = make_plan("net")
    assert plan.workspace_bytes == plan.least_workspace_bytes == 48
    assert sorted([*plan.storage_offsets, plan.scratch_offsets[0]]) == [0, 16, 32]
    header = export.header_source(plan)
    assert "#define TVMGEN_NET_X_SIZE 16 /* inputs.x */\n" in header
    assert "#define TVMGEN_NET_OUTPUT0_SIZE 16 /* outputs.output0 */\n" in header
    assert "#define TVMGEN_NET_WORKSPACE_SIZE 48\n" in header
    assert "#define TVMGEN_NET_CONSTANT_SIZE 16 /* all weights */\n" in header


def test_workspaces_of_operators_lie_one_over_the_other() -> None:
    """Operators run one at a time: the largest workspace counts."""
    plan = make_plan("net", workspace=48)
    second = replace(plan.operators[1], workspace=32)
    assert replace(plan, operators=(plan.operators[0], second)).workspace_bytes == 32 + 48


def test_memory_of_the_callers(tmp_path: Path) -> None:
    library = compiled(tmp_path, make_plan("net"), defines="-DTVMGEN_NET_NO_STATIC_WORKSPACE")
    assert not hasattr(library, "tvmgen_net_run")
    x, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    inputs, outputs = (ctypes.c_void_p * 1)(x.ctypes.data), (ctypes.c_void_p * 1)(out.ctypes.data)
    block = np.full(64 + 48 + 64, 0xA5, np.uint8)
    begin = 64 - block.ctypes.data % 16
    assert library.tvmgen_net_run_in(inputs, outputs, ctypes.c_void_p(block.ctypes.data + begin)) == 0
    assert out.tolist() == [3, 4, 5, 6]
    assert set(block[:begin]) == {0xA5}
    assert set(block[begin + 48 :]) == {0xA5}


THREADS = """
#include <pthread.h>
#include <stdio.h>
#include "tvmgen_net.h"

static void *thread(void *failed)
{
	static _Thread_local uint8_t workspace[TVMGEN_NET_WORKSPACE_SIZE] __attribute__((aligned(16)));
	const float first = *(int *)failed ? 1.0f : 5.0f;

	*(int *)failed = 0;
	for (int run = 0; run < 3000; run++) {
		const float x[4] = {first, 2.0f, 3.0f, (float)run};
		float y[4] = {0};
		const struct tvmgen_net_inputs inputs = {.x = x};
		const struct tvmgen_net_outputs outputs = {.output0 = y};
		const int32_t status = tvmgen_net_run_in(&inputs, &outputs, workspace);

		*(int *)failed += status != 0 || y[0] != 2.0f * first + 1.0f || y[3] != 2.0f * (float)run + 4.0f;
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[2];
	int failed[2] = {0, 1};

	for (int i = 0; i < 2; i++) {
		if (pthread_create(&threads[i], NULL, thread, &failed[i]) != 0) {
			return 1;
		}
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
	}
	printf("%d %d\\n", failed[0], failed[1]);
	return 0;
}
"""


def test_two_threads_with_workspaces_of_their_own(tmp_path: Path) -> None:
    """ThreadSanitizer finds each shared access; a wrong result would depend on chance."""
    export.write(make_plan("net"), tmp_path)
    (tmp_path / "main.c").write_text(THREADS)
    files = sorted(str(path) for path in (tmp_path / "src").glob("*.c"))
    options = ["-g", "-pthread", "-fsanitize=thread", "-Iinclude"]
    command = ["gcc", *options, "-o", "threads", "main.c", *files]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    if built.returncode and "tsan" in built.stderr:
        pytest.skip("this compiler has no ThreadSanitizer")
    assert built.returncode == 0, built.stderr
    # ThreadSanitizer needs addresses that a kernel with strong address randomization does not give.
    ran = subprocess.run(
        ["setarch", "-R", "./threads"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "0 0\n"), ran.stderr


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_no_warnings(compiler: str, tmp_path: Path) -> None:
    """This includes a model whose code relies on C's conversions of numbers, and 32 bits."""
    if not shutil.which(compiler):
        pytest.skip(f"there is no {compiler}")
    plan = make_plan("net")
    narrowing = plan.source.replace("int32_t unused;", "int8_t unused = in_range(num_args) * 3;")
    narrowing = "static int in_range(int x) { return x; }\n#include <stdint.h>\n" + narrowing
    export.write(replace(plan, source=narrowing), tmp_path)
    options = "-std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Werror -Iinclude"
    sources = [*sorted((tmp_path / "src").glob("*.c")), tmp_path / "example/main.c"]
    command = [compiler, *options.split(), "-fsyntax-only", *map(str, sources)]
    subprocess.run(command, cwd=tmp_path, check=True)


def test_the_example_builds_and_runs(tmp_path: Path) -> None:
    """With inputs of zeros the output is the weight, 1.0 first."""
    export.write(make_plan("net"), tmp_path)
    for command in (["cmake", "-S", "example", "-B", "build", "-G", "Ninja"], ["cmake", "--build", "build"]):
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    ran = subprocess.run(["build/example"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert ran.stdout == f"output0: {np.array([1, 2, 3, 4], '<f4').tobytes().hex(' ')}\n"


def test_an_export_replaces_an_export_and_no_other_file(tmp_path: Path) -> None:
    written = export.write(make_plan("net"), tmp_path)
    assert export.write(make_plan("net"), tmp_path) == written
    (tmp_path / "CMakeLists.txt").write_text("project(mine)\n")
    (tmp_path / "include/tvmgen_net.h").unlink()
    with pytest.raises(ConfigurationError, match=r"CMakeLists.txt is there, and no export wrote it"):
        export.write(make_plan("net"), tmp_path)
    assert (tmp_path / "CMakeLists.txt").read_text() == "project(mine)\n"
    assert not (tmp_path / "include/tvmgen_net.h").exists()


def test_an_export_that_fails_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_text = Path.write_text

    def full(path: Path, text: str) -> int:
        if path.name == "CMakeLists.txt":
            raise OSError(ENOSPC, "No space left on device")
        return write_text(path, text)

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space left"):
        export.write(make_plan("net"), tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_the_header_says_what_the_model_is_from() -> None:
    plan = replace(make_plan("net"), origin=Origin("net */.onnx", "ab" * 32, "0.27.0"))
    header = export.header_source(plan)
    assert "SPDX-License-Identifier: Apache-2.0" in header
    assert "by TVM 0.27.0, from net ./.onnx" in header
    assert f'#define TVMGEN_NET_MODEL_SHA256 "{"ab" * 32}"' in header
    assert '#define TVMGEN_NET_TVM_VERSION "0.27.0"' in header
    unknown = make_plan("net")
    other = replace(unknown, constants=(np.array([1, 2, 3, 5], np.float32),))
    assert len(unknown.digest) == 64
    assert unknown.digest != other.digest


def test_code_without_an_argument_for_its_state_says_so() -> None:
    assert "Several runs can go on at a time" in export.header_source(make_plan("net"))
    assert "One run at a time" in export.header_source(replace(make_plan("net"), context=""))


def test_a_failed_operator_ends_the_run(tmp_path: Path) -> None:
    """A request for more workspace than planned is refused, and the run reports it."""
    library = compiled(tmp_path, make_plan("net", workspace=0))
    x = np.ones(4, np.float32)
    inputs, outputs = (ctypes.c_void_p * 1)(x.ctypes.data), (ctypes.c_void_p * 1)(x.ctypes.data)
    assert library.tvmgen_net_run(inputs, outputs) == -1


def test_an_operator_that_there_is_not(tmp_path: Path) -> None:
    library = compiled(tmp_path, make_plan("net"))
    block = np.zeros(64, np.uint8)
    assert library.tvmgen_net_operator(None, None, ctypes.c_void_p(block.ctypes.data), 2) == -1


def test_a_parallel_loop_ends_where_a_part_fails(tmp_path: Path) -> None:
    """The parts run in turn, each with its number and the number of parts; the first error is the loop's."""
    source = """
#include "tvm/runtime/c_backend_api.h"
#include "tvm/ffi/c_api.h"
static int32_t part(int number, TVMParallelGroupEnv* environment, void* data) {
  float *out = ((DLTensor *)data)->data;
  if (environment->num_task != 4 || out[3] < 0.0f) return number == 2 ? -7 : 0;
  out[number] = (float)(10 * number);
  return 0;
}
int32_t __tvm_ffi_net_double(void* self, void* args, int32_t count, void* result);
int32_t __tvm_ffi_net_double(void* self, void* args, int32_t count, void* result) {
  DLTensor *given = ((TVMFFIAny *)args)[0].v_ptr, *out = ((TVMFFIAny *)args)[1].v_ptr;
  ((float *)out->data)[3] = ((float *)given->data)[3];
  return TVMBackendParallelLaunch(part, out, 4);
}
"""
    plan = make_plan("net")
    x, output = plan.inputs[0][1], plan.outputs[0][1]
    parallel = replace(plan, operators=(Operator("net_double", (x, output)),), source=source)
    library = compiled(tmp_path, parallel)
    given, out = np.array([0, 0, 0, 1], np.float32), np.zeros(4, np.float32)
    inputs, outputs = (ctypes.c_void_p * 1)(given.ctypes.data), (ctypes.c_void_p * 1)(out.ctypes.data)
    assert library.tvmgen_net_run(inputs, outputs) == 0
    assert out.tolist() == [0, 10, 20, 30]
    given[3] = -1
    assert library.tvmgen_net_run(inputs, outputs) == -7


def test_two_models_in_one_program(tmp_path: Path) -> None:
    library = compiled(tmp_path, make_plan("one"), make_plan("two"))
    assert run(library, "one") == [3, 6, 9, 12]
    assert run(library, "two") == [3, 6, 9, 12]


def test_weights_may_have_a_section(tmp_path: Path) -> None:
    section = '-DTVMGEN_WEIGHTS=__attribute__((section(".mine")))'
    compiled(tmp_path, make_plan("net"), defines=section)
    listed = subprocess.run(
        ["objdump", "-h", "net.so"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert ".mine" in listed.stdout


def test_cmake_builds_it(tmp_path: Path) -> None:
    export.write(make_plan("net"), tmp_path / "net")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(p C)\nadd_subdirectory(net)\n"
        "add_executable(p main.c)\ntarget_link_libraries(p tvmgen_net)\n"
    )
    (tmp_path / "main.c").write_text(
        '#include "tvmgen_net.h"\n'
        "int main(void) { float x[4] = {1, 2, 3, 4}, y[4];\n"
        "struct tvmgen_net_inputs in = {.x = x}; struct tvmgen_net_outputs out = {.output0 = y};\n"
        "return tvmgen_net_run(&in, &out) != 0 || y[3] != 12.0f; }\n"
    )
    subprocess.run(["cmake", "-B", "build", "-G", "Ninja"], cwd=tmp_path, check=True, capture_output=True)
    subprocess.run(["cmake", "--build", "build"], cwd=tmp_path, check=True, capture_output=True)
    subprocess.run(["build/p"], cwd=tmp_path, check=True)


@pytest.mark.parametrize(("size", "expected"), [(0, 0), (1, 16), (16, 16), (17, 32)])
def test_alignment(size: int, expected: int) -> None:
    assert aligned(size) == expected


def test_a_scalar_has_a_shape(tmp_path: Path) -> None:
    """C has no arrays of no elements."""
    plan = make_plan("net")
    scalar = replace(plan.operators[1].tensors[1], shape=())
    operators = (
        plan.operators[0],
        replace(
            plan.operators[1], tensors=(plan.operators[1].tensors[0], scalar, plan.operators[1].tensors[2])
        ),
    )
    assert run(compiled(tmp_path, replace(plan, operators=operators)), "net") == [3, 6, 9, 12]


AWKWARD = [
    "int", "class", "typeof", "new", "self", "operator", "workspace", "constant", "operators", "inputs",
    "x", "X", "x_2", "output0", "NULL", "I", "errno", "linux", "INT8_MAX", "SIZE_MAX", "_Bool", "__LINE__",
    "a.b", "a_b", "1x:0", "", "ä", "*/ int evil; /*", "end\\", "two\nlines", "number", "args", "memory",
    "M_PI", "SEEK_SET", "E2BIG", "FLT_RADIX", "CLOCKS_PER_SEC", "PRId32",
]  # fmt: skip


def awkward_plan() -> ModelPlan:
    """output0 = 2 * the first of many inputs with names that C or this library has; functions too."""
    plan = make_plan("net")
    fields = field_names(AWKWARD)
    inputs = tuple((field, Tensor(FLOAT, (4 + at,), "input", at)) for at, field in enumerate(fields))
    functions = ("run", "operator")
    source = plan.source.replace("net_double", functions[0]).replace("net_add", functions[1])
    tensors = [(inputs[0][1], *plan.operators[0].tensors[1:]), plan.operators[1].tensors]
    replaced = [
        replace(operator, function=function, tensors=taken)
        for operator, function, taken in zip(plan.operators, functions, tensors, strict=True)
    ]
    # Both functions with loops also read x's four elements, which the first input has.
    called = renamed("inputs", fields, AWKWARD)
    return replace(plan, inputs=inputs, source=source, operators=tuple(replaced), called=called)


def test_names_that_c_or_the_library_have(tmp_path: Path) -> None:
    plan = awkward_plan()
    library = compiled(tmp_path, plan, defines="-pedantic")
    x, out = np.array([1, 2, 3, 4], np.float32), np.zeros(4, np.float32)
    inputs = (ctypes.c_void_p * len(plan.inputs))(x.ctypes.data)
    assert library.tvmgen_net_run(inputs, (ctypes.c_void_p * 1)(out.ctypes.data)) == 0
    assert list(out) == [3, 6, 9, 12]
    header = export.header_source(plan)
    told = re.findall(r"#define \w+_SIZE (\d+) /\* (\w+\.\w+) \*/", header)
    assert told == [(str(item.nbytes), f"inputs.{name}") for name, item in plan.inputs] + [
        ("16", "outputs.output0")
    ]
    macros = re.findall(r"#define (\w+) ", header)
    assert len(set(macros)) == len(macros)
    assert "TVMGEN_NET_WORKSPACE_SIZE 48\n" in header
    assert 'const void *int_; /* float32[4], the model\'s "int" */' in header


HEADERS = "assert complex ctype errno fenv float inttypes limits math signal stdbool stdio stdlib string time"


@pytest.mark.parametrize("compiler", ["gcc -std=gnu11", "gcc -std=c99", "g++ -std=gnu++20", "g++ -std=c++11"])
def test_a_header_for_any_program(compiler: str, tmp_path: Path) -> None:
    """The header works after the standard's headers, whose macros must not be names of members."""
    plan = awkward_plan()
    export.write(plan, tmp_path)
    cxx = compiler.startswith("g++")
    names = [word for word in HEADERS.split() if not (cxx and word == "complex")]
    uses = "".join(
        f"\tinputs.{name} = (const void *)1;\n\tsize += sizeof(char[{tensor.nbytes}]);\n"
        for name, tensor in plan.inputs
    )
    (tmp_path / f"main.{'cpp' if cxx else 'c'}").write_text(
        "".join(f"#include <{name}.h>\n" for name in names)
        + '#include "tvmgen_net.h"\n\nint main(void)\n{\n\tstruct tvmgen_net_inputs inputs;\n'
        + f"\tunsigned long size = 0;\n\n{uses}\treturn inputs.{plan.inputs[0][0]} == 0 && size;\n}}\n"
    )
    command = [*compiler.split(), "-Wall", "-Wextra", "-Werror", "-Iinclude", "-fsyntax-only"]
    subprocess.run([*command, f"main.{'cpp' if cxx else 'c'}"], cwd=tmp_path, check=True)


def test_names_stay_what_they_are_where_they_can() -> None:
    assert field_names(["x", "X", "input_1", "data", "Image", "_1x", "E", "SIGMOID_in"]) == [
        "x", "X", "input_1", "data", "Image", "_1x", "E", "SIGMOID_in",
    ]  # fmt: skip
    assert field_names(["int", "int_", "int"]) == ["int_", "int__2", "int__3"]


@pytest.mark.parametrize("dtype", ["<u2", ">u2"])
def test_weights_that_compile_quickly_are_the_same(dtype: str, tmp_path: Path) -> None:
    """All byte values, in rows of any length, and an empty weight; in this machine's order."""
    rng = np.random.default_rng(2)
    constants = [
        rng.permutation(256).astype(dtype),
        *(rng.integers(0, 256, n).astype(np.uint8) for n in (1, 63, 65)),
    ]
    plan = replace(make_plan("net"), constants=tuple(constants))
    assert "{" not in export.weights(plan, quick=True).partition("#endif")[2].partition("weight0[512] =")[2]
    for quick, strict in ((True, "-Wno-pedantic"), (False, "-pedantic")):
        (tmp_path / "weights.c").write_text(export.weights(plan, quick=quick))
        command = f"gcc -std=c11 -shared -fPIC -Wall -Wextra {strict} -Werror -o {quick}.so weights.c"
        subprocess.run(command.split(), cwd=tmp_path, check=True)
        library = ctypes.CDLL(str(tmp_path / f"{quick}.so"))
        for number, constant in enumerate(constants):
            held = (ctypes.c_uint8 * constant.nbytes).in_dll(library, f"tvmgen_net_weight{number}")
            assert bytes(held) == constant.astype(constant.dtype.newbyteorder("<")).tobytes()
            assert ctypes.addressof(held) % 16 == 0
