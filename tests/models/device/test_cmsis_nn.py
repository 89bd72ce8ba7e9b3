# SPDX-License-Identifier: Apache-2.0
"""CMSIS-NN's kernels in a model, on every device that can load code: CMSIS_NN names the source tree."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from minrpc import Device
from minrpc_models import export

from tests.models.quantized import INPUT, computed, network

pytestmark = [pytest.mark.extra("tvm"), pytest.mark.extra("cmsis-nn")]


@pytest.fixture(scope="module")
def model() -> Any:  # noqa: ANN401
    from minrpc_models import model_of

    return model_of(network(), "net", cmsis_nn=Path(os.environ["CMSIS_NN"]))


def test_each_kernel_gives_numpys_integers(
    device: Device,
    model: Any,  # noqa: ANN401
    need_memory: Callable[[int], None],
) -> None:
    """The softmax, whose exponential TFLite approximates, to a step."""
    from minrpc_models import load_model
    from minrpc_models.cmsis_nn import replaced

    if not device.rpc.global_function("minrpc.code_load"):
        pytest.skip("its firmware can't load code")
    need_memory(64_000)
    assert len(model.kernels) == 7
    inputs = {"x": np.random.default_rng(5).integers(-128, 128, INPUT).astype(np.int8)}
    with load_model(device, model.plan) as loaded:
        run = loaded.measure(inputs, repeat=1)
    first, depthwise, add, *others = replaced(model.module).kernels
    a = computed(first, inputs["x"])
    out = computed(add, a, computed(depthwise, a))
    for kernel in others:
        out = computed(kernel, out)
    given = next(iter(run.outputs.values())).astype(int)
    assert np.ptp(given) > 20
    assert np.abs(given - out).max() <= 1
    assert run.workspace_bytes == run.least_workspace_bytes


@pytest.mark.slow
def test_an_export_builds_with_cmake(model: Any, tmp_path: Path) -> None:  # noqa: ANN401
    export.write(model.plan, tmp_path / "net")
    configure = ["cmake", "-S", "net/example", "-B", "build", f"-DCMSIS_NN={os.environ['CMSIS_NN']}"]
    for command in (configure, ["cmake", "--build", "build"], ["build/example"]):
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("output0: ")
