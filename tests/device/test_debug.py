# SPDX-License-Identifier: Apache-2.0
"""gdb at a call: its own words about arguments and results, and the device after each end of gdb."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from minrpc import CFunctions, ConfigurationError, HarnessError, RunningDevice, debug
from minrpc.cli import main
from minrpc.library import LoadedLibrary

from tests.native import need_builtin

pytestmark = pytest.mark.skipif(
    shutil.which("gdb-multiarch") is None, reason="gdb-multiarch is not installed"
)

_SOURCE = """
int total(const int *values, int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++) {
		sum += values[i];
	}
	return sum;
}
int crash(void)
{
	__builtin_trap();
}
"""


@pytest.fixture
def lib(running_device: RunningDevice, load: Callable[..., LoadedLibrary], tmp_path: Path) -> CFunctions:
    if running_device.platform.starts not in ("qemu", "process"):
        pytest.skip("gdb reaches QEMU, processes, and boards by their probes")
    source = tmp_path / "total.c"
    source.write_text(_SOURCE)
    return CFunctions(load(source))


def total(lib: CFunctions) -> object:
    return lib.total(np.array([1, 2, 39], np.int32), 3)


def test_gdb_stops_at_the_call(lib: CFunctions, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["info args", "print values[2]", "backtrace 1", "finish"]
    with debug(lib, "total", gdb=["-batch", *(part for word in words for part in ("-ex", word))]):
        assert total(lib) == 42
    shown = capfd.readouterr().out
    for text in ("n = 3", "$1 = 39", "total.c:", "Value returned is $2 = 42"):
        assert text in shown
    assert total(lib) == 42


@pytest.mark.parametrize("end", ["shell kill -9 $PPID", "detach"])
def test_the_call_goes_on_when_gdb_has_ended(
    lib: CFunctions, running_device: RunningDevice, end: str
) -> None:
    if end != "detach" and running_device.qemu is None:
        pytest.skip("a process keeps the breakpoints of a killed gdb")
    with debug(lib, "total", gdb=["-batch", "-ex", end]):
        assert total(lib) == 42
    assert total(lib) == 42


def test_a_crash_under_gdb_is_explained(lib: CFunctions) -> None:
    with pytest.raises(HarnessError, match="crash"), debug(lib, "crash", gdb=["-batch", "-ex", "detach"]):
        lib.crash()


def test_gdb_that_can_not_begin(lib: CFunctions) -> None:
    with pytest.raises(HarnessError, match="before it was attached"), debug(lib, "total", gdb=["--nonsense"]):
        raise AssertionError
    assert total(lib) == 42


def test_the_gdb_server_of_a_probe_is_for_boards(lib: CFunctions) -> None:
    with (
        pytest.raises(ConfigurationError, match=r"is for a board: \w+ is started here"),
        debug(lib, "total", gdb_server="localhost:3333"),
    ):
        raise AssertionError
    assert total(lib) == 42


def test_an_unknown_function(lib: CFunctions) -> None:
    with pytest.raises(KeyError, match="total"), debug(lib, "totl"):
        raise AssertionError


@pytest.mark.usefixtures("lib")
def test_the_command(
    running_device: RunningDevice, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    need_builtin(running_device.name)
    (tmp_path / "add.c").write_text("int sum(int a, int b) { return a + b; }")
    words = ["debug", str(tmp_path / "add.c"), "sum", "--arg", "20", "--arg", "22"]
    assert main([*words, "--platform", running_device.name, "--gdb", "-batch -ex 'info args'"]) == 0
    shown = capfd.readouterr().out
    assert "b = 22" in shown
    assert "returned 42" in shown
