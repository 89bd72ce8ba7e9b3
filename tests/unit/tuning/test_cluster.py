# SPDX-License-Identifier: Apache-2.0
"""Candidates judged by two workers of a Dask cluster, each a process with devices of its own."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from minrpc import ConfigurationError, Target, build, lacking
from minrpc.tuning import CandidateResult, Kernel, Space, tune
from minrpc.tuning.cluster import DaskWorkers

pytestmark = pytest.mark.extra("dask")

SOURCE = Path(__file__).parents[2] / "device" / "c" / "tuned.c"
CHECK = """
import numpy as np


def right(a, b, n):
    return int(np.dot(a[:n].astype(np.int32), b[:n].astype(np.int32)))
"""
SPACE = Space({"FAULT": ["0", "2", "3", "5"], "UNROLL": ["1", "2", "4", "8"]})


def kernel_in(directory: Path) -> Kernel:
    """A kernel with a check from a file that can't be imported, as the command line loads it."""
    file = directory / "ref.py"
    file.write_text(CHECK)
    spec = importlib.util.spec_from_file_location("ref", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-128, 128, 64, np.int8) for _ in range(2))
    return Kernel(SOURCE, "dot", (a, b, 64), module.right)


def told(results: list[CandidateResult]) -> dict[int, tuple[object, ...]]:
    return {result.candidate.number: (result.outcome, result.cost, result.code_bytes) for result in results}


def test_two_workers_say_what_one_device_says(tmp_path: Path) -> None:
    import distributed

    target = Target.named("bare_mps2_an385")
    if lacks := lacking(target.platform):
        pytest.skip("; ".join(requirement.name for requirement in lacks))
    kernel, firmware = kernel_in(tmp_path), build(target)
    here = told(list(tune(kernel, SPACE, firmware)))
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        workers = DaskWorkers(cluster.scheduler_address, kernel, target)
        there = list(tune(kernel, SPACE, firmware, workers=workers))
    assert told(there) == here
    assert {item.outcome for item in there} == {"correct", "link", "crash", "wrong"}


def test_nobody_at_the_address_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minrpc.tuning.cluster._CONNECT_S", 0.5)
    with pytest.raises(ConfigurationError, match="no Dask scheduler answers at"):
        DaskWorkers("tcp://127.0.0.1:1", kernel_in(tmp_path), Target.named("posix"))
