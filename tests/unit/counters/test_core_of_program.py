# SPDX-License-Identifier: Apache-2.0
"""Programs and accesses that a core's table has no cycles for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from minrpc import PLATFORMS, ConfigurationError, Target, build, counters_for, lacking
from minrpc.cycles import load_core


def elf_of(name: str) -> Path:
    if missing := lacking(PLATFORMS[name]):
        pytest.skip(f"{name} lacks {', '.join(item.name for item in missing)}")
    return build(Target.named(name)).elf


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bare_mps2_an500", "bare_mps2_an505"])
def test_a_program_of_a_later_core_has_no_cycles_of_a_cortex_m4(name: str) -> None:
    with pytest.raises(ConfigurationError, match="later than Cortex-M4"):
        counters_for(elf_of(name), core=load_core("cortex-m4"))


@pytest.mark.slow
def test_an_unaligned_access_has_no_cycles_on_a_core_without_them() -> None:
    """QEMU's Cortex-M0 faults first; another machine's may not."""
    windows = np.zeros(2, [("unaligned", "<u8")])
    with counters_for(elf_of("bare_microbit"), core=load_core("cortex-m0")) as counters:
        counters._check_accesses(windows)
        windows["unaligned"][1] = 1
        with pytest.raises(ConfigurationError, match="Cortex-M0 has no unaligned accesses"):
            counters._check_accesses(windows)
