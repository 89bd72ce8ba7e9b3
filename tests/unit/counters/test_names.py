# SPDX-License-Identifier: Apache-2.0
"""Names of the counters of timed batches: counters that were asked for, and those of a core's cycles."""

from __future__ import annotations

from typing import Any

import pytest
from minrpc import ConfigurationError, QemuCounters
from minrpc.counters import Image
from minrpc.cycles import load_core

from tests.unit.counters.test_image import image

__all__ = ["image"]


@pytest.mark.parametrize(
    ("given", "flow", "memory"),
    [
        ({}, False, False),
        ({"flow": True}, True, False),
        ({"memory": True}, False, True),
        ({"trace": True}, True, True),
    ],
)
def test_counters_are_those_asked_for(given: dict[str, Any], flow: bool, memory: bool, image: Image) -> None:
    with QemuCounters(image, **given) as counters:
        assert ("branches" in counters.names, "loads" in counters.names) == (flow, memory)


def test_a_core_s_cycles_need_its_branches(image: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    core = load_core("cortex-m3")
    with pytest.raises(ConfigurationError, match="another instruction set than the program"):
        QemuCounters(image, core=core)
    monkeypatch.setattr(Image, "machine", "EM_ARM")
    monkeypatch.setattr(Image, "wide", False)
    with QemuCounters(image, core=core) as counters:
        assert {"cycles", "branches"} <= counters.names.keys()
        assert "loads" not in counters.names
