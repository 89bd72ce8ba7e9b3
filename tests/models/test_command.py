# SPDX-License-Identifier: Apache-2.0
"""`minrpc model`, run and exported."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from minrpc.cli import main

from tests.models import mlf_archive, waveforms
from tests.models.onnx_model import need_gather, write_nodes, write_onnx
from tests.models.test_onnx_files import branching

pytestmark = pytest.mark.extra("tvm")


def test_it_runs_and_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_onnx(tmp_path / "net.onnx")
    result, plot = tmp_path / "r.json", tmp_path / "r.svg"
    words = ["--platform", "posix", "--json", str(result), "--plot", str(plot)]
    assert main(["model", str(path), *words]) == 0
    assert "a run" in plot.read_text()
    shown = capsys.readouterr().out
    assert "output0  right" in shown
    assert "all operators" in shown
    (found,) = json.loads(result.read_text())["models"]
    assert found["passed"]
    assert [item["calls"] for item in found["operators"]] == [1] * len(found["operators"])
    assert found["weight_bytes"] == 4 * (36 + 4 + 1024 * 5 + 5)


def test_nan_where_tvm_has_it_is_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, result = write_nodes(tmp_path / "net.onnx", ("Log", [("a", "float32", [20])])), tmp_path / "r.json"
    assert main(["model", str(path), "--platform", "posix", "--json", str(result)]) == 0
    assert re.search(r"output0  right, .*; nan or infinity: \d+, as TVM's", capsys.readouterr().out)
    (found,) = json.loads(result.read_text())["models"]
    assert found["errors_ratio"]["output0"] < 1e-5


def test_a_file_with_open_shapes_and_a_branch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The model's last output is an input. onnxruntime computes the unchanged file."""
    import onnx

    file, result = tmp_path / "net.onnx", tmp_path / "r.json"
    model = branching()
    model.graph.output.append(onnx.helper.make_empty_tensor_value_info("x"))
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "n"
    onnx.save(model, str(file))
    words = ["model", str(file), "--platform", "posix", "--repeat", "1", "--json", str(result)]
    assert main([*words, "--shape", "x=1,4", "--constant", "sr=16000"]) == 0
    shown = capsys.readouterr().out
    assert "input  x: float32[1, 4]\n" in shown
    assert shown.count("against onnxruntime") == 2
    (found,) = json.loads(result.read_text())["models"]
    assert set(found["onnxruntime_errors_ratio"]) == {"output0", "output1"}
    for further, text in [
        ([], "--shape x=1,N1"),
        (["--shape", "x=1,0"], "a shape is numbers from 1 on"),
        (["--shape", "x"], "--shape x has no name and value"),
        (["--shape", "n=4"], "--constant sr=VALUE"),
        (["--constant", "sr=fast"], "--constant sr=fast is no number"),
    ]:
        assert main([*words, *further]) == 2
        assert text in capsys.readouterr().err


@pytest.mark.parametrize("operator", ["Abs", "Softsign", "Softplus"])
def test_operators_with_the_absolute_value_of_a_float(operator: str, tmp_path: Path) -> None:
    """TVM has no C for the absolute value. The result is compared with TVM's code for this machine, which
    LLVM makes."""
    path = write_nodes(tmp_path / "net.onnx", (operator, [("a", "float32", [20])]))
    assert main(["model", str(path), "--platform", "posix", "--repeat", "1"]) == 0


def test_inputs_with_names_that_c_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = [(name, "float32", [2, 3]) for name in ("int", "self")]
    path = write_nodes(tmp_path / "while.onnx", ("Add", inputs), ("Mul", [("X", "float32", [2, 1])]))
    assert main(["model", str(path), "--platform", "posix"]) == 0
    shown = capsys.readouterr().out
    assert 'input  int_: float32[2, 3], the model\'s "int"\n  input  self: float32[2, 3]\n' in shown
    assert "output0  right" in shown


def test_two_platforms_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_onnx(tmp_path / "net.onnx")
    assert main(["model", str(path), "--platform", "posix,bare_mps2_an385", "--repeat", "1"]) == 0
    (header,) = (line for line in capsys.readouterr().out.splitlines() if "posix |" in line)
    assert [cell.strip() for cell in header.split("|")] == [
        "",
        "#",
        "operator",
        "posix",
        "bare_mps2_an385",
        "",
    ]


def test_a_platform_that_fails_leaves_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first platform has 16 KB of RAM; the weights take 20 KB."""
    path, result = write_onnx(tmp_path / "net.onnx"), tmp_path / "r.json"
    words = ["--platform", "bare_microbit,posix", "--repeat", "1", "--json", str(result)]
    assert main(["model", str(path), *words]) == 1
    written = capsys.readouterr()
    refused, found = json.loads(result.read_text())["models"]
    assert (refused["platform"], refused["passed"]) == ("bare_microbit", False)
    assert (found["platform"], found["passed"], found["failure"]) == ("posix", True, None)
    told = refused["failure"]
    assert told["class"] == "DeviceMemoryError"
    assert "bytes of bare_microbit's memory" in told["message"]
    assert f"bare_microbit: FAILED: {told['message']}" in written.out
    assert "minrpc: bare_microbit: " in written.err
    assert "output0  right" in written.out


def test_weights_that_fit_nowhere_are_refused_before_tvm_compiles(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The model takes a megabyte, and RAM has 16 KB: the flash is too small, too."""
    weights = {"w": np.ones((512, 512), np.float32)}
    tensors = [("x", "float32", [1, 512]), ("w", "float32", [512, 512])]
    path, result = (
        write_nodes(tmp_path / "big.onnx", ("MatMul", tensors), constants=weights),
        tmp_path / "r.json",
    )
    words = ["model", str(path), "--repeat", "1", "--json", str(result), "--platform"]
    assert main([*words, "bare_microbit"]) == 1
    written = capsys.readouterr()
    assert "weights: 1,048,576 bytes" in written.err
    assert "next: take a smaller model" in written.err
    assert "operators" not in written.out
    assert main([*words, "bare_microbit,posix"]) == 1
    assert capsys.readouterr().out.index("FAILED") < 100
    refused, found = json.loads(result.read_text())["models"]
    assert refused["failure"]["class"] == "DeviceMemoryError"
    assert found["passed"]


def test_counters_of_each_operator(tmp_path: Path) -> None:
    """Under icount cycles follow instructions, apart from the cost of measuring."""
    path, result = write_onnx(tmp_path / "net.onnx"), tmp_path / "r.json"
    words = ["--platform", "bare_mps2_an385", "--counters", "instructions,loads", "--json", str(result)]
    assert main(["model", str(path), *words]) == 0
    (found,) = json.loads(result.read_text())["models"]
    counted = sum(item["counters"]["instructions"] for item in found["operators"])
    assert abs(counted / found["run_instructions"] - 1) < 0.01
    for item in found["operators"]:
        assert item["counters"]["instructions"] > item["counters"]["loads"] > 0


def test_an_archive_of_older_tvm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = mlf_archive.write_graph(tmp_path / "old.tar", waveforms.trained(10), 6)
    assert main(["model", str(path), "--platform", "posix"]) == 0
    shown = capsys.readouterr().out
    assert "output0  not compared" in shown
    assert mlf_archive.SECOND in shown


def test_it_is_exported_and_compiles_without_a_warning(tmp_path: Path) -> None:
    path = write_onnx(tmp_path / "net.onnx")
    out = tmp_path / "out"
    assert main(["model", str(path), "--export", str(out)]) == 0
    for source in (out / "src").glob("*.c"):
        command = ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{out}/include", "-c", str(source)]
        subprocess.run([*command, "-o", "/dev/null"], check=True)


def test_what_can_not_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", str(tmp_path / "none.onnx"), "--platform", "posix"]) != 0
    assert "there is no file" in capsys.readouterr().err


def test_what_tvm_can_not_import(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error has one line of TVM's text, with the operator's name."""
    kinds: list[tuple[str, list[int]]] = [("uint8", [4, 4]), ("float32", []), ("uint8", [])]
    tensors = [(f"i{number}", *kind) for number, kind in enumerate((*kinds, *kinds, *kinds[1:]))]
    path = write_nodes(tmp_path / "net.onnx", ("QLinearMatMul", tensors))
    (tmp_path / "empty.onnx").touch()
    for file, text in ((path, "QLinearMatMul"), (tmp_path / "empty.onnx", "IR version 0 not supported")):
        assert main(["model", str(file), "--platform", "posix"]) == 2
        first, *rest = capsys.readouterr().err.splitlines()
        assert first.startswith(f"minrpc: TVM's importer can't read {file.name}: ")
        assert text in first
        assert rest[-1].startswith("  next: ")
        assert len(rest) < 4


def embedding(path: Path) -> Path:
    """Rows of a table of 10, by 500 indices."""
    need_gather()
    table = np.arange(40, dtype=np.float32).reshape(10, 4)
    tensors = [("table", "float32", [10, 4]), ("tokens", "int64", [500])]
    return write_nodes(path, ("Gather", tensors), constants={"table": table})


def test_random_indices_are_in_range(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = embedding(tmp_path / "net.onnx")
    assert main(["model", str(path), "--platform", "posix", "--repeat", "1"]) == 0
    assert "output0  right" in capsys.readouterr().out


def test_inputs_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, file = embedding(tmp_path / "net.onnx"), tmp_path / "x.npz"
    words = ["model", str(path), "--platform", "posix", "--repeat", "1", "--inputs", str(file)]
    np.savez(file, tokens=np.arange(500) % 10)
    assert main(words) == 0
    capsys.readouterr()
    tokens = np.arange(500) % 10
    for arrays, text in [
        ({}, "net takes tokens, not nothing"),
        ({"x": tokens}, "net takes tokens, not x"),
        ({"tokens": tokens, "x": tokens}, "net takes tokens, not tokens, x"),
        ({"tokens": tokens[1:]}, "net: tokens is int64[500], not int64[499]"),
        ({"tokens": tokens.astype(np.int32)}, "net: tokens is int64[500], not int32[500]"),
        ({"tokens": np.array([{}])}, "x.npz has no named arrays"),
    ]:
        np.savez(file, **arrays)  # type: ignore[arg-type]
        assert main(words) == 2
        assert text in capsys.readouterr().err
    for content, text in [(b"text", "has no named arrays"), (b"", "has no named arrays")]:
        file.write_bytes(content)
        assert main(words) == 2
        assert text in capsys.readouterr().err
    with file.open("wb") as stream:
        np.save(stream, tokens)
    assert main(words) == 2
    assert "has no named arrays" in capsys.readouterr().err
    file.unlink()
    assert main(words) == 2
    assert "x.npz can't be read: No such file" in capsys.readouterr().err


def test_inputs_by_the_models_own_names(tmp_path: Path) -> None:
    path, file = tmp_path / "net.onnx", tmp_path / "x.npz"
    write_nodes(path, ("Add", [(name, "float32", [2]) for name in ("int", "a.b")]))
    for names in (("int", "a.b"), ("int_", "a_b")):
        np.savez(file, **{name: np.ones(2, np.float32) for name in names})  # type: ignore[arg-type]
        assert main(["model", str(path), "--platform", "posix", "--repeat", "1", "--inputs", str(file)]) == 0


def test_a_division_by_zero_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, file = tmp_path / "net.onnx", tmp_path / "x.npz"
    write_nodes(path, ("Div", [(name, "int32", [600]) for name in ("a", "b")]))
    words = ["model", str(path), "--platform", "posix", "--repeat", "1"]
    assert main(words) == 2
    error = capsys.readouterr().err
    assert "TVM's run of the model on this machine, to compare with, ended: killed by SIGFPE" in error
    assert "--inputs FILE.npz" in error
    np.savez(file, a=np.arange(600, dtype=np.int32), b=np.arange(1, 601, dtype=np.int32))
    assert main([*words, "--inputs", str(file)]) == 0


def test_a_cache_that_can_not_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may write anywhere, so a file is at the directory's path."""
    path = write_onnx(tmp_path / "net.onnx")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "minrpc").mkdir()
    (tmp_path / "minrpc" / "scratch").touch()
    assert main(["model", str(path), "--platform", "posix"]) == 2
    assert "the cache can't be written" in capsys.readouterr().err
