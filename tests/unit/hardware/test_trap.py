# SPDX-License-Identifier: Apache-2.0
"""Processors that can't trap accesses say so."""

from __future__ import annotations

import pytest
from minrpc.errors import RegisterError
from minrpc.hardware.trap import core_of


@pytest.mark.parametrize(
    ("machine", "pointer_size", "architecture", "reason"),
    [
        ("EM_AARCH64", 8, None, "EM_AARCH64, 64 bits: .* not there for this processor"),
        ("EM_386", 4, None, "EM_386, 32 bits: .* not there for this processor"),
        ("EM_ARM", 4, 12, "an Armv6-M has no MPU"),
    ],
)
def test_the_reason(machine: str, pointer_size: int, architecture: int | None, reason: str) -> None:
    with pytest.raises(RegisterError, match=reason) as told:
        core_of(machine, pointer_size, {"TAG_CPU_ARCH": architecture})
    assert "with an MPU" in told.value.next_step
    assert core_of("EM_ARM", 4, {"TAG_CPU_ARCH": 10}).instruction_set == "thumb"
