# SPDX-License-Identifier: Apache-2.0
"""Plays the rows of kind `rpc` to anything that answers RPC packets."""

from __future__ import annotations

from collections.abc import Callable

from tests.vectors import Row, to_bytes, to_pattern


def replay(row: Row, exchange: Callable[[bytes], bytes]) -> None:
    """Send each `>` packet by `exchange` and compare the answer with the `<` packet after it."""
    names: dict[str, bytes] = {}
    for sent, expected in zip(row.fields[::2], row.fields[1::2], strict=True):
        answer = exchange(to_bytes(sent.removeprefix(">"), names))
        match = to_pattern(expected.removeprefix("<"), names).fullmatch(answer)
        assert match, f"{row.name}: {sent}\n expected {expected}\n came     {answer.hex()}"
        names.update(match.groupdict())
