# SPDX-License-Identifier: Apache-2.0
"""Files of other frameworks, read by TVM's importers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from minrpc import ConfigurationError
from minrpc_models.errors import ModelError

from tests.models import waveforms
from tests.models.tflite_model import (
    write_average,
    write_custom,
    write_softmax,
    write_sum,
    write_tflite,
)

pytestmark = pytest.mark.extra("tvm")


@pytest.fixture(scope="module")
def network() -> waveforms.Network:
    return waveforms.trained(50)


def check(path: Path, network: waveforms.Network) -> None:
    from minrpc_models import model_of

    model = model_of(path)
    signals, _ = waveforms.waveforms(1, 9)
    ((name, _),) = model.plan.inputs
    (scores,) = model.on_host({name: signals}).values()
    np.testing.assert_allclose(scores, network.scores(signals), rtol=1e-4, atol=1e-5)
    assert model.plan.constant_bytes == sum(
        item.nbytes for item in (network.w1, network.b1, network.w2, network.b2)
    )


def test_tflite(network: waveforms.Network, tmp_path: Path) -> None:
    check(write_tflite(tmp_path / "net.tflite", network), network)


def test_variables_of_tflite_are_inputs_and_outputs(tmp_path: Path) -> None:
    """The variables' names are valid in C, and the header has their first values."""
    from minrpc_models import export, model_of

    model = model_of(write_sum(tmp_path / "sum.tflite", [0.5] * 4))
    assert [name for name, _ in model.plan.inputs] == ["in_a_0", "in_b_0"]
    assert model.plan.states == {"in_b_0": ("output1", 0.5)}
    x, held = np.arange(4, dtype=np.float32).reshape(1, 4), np.full((1, 4), 0.5, np.float32)
    for _ in range(3):
        found = model.on_host({"in_a_0": x, "in_b_0": held})
        np.testing.assert_array_equal(found["output0"], x + held)
        held = found["output1"]
    assert 'the model\'s "in/b:0": 0.5 in each element, then outputs.output1 of the run before' in (
        export.header_source(model.plan)
    )


def test_averages_of_quantized_tensors_are_rounded(tmp_path: Path) -> None:
    """TFLite's reference rounds half away from 0. TVM's converter cuts fractions off."""
    from minrpc_models import model_of

    rows = np.array([[1, 1, 1, 0], [-1, -1, -1, 0], [1, 1, 0, 0], [-1, -1, 0, 0], [5, 0, 0, 0]], np.int8)
    model = model_of(write_average(tmp_path / "mean.tflite", len(rows)))
    (found,) = model.on_host({"x": rows.reshape(-1, 2, 2, 1)}).values()
    assert found.ravel().tolist() == [1, -1, 1, -1, 1]


def test_a_softmax_with_a_factor_is_refused(tmp_path: Path) -> None:
    from minrpc_models import model_of

    assert model_of(write_softmax(tmp_path / "plain.tflite", 1.0)).plan.operators
    with pytest.raises(ModelError, match=r"a softmax has beta 0\.5"):
        model_of(write_softmax(tmp_path / "soft.tflite", 0.5))


def test_a_custom_operator_is_named(tmp_path: Path) -> None:
    """The model has operators like spectrograms."""
    from minrpc_models import model_of

    with pytest.raises(ModelError, match="AudioSpectrogram is a custom operator") as caught:
        model_of(write_custom(tmp_path / "mel.tflite", "AudioSpectrogram"))
    assert "is then an input" in caught.value.next_step


@pytest.mark.parametrize(
    ("first", "times_read", "text"),
    [([1.0, 2.0, 1.0, 1.0], 1, "same known number"), ([0.5] * 4, 2, "read twice")],
)
def test_variables_that_can_not_be_inputs(
    first: list[float], times_read: int, text: str, tmp_path: Path
) -> None:
    from minrpc_models import model_of

    with pytest.raises(ModelError, match=f"the variable net/sum .*{text}"):
        model_of(write_sum(tmp_path / "sum.tflite", first, times_read))


@pytest.mark.extra("torch")
def test_pytorch(network: waveforms.Network, tmp_path: Path) -> None:
    import torch

    layers = torch.nn.Sequential(
        linear(torch, network.w1, network.b1), torch.nn.ReLU(), linear(torch, network.w2, network.b2)
    )
    example = torch.zeros((1, waveforms.SAMPLES))
    torch.export.save(torch.export.export(layers.eval(), (example,)), tmp_path / "net.pt2")
    check(tmp_path / "net.pt2", network)


def linear(torch: Any, weights: waveforms.Floats, offsets: waveforms.Floats) -> Any:  # noqa: ANN401
    layer = torch.nn.Linear(*weights.shape)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(weights.T.copy()))
        layer.bias.copy_(torch.from_numpy(offsets))
    return layer


@pytest.mark.parametrize(
    ("suffix", "kind"),
    [("tflite", "TFLite"), pytest.param("pt2", "PyTorch", marks=pytest.mark.extra("torch"))],
)
def test_what_is_no_model(suffix: str, kind: str, tmp_path: Path) -> None:
    from minrpc_models import model_of

    path = tmp_path / f"net.{suffix}"
    with pytest.raises(ConfigurationError, match="there is no file"):
        model_of(path)
    path.write_bytes(b"text that is no model")
    with pytest.raises(ConfigurationError, match=f"net.{suffix} is no {kind} model"):
        model_of(path)
