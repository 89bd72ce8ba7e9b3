# SPDX-License-Identifier: Apache-2.0
"""Calls of CMSIS-NN's kernels in C: compiled with functions in their place that print their arguments."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from minrpc.tvm import HEADERS
from minrpc_models import cmsis_source
from minrpc_models.cmsis_nn import Add, Bounds, Conv2D, Dense, Kernel, Pool, Softmax

LIBRARY = Path(__file__).with_name("kernels")

SHAPES = ((1, 9, 6, 4), (3, 2), (1, 5, 7, 8), (2, 1), (1, 0))
CONV = Conv2D(*SHAPES, dilation=(4, 3), input_zero=-11, bounds=Bounds(-7, -100, 90))
DEPTHWISE = Conv2D(*SHAPES, dilation=(1, 1), input_zero=5, bounds=Bounds(6, -50, 60), depth=2)
DENSE = Dense(rows=3, size=17, outputs=8, input_zero=12, bounds=Bounds(-9, -70, 80), per_channel=True)
ADD = Add(
    216, inputs=((3, 111, -1), (-4, 222, -2)), output=(333, -3), left_shift=20, bounds=Bounds(13, -20, 30)
)
CALLS: dict[str, tuple[Conv2D | Dense | Pool | Softmax | Add, str]] = {
    "conv": (
        CONV,
        "conv offsets 11 -7 bounds -100 90 stride h2 w1 padding h1 w0 dilation h4 w3 in 1x9x6x4"
        " filter 8x3x2x4 out 1x5x7x8 bias 1x1x1x8 weights 101 bias 102 multiplier 103 shift 104"
        " scratch 18 some in 100 out 105",
    ),
    "dw": (
        DEPTHWISE,
        "dw depth 2 offsets -5 6 bounds -50 60 stride h2 w1 padding h1 w0 dilation h1 w1 in 1x9x6x4"
        " filter 1x3x2x8 out 1x5x7x8 bias 1x1x1x8 weights 101 bias 102 multiplier 103 shift 104"
        " scratch 18 some in 100 out 105",
    ),
    "dense": (
        DENSE,
        "fc channels 1 filter offset 0 offsets -12 -9 bounds -70 80 in 3x1x1x17 filter 17x1x1x8 out 3x1x1x8"
        " bias 1x1x1x8 weights 101 bias 102 multiplier 103 shift 104 scratch 32 some in 100 out 106",
    ),
    "mean": (
        Pool(True, *SHAPES, bounds=Bounds(0, -3, 4)),
        "avg offsets 0 0 bounds -3 4 stride h2 w1 padding h1 w0 in 1x9x6x4 filter 1x3x2x1 out 1x5x7x8"
        " scratch 11 some in 100 out 101",
    ),
    "maximum": (
        Pool(False, *SHAPES, bounds=Bounds(0, -3, 4)),
        "max offsets 0 0 bounds -3 4 stride h2 w1 padding h1 w0 in 1x9x6x4 filter 1x3x2x1 out 1x5x7x8"
        " scratch 0 none in 100 out 101",
    ),
    "softmax": (Softmax(2, 10, 444, 5, -248), "soft 2 10 444 5 -248 in 100 out 101"),
    "add": (
        ADD,
        "add 100: -3 111 -1, 101: 4 222 -2, left 20, 102: 13 333 -3, -20 30, size 216",
    ),
}
WITH_SCRATCH = ("conv", "dw", "mean")

# Calls a function, whose tensors' elements are at addresses from 100 on; then with a kernel that fails, with
# one that needs more memory than was planned, and without memory.
PROGRAM = """
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <tvm/ffi/c_api.h>

static int taken, freed;
static size_t size_taken;
static unsigned char memory[256];
static int full;

static void *TVMBackendAllocWorkspace(int type, int id, uint64_t size, int code, int bits)
{{
	(void)type, (void)id, (void)code, (void)bits;
	taken++;
	size_taken = size;
	return full ? NULL : memory;
}}

static int TVMBackendFreeWorkspace(int type, int id, void *given)
{{
	(void)type, (void)id;
	freed++;
	return given == memory ? 0 : -1;
}}
{source}
int further_bytes;
arm_cmsis_nn_status result;

static int called(void)
{{
	DLTensor tensors[8];
	TVMFFIAny args[8];

	for (int i = 0; i < 8; i++) {{
		tensors[i].data = (void *)(intptr_t)(100 + i);
		args[i].v_ptr = &tensors[i];
	}}
	return __tvm_ffi_{name}(NULL, args, 8, NULL);
}}

int main(void)
{{
	int status = called();

	printf("status %d taken %d of %zu freed %d\\n", status, taken, size_taken, freed);
	result = ARM_CMSIS_NN_ARG_ERROR;
	printf("status %d\\n", called());
	result = ARM_CMSIS_NN_SUCCESS;
	further_bytes = 100;
	printf("status %d\\n", called());
	further_bytes = 0;
	full = 1;
	printf("status %d\\n", called());
	printf("taken %d freed %d\\n", taken, freed);
	return 0;
}}
"""


@pytest.mark.parametrize("kind", CALLS)
def test_a_call(kind: str, tmp_path: Path) -> None:
    what, due = CALLS[kind]
    text = cmsis_source.source([Kernel("kernel", what)], LIBRARY)
    (tmp_path / "call.c").write_text(PROGRAM.format(source=text, name="kernel"))
    include = [f"-I{LIBRARY / 'Include'}", f"-I{HEADERS}"]
    sources = ["call.c", *map(str, cmsis_source.files(text, LIBRARY))]
    flags = [
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-unused-parameter",
        "-Wno-unused-function",
        "-fsanitize=undefined",
    ]
    subprocess.run(["cc", *flags, *include, *sources, "-o", "call"], cwd=tmp_path, check=True)
    ran = subprocess.run(["./call"], cwd=tmp_path, check=True, capture_output=True, text=True)
    lines = ran.stdout.splitlines()
    fails = "0" if kind == "softmax" else "-1"  # It has no result.
    if kind not in WITH_SCRATCH:
        ends = [due, f"status {fails}", due, "status 0", due, "status 0", "taken 0 freed 0"]
        assert lines == [due, "status 0 taken 0 of 0 freed 0", *ends]
        return
    size = int(due.partition("scratch ")[2].split()[0]) + 8  # of the core that needs most
    assert lines == [
        due,
        f"status 0 taken 1 of {size} freed 1",
        due,
        "status -1",
        "status -1",
        "status -1",
        "taken 3 freed 2",
    ]
