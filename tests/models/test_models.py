# SPDX-License-Identifier: Apache-2.0
"""A model's room on a device, and the picture of its run: no device needed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from minrpc import DeviceClock, DeviceMemoryError, Measurement, Sample
from minrpc.timing import Overhead
from minrpc_models.models import ModelRun, OperatorTime, _check_room
from minrpc_models.picture import draw_runs

from tests.models.test_export import make_plan

# Sizes of `make_plan("net")`: a workspace of 48 bytes, 16 of input and 16 of output, 16 of weights.
CODE = 1000
ALL = CODE + 48 + 32 + 16


def device(free: int, code: int | None = None) -> Any:  # noqa: ANN401
    """code: bytes of a region for code alone."""
    regions = [SimpleNamespace(kind="arena", size=free)]
    regions += [SimpleNamespace(kind="code", size=code)] if code is not None else []
    return SimpleNamespace(
        name="mine",
        owner=SimpleNamespace(target=None),
        info=lambda: SimpleNamespace(regions=regions, arena_largest_free=free),
    )


def test_room_for_a_model() -> None:
    plan = make_plan("net")
    _check_room(device(ALL), plan, CODE, "loaded")
    _check_room(device(ALL - 16), plan, CODE, "image")
    _check_room(device(48 + 32, CODE + 16), plan, CODE, "loaded")
    _check_room(device(48 + 32, CODE), plan, CODE, "image")


def test_weights_that_do_not_fit_are_told_before_there_is_code() -> None:
    _check_room(device(48 + 32 + 16), make_plan("net"), 0, "loaded")
    for given in (device(48 + 32 + 15), device(48 + 32, 15)):
        with pytest.raises(DeviceMemoryError, match="1 are missing") as caught:
            _check_room(given, make_plan("net"), 0, "loaded")
        assert "--weights image builds" in str(caught.value)
        assert "code: " not in str(caught.value)


@pytest.mark.parametrize(
    ("missing", "advice"),
    [(1, "--weights image builds"), (16, "--weights image builds"), (17, "take a smaller model")],
)
def test_what_helps_where_there_is_no_room(missing: int, advice: str) -> None:
    """Weights in the image are proposed only if they are too large."""
    with pytest.raises(DeviceMemoryError, match=f"{missing} are missing") as caught:
        _check_room(device(ALL - missing), make_plan("net"), CODE, "loaded")
    assert advice in str(caught.value)
    for line in ("code: 1,000 bytes", "weights: 16 bytes", "workspace: 48 bytes", "outputs: 32 bytes"):
        assert line in str(caught.value)


def test_weights_that_are_in_the_image_are_no_advice() -> None:
    for given in (device(ALL - 17), device(79, CODE), device(80, CODE - 1)):
        with pytest.raises(DeviceMemoryError, match="take a smaller model"):
            _check_room(given, make_plan("net"), CODE, "image")


def measured(*cycles: int) -> Measurement:
    samples = tuple(Sample(cycle, 1) for cycle in cycles)
    return Measurement(
        name="f", clock=DeviceClock(ticks_hz=1_000_000), samples=samples, overhead=Overhead(0, 0)
    )


@pytest.mark.extra("plot")
def test_a_picture_of_a_run(tmp_path: Path) -> None:
    """The picture has the run's time, and each operator's share."""
    operators = (OperatorTime("first", measured(250)), OperatorTime("second" * 9, measured(700, 800, 750)))
    run = ModelRun("net", {}, measured(900, 1000, 2000), operators, 0, 0, 0, 0, 0, 0)
    draw_runs({"mine": run, "other": replace(run, whole=measured(2000))}, tmp_path / "p.svg")
    text = (tmp_path / "p.svg").read_text()
    for part in ("mine: 1 ms a run", "other: 2 ms a run", "25.0%", "75.0%", "12.5%", "37.5%", "0 first"):
        assert part in text
    assert f"1 {('second' * 9)[:40]}..." in text
    assert np.isclose(run.share(operators[1]), 0.75)
