# SPDX-License-Identifier: Apache-2.0
"""Archives in Model Library Format become plans, and their C code runs."""

from __future__ import annotations

import ctypes
import gzip
import io
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from minrpc_models.errors import ModelError
from minrpc_models.mlf import read_mlf, read_params
from minrpc_models.plan import ModelPlan

from tests.models import mlf_archive, waveforms
from tests.models.test_export import compiled


@cache
def network() -> waveforms.Network:
    return waveforms.trained(50)


def check(plan: ModelPlan, directory: Path, name: str = "net") -> None:
    library = compiled(directory, plan)
    signals, _ = waveforms.waveforms(1, 9)
    scores = np.zeros((1, waveforms.CLASSES), np.float32)
    inputs, outputs = (ctypes.c_void_p * 1)(signals.ctypes.data), (ctypes.c_void_p * 1)(scores.ctypes.data)
    assert getattr(library, f"tvmgen_{name}_run")(inputs, outputs) == 0
    np.testing.assert_allclose(scores, network().scores(signals), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("version", [5, 6, 7])
def test_a_graph(version: int, tmp_path: Path) -> None:
    plan = read_mlf(mlf_archive.write_graph(tmp_path / "net.tar", network(), version), "net")
    assert [(name, tensor.shape) for name, tensor in plan.inputs] == [("x", (1, 1, waveforms.SAMPLES))]
    assert [operator.function for operator in plan.operators] == [mlf_archive.FIRST, mlf_archive.SECOND]
    assert [operator.workspace for operator in plan.operators] == [
        4 * waveforms.HIDDEN,
        4 * waveforms.CLASSES,
    ]
    assert plan.storages == (4 * waveforms.HIDDEN,)
    assert plan.constant_bytes == sum(
        item.nbytes for item in (network().w1, network().b1, network().w2, network().b2)
    )
    check(plan, tmp_path)


def test_nodes_with_two_outputs_and_storages_that_tensors_share(tmp_path: Path) -> None:
    """A storage is as large as its largest tensor, in any order; a node's outputs are distinguished."""
    plan = read_mlf(mlf_archive.write_split(tmp_path / "net.tar"), "net")
    assert plan.storages == (64, 16)
    split, join, _ = plan.operators
    assert [(tensor.place, tensor.index, tensor.shape) for tensor in split.tensors] == [
        ("input", 0, (4,)),
        ("storage", 0, (16,)),
        ("storage", 1, (4,)),
    ]
    assert [(tensor.place, tensor.index, tensor.shape) for tensor in join.tensors] == [
        ("storage", 1, (2, 2)),
        ("storage", 0, (16,)),
        ("storage", 0, (4,)),
    ]
    library = compiled(tmp_path, plan)
    x, y = np.array([1, 2, 3, 4], np.float32), np.zeros(4, np.float32)
    inputs, outputs = (ctypes.c_void_p * 1)(x.ctypes.data), (ctypes.c_void_p * 1)(y.ctypes.data)
    assert library.tvmgen_net_run(inputs, outputs) == 0
    assert y.tolist() == [7, 9, 11, 13]


@pytest.mark.parametrize("version", [5, 7])
@pytest.mark.parametrize(
    "form",
    [{}, {"system_lib": True}, {"pools": True}, {"field": "_in_0"}, {"packed": True}],
    ids=lambda form: " ".join(form),
)
def test_aot(version: int, form: dict[str, Any], tmp_path: Path) -> None:
    plan = read_mlf(mlf_archive.write_aot(tmp_path / "net.tar", network(), version, **form), "net")
    assert [name for name, _ in plan.inputs] == [form.get("field", "x")]
    assert [name for name, _ in plan.outputs] == ["output"]
    check(plan, tmp_path)


def test_aot_of_the_name_that_it_has_in_its_archive(tmp_path: Path) -> None:
    """Both the archive and the library have a function tvmgen_default_run."""
    plan = read_mlf(mlf_archive.write_aot(tmp_path / "default.tar", network(), 6), "default")
    check(plan, tmp_path, "default")


def test_what_takes_devices_is_refused(tmp_path: Path) -> None:
    path = mlf_archive.write_aot(tmp_path / "net.tar", network(), devices=True)
    with pytest.raises(ModelError, match=r"net\.tar: tvmgen_default_run takes devices"):
        read_mlf(path, "net")


def test_other_versions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="has version 4; versions 5 to 7 are read"):
        read_mlf(mlf_archive.write_graph(tmp_path / "net.tar", network(), 4), "net")


def test_what_is_no_archive(tmp_path: Path) -> None:
    path = tmp_path / "net.tar"
    path.write_bytes(b"text")
    with pytest.raises(ModelError, match="is no archive in TVM's Model Library Format"):
        read_mlf(path, "net")
    with tarfile.open(path, "w"):
        pass
    with pytest.raises(ModelError, match="KeyError"):
        read_mlf(path, "net")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("metadata.json", b"[]"),
        ("metadata.json", b'{"version": 7, "modules": [1]}'),
        ("executor-config/graph/default.graph", b"{}"),
        ("executor-config/graph/default.graph", b"no JSON"),
    ],
)
def test_files_that_are_damaged(file: str, content: bytes, tmp_path: Path) -> None:
    whole, path = mlf_archive.write_graph(tmp_path / "whole.tar", network(), 7), tmp_path / "net.tar"
    with tarfile.open(whole) as source, tarfile.open(path, "w") as archive:
        for member in source.getmembers():
            stream = source.extractfile(member)
            data = content if member.name.endswith(file) else stream.read() if stream else b""
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    with pytest.raises(ModelError, match=r"net\.tar is no archive in TVM's Model Library Format"):
        read_mlf(path, "net")


def test_an_archive_that_is_cut(tmp_path: Path) -> None:
    whole, path = mlf_archive.write_graph(tmp_path / "whole.tar", network(), 7), tmp_path / "net.tar"
    data = gzip.compress(whole.read_bytes())
    for size in (len(data) // 4, len(data) // 2):
        path.write_bytes(data[:size])
        with pytest.raises(ModelError, match=r"net\.tar is no archive in TVM's Model Library Format"):
            read_mlf(path, "net")


@pytest.mark.parametrize("size", [0, 8, 30, 100])
def test_weights_that_are_cut(size: int) -> None:
    data = mlf_archive.params({"p0": network().w1, "p1": network().b1})
    np.testing.assert_array_equal(read_params(data, "net")["p1"], network().b1)
    with pytest.raises(ModelError, match="the weights in net can't be read"):
        read_params(data[:size], "net")
