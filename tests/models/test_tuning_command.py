# SPDX-License-Identifier: Apache-2.0
"""`minrpc model --tune` and `--tuned`: schedules are found, kept, applied and exported, or refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from minrpc.cli import main
from minrpc.host import sandbox

from tests.models import mlf_archive, waveforms
from tests.models.onnx_model import write_nodes

pytestmark = pytest.mark.extra("tvm")

FLAGS = ["--flags", "-O1"]


def dense(path: Path, size: int = 16) -> Path:
    """y = x @ w, of floats that are small integers: each order of additions has the same sums."""
    weights = np.random.default_rng(1).integers(-4, 5, (size, size)).astype(np.float32)
    x, w = ("x", "float32", [size, size]), ("w", "float32", [size, size])
    return write_nodes(path, ("MatMul", [x, w]), constants={"w": weights})


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the model, the schedules "found" and the results of tuning in "r.json"."""
    home = tmp_path_factory.mktemp("tuned")
    model = dense(home / "net.onnx")
    words = ["model", str(model), "--platform", "posix", "--repeat", "1", *FLAGS]
    assert main([*words, "--tune", "4", "--tuned", str(home / "found"), "--json", str(home / "r.json")]) == 0
    return home


def command(home: Path, *words: object) -> list[str]:
    return ["model", str(home / "net.onnx"), "--platform", "posix", "--repeat", "1", *map(str, words)]


def test_the_gain_is_told(tuned: Path) -> None:
    (found,) = json.loads((tuned / "r.json").read_text())["models"]
    assert found["passed"]
    (item,) = found["tuned"]
    assert item["function"] == found["operators"][0]["function"] == "matmul"
    assert item["tuned_ticks"] == found["operators"][0]["run_ticks"]
    assert item["untuned_ticks"] > 0


def test_tvm_finds_the_exported_loops_in_the_database(
    tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By TVM's own query. The first record is of TVM's own loops, the others are of schedules."""
    import tvm
    from minrpc_models import model_of
    from minrpc_models.relax import c_source
    from tvm.s_tir import meta_schedule

    assert main(command(tuned, "--tuned", tuned / "found", "--export", tmp_path / "net")) == 0
    assert "X86_64 -O1" in capsys.readouterr().out
    database = meta_schedule.database.JSONDatabase(work_dir=str(tuned / "found"))
    records = database.get_all_tuning_records()
    assert 2 <= len(records) <= 5
    function = model_of(tuned / "net.onnx").lowered["matmul"]
    module = tvm.IRModule({"main": function.with_attr("global_symbol", "main").without_attr("op_pattern")})
    best = database.query_ir_module(module, tvm.target.Target("c"), "main")
    code = c_source(best).partition("__tvm_ffi_main(")[2].partition("{\n")[2]
    exported = "".join(path.read_text() for path in (tmp_path / "net" / "src").glob("*.c"))
    loops = [line.strip() for line in code.splitlines() if "for (" in line]
    assert loops
    assert all(line in exported for line in loops)


def test_a_second_tuning_adds_to_the_directory(tuned: Path, tmp_path: Path) -> None:
    found = shutil.copytree(tuned / "found", tmp_path / "found")
    before = (found / "database_tuning_record.json").read_text()
    assert main(command(tuned, "--tune", 1, "--tuned", found)) == 0
    after = (found / "database_tuning_record.json").read_text()
    assert after.startswith(before)
    assert '"X86_64 -O2"' in after[len(before) :]


def test_schedules_need_a_sandbox(
    tuned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sandbox, "why_not", lambda: "the kernel forbids it")
    tuning = command(tuned, "--tune", 1, "--tuned", tmp_path / "found")
    assert main(tuning) != 0
    assert "or --no-sandbox: schedules have your rights" in capsys.readouterr().err
    assert main([*tuning, "--no-sandbox"]) == 0


def break_records(found: Path) -> None:
    (found / "database_tuning_record.json").write_text("[0, [")


def remove_workloads(found: Path) -> None:
    (found / "database_workload.json").unlink()


@pytest.mark.parametrize(
    ("spoil", "words", "told"),
    [
        (None, ["--flags", "-O3"], "has no schedules for X86_64 -O3, only for X86_64 -O1"),
        (break_records, ["--export", "net"], "found: "),
        (remove_workloads, [], "is no database of schedules: it has no database_workload.json"),
        (None, ["--tune", "0"], "--tune is at least 1, not 0"),
        (None, ["--tune", "2", "--export", "net"], "--export runs nothing, so nothing can be tuned"),
    ],
)
def test_it_refuses(
    spoil: Any,  # noqa: ANN401
    words: list[str],
    told: str,
    tuned: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = shutil.copytree(tuned / "found", tmp_path / "found")
    if spoil:
        spoil(found)
    assert main(command(tuned, *words, "--tuned", found)) != 0
    assert told in capsys.readouterr().err


def test_it_refuses_another_model(tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = dense(tmp_path / "other.onnx", 8)
    words = ["--export", str(tmp_path / "net"), "--tuned", str(tuned / "found")]
    assert main(["model", str(other), *words]) != 0
    assert not (tmp_path / "net").exists()
    assert "has no schedule for any operator of other: another model was tuned" in capsys.readouterr().err


def test_it_refuses_an_archive(tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = mlf_archive.write_graph(tmp_path / "old.tar", waveforms.trained(10), 6)
    assert main(["model", str(path), "--export", "net", "--tuned", str(tuned / "found")]) != 0
    assert "old is an archive of C code, whose loops TVM can't schedule" in capsys.readouterr().err


def test_a_directory_is_needed(tuned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command(tuned, "--tune", 2)) != 0
    assert "--tune needs a directory for the schedules" in capsys.readouterr().err
