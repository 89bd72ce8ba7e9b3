# SPDX-License-Identifier: Apache-2.0
"""Trained networks on every device that can load code: right, timed by operator, the same as exported C."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from minrpc.client import Device
from minrpc.errors import ConfigurationError
from minrpc.firmware import Firmware

from tests.unit.tvm.onnx_model import write_onnx

pytest.importorskip("tvm", reason="TVM is not installed: pip install 'minrpc-harness[tvm]'")
pytest.importorskip("onnx", reason="onnx is not installed: pip install 'minrpc-harness[tvm]'")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:  # noqa: ANN401
    from minrpc.tvm.models import model_of

    return model_of(write_onnx(tmp_path_factory.mktemp("model") / "net.onnx"))


@pytest.fixture
def loaded(device: Device, model: Any, need_memory: Callable[[int], None]) -> Any:  # noqa: ANN401
    from minrpc.tvm.models import load_model

    if not device.rpc.global_function("minrpc.code_load"):
        pytest.skip("its firmware can't load code")
    need_memory(64_000)
    return load_model(device, model.plan)


def test_outputs_are_tvms(loaded: Any, model: Any) -> None:  # noqa: ANN401
    inputs = model.random_inputs(1)
    expected = model.on_host(inputs)
    for name, array in loaded.run(inputs).items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-5, atol=1e-6)


def test_operators_make_up_the_whole(loaded: Any, model: Any, image: Firmware) -> None:  # noqa: ANN401
    """The law, where times are exact: what the operators take is what a run takes, to one per cent."""
    assert image
    run = loaded.measure(model.random_inputs(), repeat=2)
    assert len(run.operators) == len(model.plan.operators)
    assert abs(sum(one.cycles for one in run.operators) / run.cycles - 1) < 0.01
    assert run.weight_bytes == model.plan.constant_bytes


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({}, "takes x, not nothing"),
        ({"x": np.zeros((1, 8, 8), np.float32)}, r"x is float32\[1, 1, 16, 16\], not float32\[1, 8, 8\]"),
        ({"x": np.zeros((1, 1, 16, 16), np.int8)}, "not int8"),
    ],
)
def test_inputs_that_do_not_fit(loaded: Any, wrong: dict[str, Any], text: str) -> None:  # noqa: ANN401
    with pytest.raises(ConfigurationError, match=text):
        loaded.run(wrong)


def test_what_is_no_model(tmp_path: Path) -> None:
    from minrpc.tvm.models import model_of

    (tmp_path / "m.onnx").write_bytes(b"text")
    with pytest.raises(ConfigurationError, match="is no ONNX model"):
        model_of(tmp_path / "m.onnx")
    with pytest.raises(ConfigurationError, match="there is no file"):
        model_of(tmp_path / "none.onnx")
    with pytest.raises(ConfigurationError, match="models of this kind"):
        model_of(tmp_path / "m.h5")
