# SPDX-License-Identifier: Apache-2.0
"""Programs and accesses that a core's table has no cycles for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from minrpc import ConfigurationError, QemuCounters, counters_for
from minrpc.cycles import load_core

from tests.native import need_tools

SOURCE = """
void minrpc_timer_start(void) {}
void minrpc_timer_stop(void) {}
float _start(float x) { return x; }
"""


def elf_of(directory: Path, flags: str) -> Path:
    need_tools("arm-none-eabi-gcc")
    (directory / "a.c").write_text(SOURCE)
    command = ["arm-none-eabi-gcc", "-g", "-mthumb", "-nostdlib", *flags.split(), "a.c", "-o", "a.elf"]
    subprocess.run(command, cwd=directory, check=True)
    return directory / "a.elf"


@pytest.mark.parametrize("flags", ["-mcpu=cortex-m33", "-mcpu=cortex-m7 -mfloat-abi=hard -mfpu=fpv5-d16"])
def test_a_program_of_a_later_core_has_no_cycles_of_a_cortex_m4(flags: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="later than Cortex-M4"):
        counters_for(elf_of(tmp_path, flags), core=load_core("cortex-m4"))


def test_a_cortex_m7_without_an_fpu_has_cycles_of_a_cortex_m4(tmp_path: Path) -> None:
    with counters_for(elf_of(tmp_path, "-mcpu=cortex-m7"), core=load_core("cortex-m4")) as counters:
        assert "cycles" in counters.names


def test_an_unaligned_access_has_no_cycles_on_a_core_without_them(tmp_path: Path) -> None:
    """QEMU's Cortex-M0 faults first; another machine's may not."""
    windows = np.zeros(2, [("unaligned", "<u8")])
    with counters_for(elf_of(tmp_path, "-mcpu=cortex-m0"), core=load_core("cortex-m0")) as counters:
        counters._check_accesses(windows)
        windows["unaligned"][1] = 1
        with pytest.raises(ConfigurationError, match="Cortex-M0 has no unaligned accesses"):
            counters._check_accesses(windows)


def ran(counters: QemuCounters, *batches: int) -> None:
    """Batches that each ran this edge: 0 goes from a nop to itself, 1 from it to vadd.f32 s0, s0, s0."""
    code = bytes.fromhex("00bf30ee000a")
    counters._code[: len(code)] = list(code)
    for number, (at, size) in enumerate(((0, 2), (2, 4))):
        counters._blocks[["start", "code", "size"]][number] = (0x1000 + at, at, size)
        counters._edges[["entered", "size"]][number] = (number, 2)
    for number, edge in enumerate(batches):
        counters._taken[number] = (edge, 1)
        counters._windows[["first_taken", "edges_taken"]][number] = (number, 1)
        counters._edges["times_in_windows"][edge] += 1
    control = counters._control
    control["blocks"] = control["edges"] = 2
    control["windows"] = control["taken"] = len(batches)


def test_code_without_cycles_does_not_refuse_later_batches(tmp_path: Path) -> None:
    with counters_for(elf_of(tmp_path, "-mcpu=cortex-m3"), core=load_core("cortex-m3")) as counters:
        ran(counters, 1, 0)
        (batch,) = counters.of_batches(1, ["cycles"])
        assert batch["cycles"] == counters.cycle_tree(1).total == counters.cycles_in_windows(1)[0].total > 0
        assert counters.inclusive("f", cycles=True)["cycles"] == (0, 0)
        for refused in (lambda: counters.of_batches(0), counters.cycle_tree, counters.cycles_in_windows):
            with pytest.raises(ConfigurationError, match=r"Cortex-M3 has no vadd\.f32"):
                refused()


def test_an_unaligned_access_does_not_refuse_later_batches(tmp_path: Path) -> None:
    with counters_for(elf_of(tmp_path, "-mcpu=cortex-m0"), core=load_core("cortex-m0")) as counters:
        ran(counters, 0, 0)
        counters._windows["unaligned"][0] = 1
        assert counters.cycle_tree(1).total > 0
        with pytest.raises(ConfigurationError, match="Cortex-M0 has no unaligned accesses"):
            counters.cycle_tree()
