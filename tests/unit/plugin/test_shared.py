# SPDX-License-Identifier: Apache-2.0
"""Devices that tests share end in any case: whatever fails at the end of another, or before it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from minrpc import ConfigurationError, Target
from minrpc.host import Deadline
from minrpc.plugin.shared import SharedDevice


def test_a_device_stops_and_its_board_is_free_if_its_coverage_is_not_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(self: SharedDevice, running: object) -> None:
        raise ConfigurationError("coverage.info can't be written")

    monkeypatch.setattr(SharedDevice, "_add_coverage", full)
    shared, ended = SharedDevice(Target.named("posix"), Deadline("test", 60.0), print), list[str]()
    running = SimpleNamespace(stop=lambda: ended.append("device"))
    monkeypatch.setattr(shared, "_running", running)
    monkeypatch.setattr(shared, "_pool", SimpleNamespace(release=lambda: ended.append("board")))
    with pytest.raises(ConfigurationError, match="can't be written"):
        shared.close()
    assert ended == ["device", "board"]


def test_each_device_of_a_test_is_closed_if_closing_another_fails(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []

    def fails(self: SharedDevice) -> None:
        self.discard()
        closed.append(self.name)
        raise ConfigurationError("coverage.info can't be written")

    monkeypatch.setattr(SharedDevice, "close", fails)
    pytester.makepyfile("def test_two(devices): devices('posix', 'posix')")
    result = pytester.runpytest("-p", "no:cacheprovider", "-p", "no:xdist")
    result.assert_outcomes(passed=1, errors=1)
    assert closed == ["posix", "posix"]


def test_a_board_that_worked_is_flashed_only_if_it_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """At first it is flashed as asked, by `start`."""
    flashes: list[str] = []

    def start(target: Target, **_: object) -> SimpleNamespace:
        flashes.append(target.flash)
        return SimpleNamespace(stop=lambda: None, process=None, can_reset=False)

    monkeypatch.setattr("minrpc.plugin.shared.start", start)
    for flash in ("always", "auto", "never"):
        target = Target.named("posix", serial_port="socket://:1", flash=flash)
        shared = SharedDevice(target, Deadline("test", 60.0), print)
        assert shared.running
        shared.discard()
        monkeypatch.setattr(shared, "_worked", True)
        assert shared.running
        shared.close()
    assert flashes == ["always", "auto", "auto", "auto", "never", "never"]
