# SPDX-License-Identifier: Apache-2.0
"""One measurement: `time`, `report`, `profile` and Python give the same figures of a call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from minrpc import CallOptions, Firmware, record_call, run_of_calls, write_page
from minrpc.cli import main

pytestmark = pytest.mark.once

SOURCE = "int total(const short *x, int n) { int sum = 0; while (n--) sum += *x++; return sum; }\n"
FIGURES = ("function_bytes", "code_bytes", "code_compiler", "code_flags", "inclusive", "arguments")


@pytest.mark.once
def test_a_call_has_the_same_figures_in_every_command_and_in_python(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, name = tmp_path / "total.c", "bare_mps2_an385"
    source.write_text(SOURCE)
    given = ["total", "--source", str(source), "--arg", "int16[8]", "--arg", "8", "--platform", name]
    found: list[dict[str, Any]] = []
    for command, more in (("time", ["--counters", "all", "--memory"]), ("report", [])):
        kept = tmp_path / f"{command}.json"
        assert main([command, *given, *more, "--json", str(kept)]) == 0
        found += json.loads(kept.read_text())["timings"]
    options = CallOptions(profile="instructions")
    call = record_call(name, "total", np.ones(8, np.int16), 8, sources=source, options=options)
    found.append(call.record.to_json())
    assert call.profile is not None
    for record in found:
        assert [record[key] for key in FIGURES] == [found[0][key] for key in FIGURES]
        assert record["memory_bytes"]["stack"] == found[0]["memory_bytes"]["stack"]
        assert record["inclusive"]["instructions"] == call.profile.inclusive
        counted = record["samples"][0]
        assert counted["columns"]["instructions"] / counted["number"] > call.profile.inclusive
    capsys.readouterr()
    assert main(["profile", *given]) == 0
    assert f"on {name}: {call.profile.inclusive} instructions\n" in capsys.readouterr().out


def test_python_makes_the_page_of_a_call(firmware: Firmware, tmp_path: Path) -> None:
    if firmware is None:
        pytest.skip("its firmware is its own")
    call = record_call(firmware, "inc", 5, options=CallOptions(repeat=3, profile="instructions"))
    assert call.record.call == "inc(5)"
    assert 4 <= call.record.code.function_bytes < 400
    for file in ("inc.html", "inc.md", "inc.json"):
        write_page(tmp_path / file, run_of_calls([call]))
        assert "inc(5)" in (tmp_path / file).read_text().replace('"function": "inc"', "inc(5)")
