# SPDX-License-Identifier: Apache-2.0
"""`minrpc info`: the facts that it shows of a device."""

from __future__ import annotations

import re

import pytest
from minrpc.cli import main


def test_memory_clock_and_link_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--platform", "posix"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("posix\n")
    assert re.search(r"arena +\d[\d,]* of \d[\d,]* bytes used, ", shown)
    assert re.search(r"uptime +\S+ \S+ by the cycle counter, 1 GHz", shown)
    assert "crc_errors 0" in shown
