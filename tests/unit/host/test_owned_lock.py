# SPDX-License-Identifier: Apache-2.0
"""Locks of boards: their holder, and their end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from minrpc.host.owned_lock import DIRECTORY_VARIABLE, file_of, holder_of, take


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path))


def test_the_holder_is_named_over_the_longer_text_of_a_killed_holder() -> None:
    file_of("port").write_text("{" + "x" * 1000)
    assert holder_of("port") is None
    lock = take("port")
    assert lock is not None
    holder = holder_of("port")
    assert holder is not None
    assert holder.pid == os.getpid()
    lock.release()
    assert holder_of("port") is None


def test_a_fork_neither_has_the_lock_nor_keeps_it() -> None:
    lock = take("port")
    assert lock is not None
    ready, stay = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        refused = take("port") is None
        lock.release()
        os.write(ready[1], b"1" if refused else b"0")
        os.close(stay[1])
        os.read(stay[0], 1)
        os._exit(0)
    assert os.read(ready[0], 1) == b"1"
    assert holder_of("port") is not None
    lock.release()
    again = take("port")
    for descriptor in (*ready, *stay):
        os.close(descriptor)
    os.waitpid(child, 0)
    assert again is not None
    again.release()


def test_a_lock_that_was_taken_twice_is_released_twice() -> None:
    locks = [take("port"), take("port")]
    for lock in locks:
        assert lock is not None
        assert holder_of("port") is not None
        lock.release()
        lock.release()
    assert holder_of("port") is None
