# SPDX-License-Identifier: Apache-2.0
"""`minrpc size`: a program's memory as tables, JSON, a picture, and Zephyr's size_report."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from minrpc.cli import main
from minrpc.firmware.firmware import elf_sizes


def test_a_platforms_firmware(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept, drawn, reports = tmp_path / "size.json", tmp_path / "map.svg", tmp_path / "reports"
    given = ["size", "--platform", "posix", "--json", str(kept), "--treemap", str(drawn)]
    assert main([*given, "--size-report", str(reports), "--by", "file", "--top", "3"]) == 0
    shown = capsys.readouterr().out
    assert "/runtime/" in shown
    assert " more " in shown
    (program,) = json.loads(kept.read_text())["programs"]
    for memory in ("flash", "ram"):
        total = program[f"{memory}_bytes"]
        assert total == sum(item["size_bytes"] for item in program["pieces"] if item["memory"] == memory)
        assert f"{total:,}" in shown
    assert json.loads((reports / "rom.json").read_text())["total_size"] == program["flash_bytes"]
    assert json.loads((reports / "ram.json").read_text())["symbols"]["size"] == program["ram_bytes"]
    assert "<title>posix, flash: " in drawn.read_text()


def test_any_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elf = Path("/bin/true")
    assert main(["size", str(elf), "--top", "1"]) == 0
    assert f"true: flash {elf_sizes(elf).flash:,} bytes" in capsys.readouterr().out
    text = tmp_path / "text"
    text.write_text("no program")
    assert main(["size", str(text)]) == 2
    assert "is no ELF file" in capsys.readouterr().err
    assert main(["size", str(tmp_path / "none")]) == 2
    for further in (["--platform", "posix"], ["--cmake-option=-DX=1"]):
        assert main(["size", str(elf), *further]) == 2
        assert f"of no use with {elf}, a finished program" in capsys.readouterr().err
    assert main(["size", "--platform", "posix,bare_mps2_an385", "--treemap", str(tmp_path / "m.svg")]) == 2
    assert "take one platform" in capsys.readouterr().err


def test_a_file_that_is_cut_off_and_an_object_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = tmp_path / "cut"
    cut.write_bytes(Path("/bin/true").read_bytes()[:700])
    assert main(["size", str(cut)]) == 2
    assert "is damaged or cut off" in capsys.readouterr().err
    source, unlinked = tmp_path / "two.c", tmp_path / "two.o"
    source.write_text("char big[1000]; int one = 1; int f(void) { return one; }\n")
    subprocess.run(["cc", "-c", str(source), "-o", str(unlinked)], check=True)
    assert main(["size", str(unlinked)]) == 2
    assert "has no load segments" in capsys.readouterr().err
    assert main(["size", "/bin/true", "--top", "0"]) == 2
    assert "--top is at least 1" in capsys.readouterr().err


@pytest.mark.slow
def test_a_boards_firmware_is_only_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "minrpc.toml").write_text('[platforms.desk]\nextends = "bare_mps2_an385"\nstarts = "board"\n')
    monkeypatch.chdir(tmp_path)
    assert main(["size", "--platform", "desk", "--by", "component"]) == 0
    assert "desk: flash " in capsys.readouterr().out
    assert main(["info", "--platform", "desk"]) == 2
    assert "boards are not started from here" in capsys.readouterr().err
