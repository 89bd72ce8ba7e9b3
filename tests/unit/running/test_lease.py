# SPDX-License-Identifier: Apache-2.0
"""Boards of a hardware map: taken, left out in quarantine, freed."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest
from minrpc import Target
from minrpc.errors import HarnessError
from minrpc.host.owned_lock import DIRECTORY_VARIABLE, OwnedLock, file_of, holder_of, take
from minrpc.running import lease as lease_module
from minrpc.running.lease import candidates, key_of, lease, put_into_quarantine, quarantine_of

HOUR_S = 3600.0


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path / "locks"))


def target_of(tmp_path: Path, *entries: str) -> Target:
    """A target whose map has these entries, each a board of its own."""
    path = tmp_path / "map.yml"
    lines = [
        f"- {{id: {number}, platform: posix, serial: {tmp_path}/port{number}, {facts}}}\n"
        for number, facts in enumerate(entries)
    ]
    path.write_text("".join(lines))
    return replace(Target.named("posix"), hardware_map=path)


def test_a_board_that_goes_into_quarantine_meanwhile_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = target_of(tmp_path, "baud: 9600", "baud: 19200")
    first, second = candidates(target)

    def late(name: str) -> OwnedLock | None:
        put_into_quarantine(first, "hangs")
        return take(name)

    monkeypatch.setattr(lease_module, "take", late)
    held = lease(target)
    assert held.board == second
    assert held.target.platform.baud == 19200
    assert holder_of(key_of(first.link)) is None
    held.release()
    assert holder_of(key_of(second.link)) is None


def test_a_script_that_fails_frees_the_board(tmp_path: Path) -> None:
    target = target_of(tmp_path, "pre_script: 'false'")
    with pytest.raises(HarnessError, match="pre_script of 0 failed with status 1: false"):
        lease(target)
    assert holder_of(key_of(candidates(target)[0].link)) is None


def test_quarantine_ends_after_an_hour(tmp_path: Path) -> None:
    (board,) = candidates(target_of(tmp_path, "baud: 9600"))
    put_into_quarantine(board, "hangs")
    assert quarantine_of(board).startswith("hangs (pid ")
    note = file_of(key_of(board.link), "quarantine")
    document = json.loads(note.read_text())
    note.write_text(json.dumps(document | {"since": time.time() - HOUR_S - 1.0}))
    assert quarantine_of(board) == ""


def test_two_names_of_a_port_have_one_lock(tmp_path: Path) -> None:
    (tmp_path / "by-id").symlink_to(tmp_path / "ttyACM0")
    assert key_of(str(tmp_path / "by-id")) == key_of(str(tmp_path / "ttyACM0"))
