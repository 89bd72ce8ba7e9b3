# SPDX-License-Identifier: Apache-2.0
"""Quantized operators become kernels with TFLite's numbers; other operators stay with TVM, with a reason."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from minrpc import ConfigurationError
from minrpc_models import cmsis_source, export
from minrpc_models.cmsis_nn import Add, Conv2D, Dense, Pool, Softmax, fixed_point, replaced
from minrpc_models.plan import ModelPlan
from minrpc_models.reference import run_on_host

from tests.models.quantized import INPUT, Builder, computed, network
from tests.models.test_export import make_plan

pytestmark = pytest.mark.extra("tvm")

GIVEN, MADE = (0.05, 3), (0.07, -20)


def test_the_kernels_of_a_network_compute_what_its_floats_do() -> None:
    """Computes the kernels in numpy, by their parameters: to a step in each of seven layers."""
    module = network()
    found = replaced(module)
    kinds = [Conv2D, Conv2D, Add, Pool, Dense, Dense, Softmax]
    assert [type(kernel.what) for kernel in found.kernels] == kinds
    assert [bool(kernel.what.depth) for kernel in found.kernels[:2]] == [False, True]  # type: ignore[union-attr]
    assert [kernel.what.per_channel for kernel in found.kernels[4:6]] == [False, True]  # type: ignore[union-attr]
    assert not found.left
    x = np.random.default_rng(3).integers(-128, 128, INPUT).astype(np.int8)
    first, depthwise, add, *others = found.kernels
    a = computed(first, x)
    out = computed(add, a, computed(depthwise, a))
    for kernel in others:
        out = computed(kernel, out)
    (due,) = run_on_host(module, [x])
    assert np.ptp(due) > 20
    assert np.abs(out - due.astype(int)).max() <= 3


def _mean(net: Builder, half: float = 0.5, **options: Any) -> Any:  # noqa: ANN401
    """The average of 4 x 3 elements, rounded by adding `half`."""
    op, const = net.relax.op, net.relax.const
    pooled = op.nn.avg_pool2d(net.emit(op.astype(net.x, "float32")), (4, 3), layout="NHWC", **options)
    mean, part = net.emit(pooled), const(half, "float32")
    up = net.emit(op.floor(net.emit(op.add(mean, part))))
    down = net.emit(op.ceil(net.emit(op.subtract(mean, part))))
    whole = net.emit(op.where(net.emit(op.greater(mean, const(0.0, "float32"))), up, down))
    return net.emit(op.astype(whole, "int8"))


@pytest.mark.parametrize("half", [0.5, 0.25])
def test_an_average_that_rounds_at_halves_is_a_kernel(half: float) -> None:
    net = Builder((1, 4, 3, 4))
    with net._builder.function("main", [net.x]):
        net._builder.emit_func_output(net.emit(net.relax.op.clip(_mean(net, half), -5, 100)))
    found = replaced(net._builder.finalize())
    assert not found.left
    if half != 0.5:
        assert not found.kernels
        return
    (kernel,) = found.kernels
    assert isinstance(kernel.what, Pool)
    assert (kernel.what.mean, kernel.what.kernel, kernel.what.output) == (True, (4, 3), (1, 1, 1, 4))
    assert (kernel.what.bounds.low, kernel.what.bounds.high) == (-5, 100)


def _channels_first(net: Builder) -> Any:  # noqa: ANN401
    weights, _ = net.weights((5, 4, 2, 2), 0)
    return net.ints(net.emit(net.relax.op.nn.conv2d(net.floats(net.x, *GIVEN), weights)), *MADE)


def _softmax(net: Builder, scale: float = 1 / 256, axis: int = -1) -> Any:  # noqa: ANN401
    return net.ints(net.emit(net.relax.op.nn.softmax(net.floats(net.x, *GIVEN), axis=axis)), scale, -128)


def _grouped(net: Builder) -> Any:  # noqa: ANN401
    weights, _ = net.weights((2, 2, 2, 6), 3)
    layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO", "groups": 2}
    return net.ints(net.emit(net.relax.op.nn.conv2d(net.floats(net.x, *GIVEN), weights, **layouts)), *MADE)


def _added(net: Builder, shape: tuple[int, ...], scale: float = MADE[0]) -> Any:  # noqa: ANN401
    other = net.floats(net.relax.const(np.ones(shape, np.int8)), *GIVEN)
    return net.ints(net.emit(net.relax.op.add(net.floats(net.x, *GIVEN), other)), scale, MADE[1])


def _dense(net: Builder, zero: int = 0, factor: float = 1.0) -> Any:  # noqa: ANN401
    weights, scales = net.weights((4, 5), 1, zero)
    out = net.emit(net.relax.op.matmul(net.floats(net.x, *GIVEN), weights))
    return net.ints(net.with_bias(out, np.float32(GIVEN[0] * factor) * scales, 5), *MADE)


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (lambda net: _channels_first(net), "conv2d: its layout is NCHW"),
        (lambda net: _softmax(net, 1 / 128), "softmax: its output's scale is not 1/256"),
        (lambda net: _softmax(net, axis=1), "softmax: its axis is not the last"),
        (lambda net: _grouped(net), "conv2d: it has 2 groups of channels"),
        (lambda net: _added(net, (4,)), "add: its inputs have other shapes"),
        (lambda net: _added(net, (1, 4, 3, 4), 1e-8), "add: its output's scale is too small"),
        (lambda net: _mean(net, padding=1, count_include_pad=True), "avg_pool2d: its input is not int8, or"),
        (lambda net: _dense(net, zero=1), "matmul: its weights are not constant, or their zero is not 0"),
        (lambda net: _dense(net, factor=1.01), "matmul: its biases have another scale"),
    ],
)
def test_an_operator_that_does_not_map_stays(made: Any, reason: str) -> None:  # noqa: ANN401
    net = Builder((1, 4, 3, 4))
    with net._builder.function("main", [net.x]):
        net._builder.emit_func_output(made(net))
    found = replaced(net._builder.finalize())
    assert not found.kernels
    (told,) = found.left
    assert told.startswith(reason)


@pytest.mark.parametrize(
    ("activation", "bounds"),
    [("relu", (-20, 127)), ("relu6", (-20, 66)), ("relu1", (-34, -6)), ("clip", (-25, 31))],
)
def test_activations_bound_the_output(activation: str, bounds: tuple[int, int]) -> None:
    """An activation of floats, before the quantization with zero -20 and scale 0.07, or of integers."""
    net = Builder((1, 5))
    op = net.relax.op
    with net._builder.function("main", [net.x]):
        weights, _ = net.weights((5, 3), 1)
        out = net.emit(op.matmul(net.floats(net.x, *GIVEN), weights))
        limits = {"relu6": (0, 6), "relu1": (-1, 1)}.get(activation)
        if activation == "relu":
            out = net.emit(op.nn.relu(out))
        elif limits:
            out = net.emit(op.clip(out, *limits))
        net._builder.emit_func_output(net.ints(out, *MADE, bounds if activation == "clip" else None))
    (kernel,) = replaced(net._builder.finalize()).kernels
    assert isinstance(kernel.what, Dense)
    assert (kernel.what.bounds.zero, kernel.what.bounds.low, kernel.what.bounds.high) == (-20, *bounds)
    weights_taken, biases, *_, sums = kernel.constants
    assert (sums == biases - GIVEN[1] * weights_taken.astype(int).sum(axis=1)).all()


def test_an_input_of_another_type_stays() -> None:
    net = Builder((1, 4), dtype="uint8")
    with net._builder.function("main", [net.x]):
        net._builder.emit_func_output(_softmax(net))
    assert replaced(net._builder.finalize()).left == ("softmax: an input is uint8",)


@pytest.mark.parametrize("factor", [1.0, 0.3, 1e-4, 0.99999999999, 7.5])
def test_fixed_point(factor: float) -> None:
    multiplier, shift = fixed_point(factor)
    assert 1 << 30 <= multiplier < 1 << 31
    assert multiplier * 2.0 ** (shift - 31) == pytest.approx(factor, rel=2**-31)
    assert fixed_point(2.0**-40) == (0, 0)


def test_the_files_that_are_needed(tmp_path: Path) -> None:
    """The files with the called functions and their callees; names in comments do not count."""
    for name, text in {
        "Include/arm_nnfunctions.h": "",
        "Source/A/arm_a.c": "int arm_a(int x)\n{\n\treturn arm_b(x);\n}\n",
        "Source/B/arm_bs.c": "int32_t *arm_b(int x)\n{\n}\n\nvoid arm_a_only(void)\n{\n}\n",
        "Source/B/arm_c.c": "int arm_b(int x,\n\tint y);\nint arm_c(int x)\n{\n\treturn arm_a(x);\n}\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = cmsis_source.files("\treturn arm_a(1) + arm_nowhere();", tmp_path)
    assert [path.name for path in found] == ["arm_a.c", "arm_bs.c"]
    assert cmsis_source.include_directory(tmp_path) == tmp_path / "Include"
    with pytest.raises(ConfigurationError, match="is not CMSIS-NN"):
        cmsis_source.include_directory(tmp_path / "Source")
    kernels = replaced(network()).kernels
    with pytest.raises(ConfigurationError, match="do not compile") as caught:
        cmsis_source.source(kernels, tmp_path)
    assert "7.0" in caught.value.next_step
    with pytest.raises(ConfigurationError, match="has no arm_softmax_s8") as caught:
        cmsis_source.source(kernels[-1:], tmp_path)
    assert "7.0" in caught.value.next_step


def _kernel_tree(root: Path) -> None:
    """A library of two functions in two directories."""
    callee = "int arm_b(int x);\n\n"
    for name, text in {
        "Include/arm_nnfunctions.h": "int arm_a(int x);\n",
        "Source/NNSupportFunctions/arm_b.c": f"{callee}int arm_b(int x)\n{{\n\treturn x + 1;\n}}\n",
        "Source/SoftmaxFunctions/arm_a.c": f"{callee}int arm_a(int x)\n{{\n\treturn arm_b(x);\n}}\n",
    }.items():
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text(text)


def _exported(root: Path, name: str) -> ModelPlan:
    """A plan whose operator calls the tree's function, written as a C library into a directory."""
    plan = make_plan(name)
    calls = plan.source.replace("int32_t unused;", "int unused = arm_a(1);")
    plan = replace(plan, source=f'#include "arm_nnfunctions.h"\n{calls}', cmsis_nn=root / "tree")
    export.write(plan, root / name)
    return plan


def test_an_export_lists_the_files_and_zephyrs_options(tmp_path: Path) -> None:
    _kernel_tree(tmp_path / "tree")
    text = export.cmake(_exported(tmp_path, "net"))
    assert "\n  Source/NNSupportFunctions/arm_b.c\n  Source/SoftmaxFunctions/arm_a.c\n)" in text
    assert "foreach(option NNSUPPORT SOFTMAX)" in text
    assert "CMSIS_NN" not in export.cmake(make_plan("net"))


@pytest.mark.slow
def test_two_exports_in_a_program_share_the_kernels(tmp_path: Path) -> None:
    _kernel_tree(tmp_path / "tree")
    for name in ("net", "other"):
        _exported(tmp_path, name)
    (tmp_path / "main.c").write_text(
        '#include "tvmgen_net.h"\n#include "tvmgen_other.h"\n\n'
        "int main(void)\n{\n\treturn tvmgen_net_run != 0 && tvmgen_other_run != 0 ? 0 : 1;\n}\n"
    )
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(app C)\nadd_executable(app main.c)\n"
        "foreach(name net other)\n  add_subdirectory(${name})\n"
        # As Zephyr links its libraries: a function that is there twice is an error.
        "  target_link_libraries(app PRIVATE -Wl,--whole-archive tvmgen_${name} -Wl,--no-whole-archive)\n"
        "endforeach()\n"
        "target_link_libraries(app PRIVATE -Wl,--whole-archive tvmgen_cmsis_nn -Wl,--no-whole-archive)\n"
    )

    def cmake(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["cmake", *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    assert "net needs CMSIS-NN: -DCMSIS_NN=DIR" in cmake("-B", "build").stderr.replace("\n  ", " ")
    assert cmake("-B", "build", "-DCMSIS_NN=tree").returncode == 0
    built = cmake("--build", "build")
    assert built.returncode == 0, built.stderr
    (tmp_path / "tree/Source/SoftmaxFunctions/arm_a.c").unlink()
    assert "exported with another CMSIS-NN" in cmake("-B", "build").stderr.replace("\n  ", " ")
