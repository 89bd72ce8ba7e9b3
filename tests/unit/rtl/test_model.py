# SPDX-License-Identifier: Apache-2.0
"""Programs of RTL: what can't be built is an error that says why."""

from pathlib import Path

import pytest
from minrpc.errors import BuildError, ConfigurationError, HarnessError, ToolchainMissingError
from minrpc.pipeline.requirements import lacking
from minrpc.rtl import model_of
from minrpc.targets import load_platforms
from minrpc.targets.rtl import IBEX, Rtl

pytestmark = [pytest.mark.usefixtures("verilator"), pytest.mark.slow]

NO_PORTS = "module top(input clk_i, input rst_ni, output logic instr_req_o);\nendmodule\n"


@pytest.fixture
def verilator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for need in lacking(load_platforms()["rtl_ibex"]):
        if need.name == "verilator":
            pytest.skip(need.problem)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def rtl(directory: Path, text: str) -> Rtl:
    (directory / "top.sv").write_text(text)
    return Rtl("top", "obi", (str(directory / "top.sv"),))


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("module top;\n  missing_cell cell_i();\nendmodule\n", BuildError, "top.sv:2:3: Cannot find file"),
        (NO_PORTS, ConfigurationError, "no port instr_gnt_i, instr_rvalid_i"),
    ],
)
def test_what_can_not_be_built(tmp_path: Path, text: str, error: type[HarnessError], says: str) -> None:
    with pytest.raises(error) as caught:
        model_of(rtl(tmp_path, text))
    assert says in str(caught.value)
    assert not [path for path in (tmp_path / "minrpc/rtl").iterdir() if path.is_dir()]


def test_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ToolchainMissingError, match=r"minrpc-harness\[rtl\]"):
        model_of(IBEX._replace(package="pythondata_cpu_absent"))
