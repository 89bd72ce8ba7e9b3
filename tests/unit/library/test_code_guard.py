# SPDX-License-Identifier: Apache-2.0
"""Writes to a loaded library's code, found by its bytes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from minrpc import GuardError
from minrpc.client.owner import Unowned
from minrpc.library.code_guard import CodeGuard
from minrpc.library.linking import LinkedImage

IMAGE = LinkedImage(
    0x100, b"codeconstdata", 16, 0, 0, 9, {"f": 0x101, "table": 0x104}, {"f": 4, "table": 5}, b""
)


class Shown(Unowned):
    """An owner that shows the device's memory."""

    memory_bytes = bytearray(IMAGE.data)

    def peek(self, address: int, nbytes: int) -> bytes | None:
        return bytes(self.memory_bytes[address - 0x100 :][:nbytes])

    def reader(self, address: int, nbytes: int) -> Callable[[], bytes | None]:
        return lambda: self.peek(address, nbytes)


def test_code_that_nobody_shows_has_no_guard() -> None:
    assert CodeGuard.of(Unowned(), "a.c", IMAGE) is None


def test_each_of_the_first_calls_is_followed_by_a_comparison_and_then_every_16th() -> None:
    owner = Shown()
    guard = CodeGuard.of(owner, "a.c", IMAGE)
    assert guard is not None
    assert guard.is_whole()
    owner.memory_bytes[10] ^= 1
    assert guard.is_whole(), "that is data"
    owner.memory_bytes[5] ^= 1
    assert not guard.is_whole()
    with pytest.raises(GuardError, match=r"^g wrote 1 byte of a\.c's code or constants.* 0x105, in table"):
        guard.require("g")
    assert [guard.is_whole() for _ in range(61)] == [False] * 61
    assert [guard.is_whole() for _ in range(16)] == [True] * 15 + [False]
    with pytest.raises(GuardError, match=r"^g wrote 1 byte"):
        guard.require("innocent")
    owner.memory_bytes[6] ^= 1
    with pytest.raises(GuardError, match=r"^h, or one of the 15 calls before it, wrote 2 bytes"):
        guard.require("h")
    guard.written(0x105, bytes(owner.memory_bytes[5:7]))
    assert [guard.is_whole() for _ in range(16)] == [True] * 16
