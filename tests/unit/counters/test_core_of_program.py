# SPDX-License-Identifier: Apache-2.0
"""Programs and accesses that a core's table has no cycles for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from minrpc import ConfigurationError, counters_for
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
