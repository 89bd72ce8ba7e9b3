# SPDX-License-Identifier: Apache-2.0
"""Inputs from a file of numpy: one error lists all its faults."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from minrpc import ConfigurationError
from minrpc_models.inputs import read_inputs

from tests.models.test_export import make_plan


def test_any_byte_of_it_may_be_damaged(tmp_path: Path) -> None:
    plan, path = make_plan("net"), tmp_path / "x.npz"
    arrays = {name: np.ones(tensor.shape, np.float32) for name, tensor in plan.inputs}
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]
    whole = path.read_bytes()
    assert read_inputs(path, plan).keys() == arrays.keys()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            read_inputs(path, plan)
        except ConfigurationError:
            continue
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(ConfigurationError):
            read_inputs(path, plan)
