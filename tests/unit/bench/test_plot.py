# SPDX-License-Identifier: Apache-2.0
"""The picture; skipped where matplotlib, an extra, is not installed."""

from __future__ import annotations

from pathlib import Path

import pytest
from minrpc import ConfigurationError
from minrpc_bench import plot
from minrpc_bench.rows import Goal, Report, Row

ROWS = [
    Row("round trip", "inc", "posix", "us", 40.0, 20.0, 2.0, 0.1, Goal("at most", 2.5)),
    Row("copy", "up", "posix", "MiB/s", 10.0, 100.0, 0.1, 0.01, Goal("at least", 0.25)),
    Row("cpu", "host", "posix", "us", 10.0),
]


@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
@pytest.mark.extra("plot")
def test_it_is_drawn(tmp_path: Path, suffix: str, magic: bytes) -> None:
    target = tmp_path / f"bench.{suffix}"
    plot.draw(Report({}, ROWS), target)
    assert target.read_bytes().startswith(magic)


@pytest.mark.extra("plot")
def test_every_ratio_is_in_it(tmp_path: Path) -> None:
    target = tmp_path / "bench.svg"
    plot.draw(Report({}, ROWS), target)
    drawn = target.read_text()
    assert "round trip: inc" in drawn
    assert "copy: up" in drawn
    assert "host" not in drawn


def test_nothing_to_draw(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no row"):
        plot.draw(Report({}, ROWS[2:]), tmp_path / "bench.svg")
