# SPDX-License-Identifier: Apache-2.0
"""LiteRT computes the file of a model whose operators CMSIS-NN computes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from minrpc import ConfigurationError

from tests.models.test_cmsis_source import LIBRARY
from tests.models.tflite_model import write_average

pytestmark = pytest.mark.extra("tvm")


def _inputs(*elements: int) -> dict[str, npt.NDArray[Any]]:
    return {"x": np.array(elements, np.int8).reshape(1, 2, 2, 1)}


@pytest.mark.extra("litert")
def test_its_outputs_are_the_files(tmp_path: Path) -> None:
    from minrpc_models import model_of

    path = write_average(tmp_path / "mean.tflite", 1)
    model = model_of(path, cmsis_nn=LIBRARY)
    assert len(model.kernels) == 1
    for elements, mean in (((1, 1, 1, 0), 1), ((-1, -1, 0, 0), -1), ((5, 0, 0, 0), 1)):
        (found,) = model.by_litert(_inputs(*elements)).values()
        assert (str(found.dtype), found.ravel().tolist()) == ("int8", [mean])
    assert model.litert_steps == 0
    assert model_of(path).by_litert(_inputs(1, 1, 1, 0)) == {}


def test_without_litert_the_command_that_installs_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from minrpc_models import model_of

    model = model_of(write_average(tmp_path / "mean.tflite", 1), cmsis_nn=LIBRARY)
    monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", None)
    with pytest.raises(ConfigurationError, match="LiteRT, with which") as caught:
        model.by_litert(_inputs(1, 1, 1, 0))
    assert "minrpc-harness[litert]" in caught.value.next_step
